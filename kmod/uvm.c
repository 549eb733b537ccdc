// SPDX-License-Identifier: GPL-2.0-only
/*
 * The node of unified memory. Its requests are raw numbers; sizes are not in
 * them.
 *
 * Managed memory moves to the GPU behind the driver's back, so it is refused
 * beyond a small allowance that some contexts need, or charged by its length.
 * Ranges for semaphores are announced by a request before they are mapped and
 * always pass. A refused range is mapped, but to nothing, and the request that
 * validates it says "not supported", which CUDA reports as an error.
 */
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "cgpu.h"
#include "compat.h"

/**
 * struct request - one request of the UVM driver
 * @cmd: its number
 * @run: what is done, NULL = the driver's own
 */
struct request {
	u32 cmd;
	long (*run)(struct cgpu_file *f, u32 cmd, void __user *arg);
};

static bool charges_managed(void)
{
	return !strcmp(cgpu_managed, "charge");
}

static struct cgpu_range *find_range(struct cgpu_file *f, u64 base)
{
	struct cgpu_range *r;

	lockdep_assert_held(&f->map_lock);
	list_for_each_entry(r, &f->ranges, link)
		if (base >= r->base && base - r->base < r->length)
			return r;
	return NULL;
}

static bool is_refused(struct cgpu_file *f, u64 base)
{
	struct cgpu_range *r;
	bool refused;

	mutex_lock(&f->map_lock);
	r = find_range(f, base);
	refused = r && r->kind == CGPU_RANGE_REFUSED;
	mutex_unlock(&f->map_lock);
	return refused;
}

static int note_range(struct cgpu_file *f, u64 base, u64 length, int kind)
{
	struct cgpu_range *r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);

	if (!r)
		return -ENOMEM;
	r->base = base;
	r->length = length;
	r->kind = kind;
	list_add(&r->link, &f->ranges);
	return 0;
}

/* Managed memory has no GPU of its own: the container's first one pays. */
static int paying_gpu(struct cgpu_file *f)
{
	int minor;

	for (minor = 0; minor < NV_MAX_DEVICES; minor++)
		if (f->node->inst->share[minor])
			return minor;
	return -1;
}

static void drop_range(struct cgpu_file *f, struct cgpu_range *r)
{
	if (r->kind == CGPU_RANGE_MANAGED) {
		cgpu_uncharge_bytes(f->node->inst, paying_gpu(f), r->length);
		f->managed -= r->length;
	}
	list_del(&r->link);
	kfree(r);
}

static bool admit_managed(struct cgpu_file *f, u64 length)
{
	u64 most = charges_managed() ? U64_MAX :
		   cgpu_managed_free_mib * (u64)SZ_1M;

	return length <= most && f->managed <= most - length &&
	       cgpu_charge(f->node->inst, paying_gpu(f), length);
}

/* ---- requests ---- */

static long initialize(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	struct uvm_initialize_params p;

	if (cgpu_branch < 535)
		return cgpu_forward(f, cmd, arg);
	if (copy_from_user(&p, arg, sizeof(p)))
		return -EFAULT;
	p.flags |= UVM_INIT_FLAGS_DISABLE_HMM | UVM_INIT_FLAGS_MULTI_PROCESS;
	if (copy_to_user(arg, &p, sizeof(p)))
		return -EFAULT;
	return cgpu_forward(f, cmd, arg);
}

/* The driver looks at the operations of that file, and they are ours. */
static long mm_initialize(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	struct uvm_mm_initialize_params p;
	struct cgpu_file *other;
	struct file *file;

	if (copy_from_user(&p, arg, sizeof(p)))
		return -EFAULT;
	other = cgpu_own_file(f, p.uvm_fd, &file);
	p.rm_status = IS_ERR(other) ? NV_ERR_INVALID_ARGUMENT : NV_OK;
	if (!IS_ERR(other))
		fput(file);
	return copy_to_user(arg, &p, sizeof(p)) ? -EFAULT : 0;
}

static long register_with(struct cgpu_file *f, u32 cmd, struct cgpu_node *node,
			  struct uvm_register_gpu_params *p)
{
	struct cgpu_call call = {
		.f = f, .cmd = cmd, .args = p, .size = sizeof(*p),
		.genuine = node->genuine,
	};

