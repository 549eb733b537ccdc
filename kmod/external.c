// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests of unified memory that name the driver's objects, by a client and a
 * handle that the driver believes whoever says them: those must be the
 * container's, and nobody may change them meanwhile.
 *
 * A mapping keeps the memory behind it, beyond the end of its handles, so it
 * holds the charge as a handle does. Whether a request that ends mappings was
 * refused cannot be known, since the program can change the answer. So before a
 * charge is let go, the driver is asked once more to end just that mapping, which
 * it cannot refuse.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "grant.h"
#include "uvm.h"

/**
 * struct layout - where MAP_EXTERNAL_ALLOCATION's figures stand
 * @size: bytes of its parameters
 * @client: the client, followed by the memory's handle
 * @stride: bytes of what is said for one GPU
 * @status: the driver's answer
 */
struct layout {
	u32 size, client, stride, status;
};

static struct layout layout_of_branch(void)
{
	static const struct layout old = {
		UVM_MAP_EXTERNAL_SIZE_418, UVM_MAP_EXTERNAL_CLIENT_418,
		sizeof(struct uvm_gpu_mapping_attributes_418),
		UVM_MAP_EXTERNAL_STATUS_418,
	}, usual = {
		UVM_MAP_EXTERNAL_SIZE, UVM_MAP_EXTERNAL_CLIENT,
		sizeof(struct uvm_gpu_mapping_attributes),
		UVM_MAP_EXTERNAL_STATUS,
	}, new = {
		UVM_MAP_EXTERNAL_SIZE_550, UVM_MAP_EXTERNAL_CLIENT_550,
		sizeof(struct uvm_gpu_mapping_attributes),
		UVM_MAP_EXTERNAL_STATUS_550,
	};

	return cgpu_branch < 450 ? old : cgpu_branch < 550 ? usual : new;
}

static long call_frozen(struct cgpu_file *f, u32 cmd, void *args, u32 size)
{
	struct cgpu_call call = {
		.f = f, .cmd = cmd, .args = args, .size = size,
	};

	return cgpu_call(&call);
}

/* ---- mappings that hold memory ---- */

static int note_gpus(struct cgpu_range *r, const void *args,
		     const struct layout *l, u32 gpus)
{
	const void *from = args + UVM_MAP_EXTERNAL_HEAD;
	u32 i;

	r->gpus = kmalloc_array(gpus, sizeof(*r->gpus), GFP_KERNEL_ACCOUNT);
	if (!r->gpus)
		return -ENOMEM;
	for (i = 0; i < gpus; i++)
		memcpy(&r->gpus[i], from + i * l->stride, sizeof(*r->gpus));
	r->gpu_count = gpus;
	return 0;
}

/* Takes over the hold on @phys. */
static struct cgpu_range *note_mapping(struct cgpu_file *f, const void *args,
				       const struct layout *l, u32 gpus,
				       struct cgpu_phys *phys)
{
	struct cgpu_range *r;

	mutex_lock(&f->map_lock);
	r = cgpu_range_note(f, U64_AT(args, 0), U64_AT(args, 8),
			    CGPU_RANGE_EXTERNAL);
	if (r)
		r->phys = phys;
	else
		cgpu_phys_release_hold(f->node->inst, phys);
	if (r && note_gpus(r, args, l, gpus)) {
		cgpu_range_drop(f, r);
		r = NULL;
	}
	mutex_unlock(&f->map_lock);
	return r;
}

static void drop_mapping(struct cgpu_file *f, struct cgpu_range *r)
{
	mutex_lock(&f->map_lock);
	cgpu_range_drop(f, r);
	mutex_unlock(&f->map_lock);
}

