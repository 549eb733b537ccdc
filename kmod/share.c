// SPDX-License-Identifier: GPL-2.0-only
/* Escapes that tie files, objects and GPUs together. */
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "grant.h"

/* ---- DUP_OBJECT: one more handle of the same memory ---- */

static struct cgpu_phys *take_source(struct cgpu_file *f, u32 client,
				     u32 handle, struct cgpu_obj *what)
{
	struct cgpu_inst *inst = f->node->inst;
	struct cgpu_phys *phys = NULL;
	struct cgpu_obj *o;

	mutex_lock(&inst->lock);
	o = cgpu_objs_find(&inst->objs, client, handle);
	what->class = o ? o->class : NV01_ROOT;
	what->gpu = o ? o->gpu : -1;
	if (o && o->phys) {
		phys = o->phys;
		phys->refs++;
	}
	mutex_unlock(&inst->lock);
	return phys;
}

static u32 check_dup(struct cgpu_file *f, const struct nvos55_parameters *args)
{
	if (!cgpu_known(f, args->h_client, args->h_client))
		return NV_ERR_INVALID_CLIENT;
	if (!cgpu_known(f, args->h_client_src, args->h_object_src))
		return NV_ERR_INVALID_OBJECT_HANDLE;
	if (cgpu_known(f, args->h_client, args->h_object))
		return NV_ERR_INSERT_DUPLICATE_NAME;
	return NV_OK;
}

/* A refusal may be forged, so the second handle is ended before it is believed. */
static long run_dup(struct cgpu_file *f, u32 cmd,
		    struct nvos55_parameters *args)
{
	struct cgpu_obj what = {
		.client = args->h_client, .parent = args->h_parent,
	};
	struct cgpu_call call = {
		.f = f, .cmd = cmd, .args = args, .size = sizeof(*args),
	};
	struct cgpu_phys *phys;
	long ret;

	if (!args->h_object)
		args->h_object = cgpu_new_handle(f);
	args->status = check_dup(f, args);
	if (args->status)
		return 0;
	what.handle = args->h_object;
	phys = take_source(f, args->h_client_src, args->h_object_src, &what);
	ret = cgpu_call(&call);
	if (!ret && !args->status)
		ret = cgpu_track(f, &what, 0, phys);
	else
		cgpu_free_handle(f, what.client, what.parent, what.handle);
	cgpu_phys_release(f->node->inst, phys);
	return ret;
}

/**
 * cgpu_esc_dup() - RM_DUP_OBJECT, within the container only
 * @f: the control file
 * @cmd: the ioctl
 * @size: bytes of its arguments
 * @arg: the arguments
 *
 * Context: process; f->lock is held.
 * Return: 0 or an errno.
 */
long cgpu_esc_dup(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg)
{
	struct nvos55_parameters args;
	long ret;

	if (size != sizeof(args))
		return -EINVAL;
	if (copy_from_user(&args, arg, size))
		return -EFAULT;
	ret = run_dup(f, cmd, &args);
	if (ret)
		return ret;
	return copy_to_user(arg, &args, size) ? -EFAULT : 0;
}

/* ---- MAP_MEMORY: what the next mmap of a file gives ---- */

static bool rings(u32 class)
{
	return (NV_CLASS_FAMILY(class) == NV_FAMILY_USERMODE &&
		class >= VOLTA_USERMODE_A) ||
	       NV_CLASS_FAMILY(class) == NV_FAMILY_GPFIFO;
}

/* A file that is marked stays marked: it is gated, never set free. */
static void mark_doorbell(struct cgpu_file *f, struct cgpu_file *target,
			  u32 client, u32 handle)
{
	struct cgpu_inst *inst = f->node->inst;
	struct cgpu_obj *o;

	mutex_lock(&inst->lock);
	o = cgpu_objs_find(&inst->objs, client, handle);
	if (o && o->gpu >= 0 && rings(o->class))
		WRITE_ONCE(target->next_map, inst->share[o->gpu]);
	mutex_unlock(&inst->lock);
}

static long run_map(struct cgpu_file *f, u32 cmd,
		    struct nv_ioctl_nvos33_parameters_with_fd *args)
{
	struct cgpu_call call = {
		.f = f, .cmd = cmd, .args = args, .size = sizeof(*args),
		.fd_at = offsetof(struct nv_ioctl_nvos33_parameters_with_fd, fd),
	};
	s32 fd = args->fd;
	struct cgpu_file *target;
	long ret;