	return cgpu_call(&call);
}

/*
 * From 550 the driver looks for a file of the GPU in its caller's table. The
 * GPU is named by its UUID, so the container's are tried one after another.
 */
static long register_gpu(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	struct uvm_register_gpu_params asked, p;
	struct cgpu_node *node;
	int minor;
	long ret;

	if (cgpu_branch < 550)
		return cgpu_forward(f, cmd, arg);
	if (copy_from_user(&asked, arg, sizeof(asked)))
		return -EFAULT;
	p = asked;
	p.rm_status = NV_ERR_INVALID_DEVICE;
	for (minor = 0; p.rm_status && minor < NV_MAX_DEVICES; minor++) {
		node = cgpu_node_of(f, minor);
		if (!node)
			continue;
		p = asked;
		ret = register_with(f, cmd, node, &p);
		if (ret)
			return ret;
	}
	return copy_to_user(arg, &p, sizeof(p)) ? -EFAULT : 0;
}

static long announce_pool(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	struct uvm_validate_va_range_params head;
	int ret;

	if (copy_from_user(&head, arg, offsetof(typeof(head), rm_status)))
		return -EFAULT;
	mutex_lock(&f->map_lock);
	ret = note_range(f, head.base, head.length, CGPU_RANGE_POOL);
	mutex_unlock(&f->map_lock);
	return ret ?: cgpu_forward(f, cmd, arg);
}

static long free_range(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	struct uvm_free_params p;
	struct cgpu_range *r;

	if (copy_from_user(&p, arg, sizeof(p.base)))
		return -EFAULT;
	mutex_lock(&f->map_lock);
	r = find_range(f, p.base);
	if (r)
		drop_range(f, r);
	mutex_unlock(&f->map_lock);
	return cgpu_forward(f, cmd, arg);
}

static long validate(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	struct uvm_read_duplication_params p;

	if (copy_from_user(&p, arg, sizeof(p)))
		return -EFAULT;
	if (!is_refused(f, p.requested_base))
		return cgpu_forward(f, cmd, arg);
	p.rm_status = NV_ERR_NOT_SUPPORTED;
	return copy_to_user(arg, &p, sizeof(p)) ? -EFAULT : 0;
}

/* Its answer is ignored by every library, so a refused range is fine here. */
static long validate_va_range(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	struct uvm_validate_va_range_params p;

	if (copy_from_user(&p, arg, sizeof(p)))
		return -EFAULT;
	if (!is_refused(f, p.base))
		return cgpu_forward(f, cmd, arg);
	p.rm_status = NV_OK;
	return copy_to_user(arg, &p, sizeof(p)) ? -EFAULT : 0;
}

static const struct request requests[] = {
	{ UVM_INITIALIZE, initialize },
	{ UVM_MM_INITIALIZE, mm_initialize },
	{ UVM_REGISTER_GPU, register_gpu },
	{ UVM_ALLOC_SEMAPHORE_POOL, announce_pool },
	{ UVM_ALLOC_DEVICE_P2P, announce_pool },
	{ UVM_FREE, free_range },
	{ UVM_DISABLE_READ_DUPLICATION, validate },
	{ UVM_VALIDATE_VA_RANGE, validate_va_range },
	{ UVM_DEINITIALIZE },
	{ UVM_CREATE_RANGE_GROUP },
	{ UVM_DESTROY_RANGE_GROUP },
	{ UVM_SET_RANGE_GROUP },
	{ UVM_REGISTER_GPU_VASPACE },
	{ UVM_UNREGISTER_GPU_VASPACE },
	{ UVM_REGISTER_CHANNEL },
	{ UVM_UNREGISTER_CHANNEL },
	{ UVM_ENABLE_PEER_ACCESS },
	{ UVM_DISABLE_PEER_ACCESS },
	{ UVM_MAP_EXTERNAL_ALLOCATION },
	{ UVM_UNREGISTER_GPU },
	{ UVM_PAGEABLE_MEM_ACCESS },
	{ UVM_PAGEABLE_MEM_ACCESS_ON_GPU },
	{ UVM_SET_PREFERRED_LOCATION },
	{ UVM_UNSET_PREFERRED_LOCATION },
	{ UVM_ENABLE_READ_DUPLICATION },
	{ UVM_SET_ACCESSED_BY },
	{ UVM_UNSET_ACCESSED_BY },
	{ UVM_MIGRATE },
	{ UVM_MIGRATE_RANGE_GROUP },
	{ UVM_MAP_DYNAMIC_PARALLELISM_REGION },
	{ UVM_UNMAP_EXTERNAL },
	{ UVM_CREATE_EXTERNAL_RANGE },
	{ UVM_MAP_EXTERNAL_SPARSE },
	{ UVM_IS_8_SUPPORTED },
};