static long map_known(struct cgpu_file *f, u32 cmd, void *args,
		      const struct layout *l, struct cgpu_phys *phys)
{
	u64 gpus = U64_AT(args, l->client - 12);
	struct cgpu_range *r = NULL;
	struct cgpu_call call = {
		.f = f, .cmd = cmd, .args = args, .size = l->size,
	};
	long ret;

	if (phys && (!gpus || gpus > NV_MAX_DEVICES)) {
		cgpu_phys_release_hold(f->node->inst, phys);
		U32_AT(args, l->status) = NV_ERR_INVALID_ARGUMENT;
		return 0;
	}
	if (phys) {
		r = note_mapping(f, args, l, gpus, phys);
		if (!r)
			return -ENOMEM;
	}
	ret = cgpu_call(&call);
	if (r && call.sure && !ret && U32_AT(args, l->status))
		drop_mapping(f, r);
	return ret;
}

static long map_external(struct cgpu_file *f, u32 cmd, void __user *arg,
			 void *args, const struct layout *l)
{
	struct cgpu_phys *phys;
	long ret = 0;

	if (copy_from_user(args, arg, l->size))
		return -EFAULT;
	if (cgpu_phys_hold(f, U32_AT(args, l->client),
			   U32_AT(args, l->client + 4), &phys))
		ret = map_known(f, cmd, args, l, phys);
	else
		U32_AT(args, l->status) = NV_ERR_INVALID_OBJECT_HANDLE;
	if (ret)
		return ret;
	return copy_to_user(arg, args, l->size) ? -EFAULT : 0;
}

/**
 * cgpu_uvm_map_external() - memory of the container at an address of its GPUs
 * @f: the file
 * @cmd: the request
 * @arg: its parameters
 *
 * Context: process; f->lock is held.
 * Return: 0 or an errno.
 */
long cgpu_uvm_map_external(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	struct layout l = layout_of_branch();
	void *args = kvmalloc(l.size, GFP_KERNEL_ACCOUNT);
	long ret;

	if (!args)
		return -ENOMEM;
	ret = map_external(f, cmd, arg, args, &l);
	kvfree(args);
	return ret;
}

/* ---- the end of mappings ---- */

static bool end_on_gpu(struct cgpu_file *f, const struct cgpu_range *r,
		       const struct uvm_uuid *gpu)
{
	struct uvm_unmap_external_params now = {
		.base = r->base, .length = r->length, .gpu_uuid = *gpu,
	};
	struct uvm_unmap_external_params_418 old = {
		.base = r->base, .gpu_uuid = *gpu,
	};

	return !(cgpu_branch < 450 ?
		 call_frozen(f, UVM_UNMAP_EXTERNAL, &old, sizeof(old)) :
		 call_frozen(f, UVM_UNMAP_EXTERNAL, &now, sizeof(now)));
}

/* The last GPU takes its place, so that the list has no gaps. */
static void forget_gpu(struct cgpu_range *r, u32 i)
{
	r->gpus[i] = r->gpus[--r->gpu_count];
}

static bool is_meant(const struct cgpu_range *r, u32 i,
		     const struct uvm_uuid *gpu)
{
	return !gpu || !memcmp(&r->gpus[i], gpu, sizeof(*gpu));
}

/* Whether nothing of it is mapped any more; a call that was not made ends nothing. */
static bool end_mapping(struct cgpu_file *f, struct cgpu_range *r,
			const struct uvm_uuid *gpu)
{
	u32 i = r->gpu_count;

	while (i--)
		if (is_meant(r, i, gpu) && end_on_gpu(f, r, &r->gpus[i]))
			forget_gpu(r, i);
	return !r->gpu_count;
}

/* 418 names an address alone. */
static bool is_within(const struct cgpu_range *r, u64 base, u64 length)
{
	if (!length)
		return r->base == base;
	return r->base >= base && r->base - base < length &&
	       r->length <= length - (r->base - base);
}

/*
 * Only requests of this kind take such ranges out, under the file's lock, so
 * that they may be out of the list meanwhile.
 */
static void end_mappings(struct cgpu_file *f, u64 base, u64 length,
			 const struct uvm_uuid *gpu)
{
	struct cgpu_range *r, *next;
	LIST_HEAD(found);

	lockdep_assert_held(&f->lock);
	mutex_lock(&f->map_lock);
	list_for_each_entry_safe(r, next, &f->ranges, link)
		if (r->kind == CGPU_RANGE_EXTERNAL && is_within(r, base, length))
			list_move(&r->link, &found);
	mutex_unlock(&f->map_lock);
	list_for_each_entry_safe(r, next, &found, link)
		if (end_mapping(f, r, gpu))
			drop_mapping(f, r);
	mutex_lock(&f->map_lock);
	list_splice(&found, &f->ranges);
	mutex_unlock(&f->map_lock);
}