	if (!cgpu_known(f, args->params.h_client, args->params.h_memory)) {
		args->params.status = NV_ERR_INVALID_OBJECT_HANDLE;
		return 0;
	}
	target = cgpu_own_file(f, fd, &call.genuine);
	if (IS_ERR(target))
		return PTR_ERR(target);
	mark_doorbell(f, target, args->params.h_client, args->params.h_memory);
	ret = cgpu_call(&call);
	args->fd = fd;
	fput(call.genuine);
	return ret;
}

/**
 * cgpu_esc_map() - RM_MAP_MEMORY
 * @f: the control file
 * @cmd: the ioctl
 * @size: bytes of its arguments
 * @arg: the arguments
 *
 * Context: process; f->lock is held.
 * Return: 0 or an errno.
 */
long cgpu_esc_map(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg)
{
	struct nv_ioctl_nvos33_parameters_with_fd args;
	long ret;

	if (size != sizeof(args))
		return -EINVAL;
	if (copy_from_user(&args, arg, size))
		return -EFAULT;
	ret = run_map(f, cmd, &args);
	if (ret)
		return ret;
	return copy_to_user(arg, &args, size) ? -EFAULT : 0;
}

/* ---- the operating system layer ---- */

/**
 * cgpu_esc_cards() - CARD_INFO with the container's GPUs only
 * @f: the control file
 * @cmd: the ioctl
 * @size: bytes of its arguments
 * @arg: the arguments
 *
 * Context: process.
 * Return: 0 or an errno.
 */
long cgpu_esc_cards(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg)
{
	struct cgpu_view v;
	void *cards;
	long ret;

	ret = cgpu_forward(f, cmd, arg);
	if (ret)
		return ret;
	cards = kvmalloc(size, GFP_KERNEL);
	if (!cards)
		return -ENOMEM;
	ret = -EFAULT;
	if (copy_from_user(cards, arg, size))
		goto free;
	mutex_lock(&f->node->inst->lock);
	cgpu_view_of(f, -1, &v);
	cgpu_reply_cards(cards, size, &v);
	mutex_unlock(&f->node->inst->lock);
	if (!copy_to_user(arg, cards, size))
		ret = 0;
free:
	kvfree(cards);
	return ret;
}

/**
 * cgpu_esc_register() - REGISTER_FD with a control file of the container
 * @f: the device file
 * @cmd: the ioctl
 * @size: bytes of its arguments
 * @arg: the arguments
 *
 * Context: process; f->lock is held.
 * Return: 0 or an errno.
 */
long cgpu_esc_register(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg)
{
	struct nv_ioctl_register_fd args;
	struct cgpu_file *other;
	struct file *file;

	if (size != sizeof(args))
		return -EINVAL;
	if (copy_from_user(&args, arg, size))
		return -EFAULT;
	other = cgpu_own_file(f, args.ctl_fd, &file);
	if (IS_ERR(other))
		return -EINVAL;
	fput(file);
	return cgpu_forward(f, cmd, arg);
}

/**
 * cgpu_esc_attach() - ATTACH_GPUS_TO_FD with GPUs of the container
 * @f: the control file
 * @cmd: the ioctl
 * @size: bytes of its arguments
 * @arg: the arguments
 *
 * Context: process.
 * Return: 0 or an errno; -EPERM for a GPU of somebody else.
 */
long cgpu_esc_attach(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg)
{
	u32 ids[NV_MAX_DEVICES], i, n = size / sizeof(ids[0]);
	struct cgpu_view v;

	if (!n || n > ARRAY_SIZE(ids))
		return -EINVAL;
	if (copy_from_user(ids, arg, n * sizeof(ids[0])))
		return -EFAULT;
	mutex_lock(&f->node->inst->lock);
	cgpu_view_of(f, -1, &v);
	mutex_unlock(&f->node->inst->lock);
	for (i = 0; i < n; i++)
		if (ids[i] && ids[i] != NV0000_CTRL_GPU_INVALID_ID &&
		    !cgpu_view_has_gpu(&v, ids[i]))
			return -EPERM;
	return cgpu_forward(f, cmd, arg);
}