static const struct request *request_of(u32 cmd)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(requests); i++)
		if (requests[i].cmd == cmd)
			return &requests[i];
	return NULL;
}

/**
 * cgpu_uvm_passes() - whether a request goes to the driver as it is
 * @cmd: the request
 *
 * Context: any.
 * Return: true if it does.
 */
bool cgpu_uvm_passes(u32 cmd)
{
	const struct request *r = request_of(cmd);

	return r && !r->run;
}

/**
 * cgpu_uvm_ioctl() - a request on nvidia-uvm
 * @f: the file
 * @cmd: the request
 * @arg: its parameters
 *
 * Context: process.
 * Return: the driver's answer, or an errno of ours.
 */
long cgpu_uvm_ioctl(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	const struct request *r = request_of(cmd);
	long ret;

	if (!r) {
		pr_info_ratelimited("%s: UVM request %u refused\n",
				    f->node->inst->id, cmd);
		return -ENOTTY;
	}
	if (mutex_lock_killable(&f->lock))
		return -EINTR;
	ret = r->run(f, cmd, arg);
	mutex_unlock(&f->lock);
	return ret;
}

/* ---- mmap ---- */

static int map_nothing(struct cgpu_file *f, struct vm_area_struct *vma)
{
	cgpu_vm_flags(vma, VM_DONTEXPAND | VM_DONTDUMP, 0);
	vma->vm_ops = &cgpu_refused_vm_ops;
	return note_range(f, vma->vm_start, vma->vm_end - vma->vm_start,
			 CGPU_RANGE_REFUSED);
}

static int map_managed(struct cgpu_file *f, struct vm_area_struct *vma)
{
	u64 length = vma->vm_end - vma->vm_start;
	int ret;

	ret = note_range(f, vma->vm_start, length, CGPU_RANGE_MANAGED);
	if (ret) {
		cgpu_uncharge_bytes(f->node->inst, paying_gpu(f), length);
		return ret;
	}
	f->managed += length;
	ret = f->node->fops->mmap(f->file, vma);
	if (ret)
		drop_range(f, find_range(f, vma->vm_start));
	return ret;
}

/**
 * cgpu_uvm_mmap() - a mapping of nvidia-uvm
 * @f: the file
 * @vma: the mapping
 *
 * Context: process, mmap_lock held for writing.
 * Return: 0 or an errno.
 */
int cgpu_uvm_mmap(struct cgpu_file *f, struct vm_area_struct *vma)
{
	u64 length = vma->vm_end - vma->vm_start;
	struct cgpu_range *r;
	int ret;

	mutex_lock(&f->map_lock);
	r = find_range(f, vma->vm_start);
	if (r && r->kind == CGPU_RANGE_REFUSED) {
		drop_range(f, r);
		r = NULL;
	}
	if (r)
		ret = f->node->fops->mmap(f->file, vma);
	else if (admit_managed(f, length))
		ret = map_managed(f, vma);
	else
		ret = map_nothing(f, vma);
	mutex_unlock(&f->map_lock);
	return ret;
}

/**
 * cgpu_uvm_release() - the file is closed
 * @f: the file
 *
 * Context: process; nobody else has the file.
 */
void cgpu_uvm_release(struct cgpu_file *f)
{
	struct cgpu_range *r, *next;

	list_for_each_entry_safe(r, next, &f->ranges, link)
		drop_range(f, r);
}