/**
 * cgpu_uvm_unmap_external() - memory is to be gone from a GPU's address
 * @f: the file
 * @cmd: the request
 * @arg: its parameters
 *
 * Context: process; f->lock is held.
 * Return: 0 or an errno.
 */
long cgpu_uvm_unmap_external(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	union {
		struct uvm_unmap_external_params now;
		struct uvm_unmap_external_params_418 old;
	} args;
	bool is_old = cgpu_branch < 450;
	u32 size = is_old ? sizeof(args.old) : sizeof(args.now);
	struct uvm_uuid gpu;
	u64 base, length;
	long ret;

	if (copy_from_user(&args, arg, size))
		return -EFAULT;
	gpu = is_old ? args.old.gpu_uuid : args.now.gpu_uuid;
	base = args.now.base;
	length = is_old ? 0 : args.now.length;
	ret = call_frozen(f, cmd, &args, size);
	if (ret)
		return ret;
	if (!(is_old ? args.old.rm_status : args.now.rm_status))
		end_mappings(f, base, length, &gpu);
	return copy_to_user(arg, &args, size) ? -EFAULT : 0;
}

/**
 * cgpu_uvm_free() - a range is to be no more, with all that is mapped there
 * @f: the file
 * @cmd: the request
 * @arg: its parameters
 *
 * Of managed memory and of semaphores the mapping's end gives the charge back.
 *
 * Context: process; f->lock is held.
 * Return: 0 or an errno.
 */
long cgpu_uvm_free(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	struct uvm_free_params args;
	u64 base, length;
	long ret;

	if (copy_from_user(&args, arg, sizeof(args)))
		return -EFAULT;
	base = args.base;
	length = args.length;
	ret = call_frozen(f, cmd, &args, sizeof(args));
	if (ret)
		return ret;
	if (!args.rm_status) {
		end_mappings(f, base, length, NULL);
		cgpu_range_forget_announced(f, base);
	}
	return copy_to_user(arg, &args, sizeof(args)) ? -EFAULT : 0;
}

/* ---- address spaces and channels ---- */

static bool is_known(struct cgpu_file *f, u32 client, u32 handle)
{
	return cgpu_known(f, client, client) &&
	       (!handle || cgpu_known(f, client, handle));
}

/**
 * cgpu_uvm_register_space() - an address space of the container for its file
 * @f: the file
 * @cmd: the request
 * @arg: its parameters
 *
 * Context: process; f->lock is held.
 * Return: 0 or an errno.
 */
long cgpu_uvm_register_space(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	struct uvm_register_gpu_vaspace_params args;
	long ret = 0;

	if (copy_from_user(&args, arg, sizeof(args)))
		return -EFAULT;
	if (is_known(f, args.h_client, args.h_va_space))
		ret = call_frozen(f, cmd, &args, sizeof(args));
	else
		args.rm_status = NV_ERR_INVALID_OBJECT_HANDLE;
	if (ret)
		return ret;
	return copy_to_user(arg, &args, sizeof(args)) ? -EFAULT : 0;
}

/**
 * cgpu_uvm_register_channel() - a channel of the container for its file
 * @f: the file
 * @cmd: the request
 * @arg: its parameters
 *
 * Context: process; f->lock is held.
 * Return: 0 or an errno.
 */
long cgpu_uvm_register_channel(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	struct uvm_register_channel_params args;
	long ret = 0;

	if (copy_from_user(&args, arg, sizeof(args)))
		return -EFAULT;
	if (is_known(f, args.h_client, args.h_channel))
		ret = call_frozen(f, cmd, &args, sizeof(args));
	else
		args.rm_status = NV_ERR_INVALID_OBJECT_HANDLE;
	if (ret)
		return ret;
	return copy_to_user(arg, &args, sizeof(args)) ? -EFAULT : 0;
}
