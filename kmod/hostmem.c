// SPDX-License-Identifier: GPL-2.0-only
/* ALLOC_MEMORY: host memory, and an old way to ask for the heap. */
#include <linux/uaccess.h>
#include "grant.h"

/**
 * cgpu_esc_memory() - RM_ALLOC_MEMORY
 * @f: the device file
 * @cmd: the ioctl
 * @size: bytes of its arguments
 * @arg: the arguments
 *
 * Context: process; f->lock is held.
 * Return: 0 or an errno.
 */
long cgpu_esc_memory(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg)
{
	struct nv_ioctl_nvos02_parameters_with_fd args;
	struct cgpu_call call = {
		.f = f, .cmd = cmd, .args = &args, .size = sizeof(args),
	};
	struct cgpu_obj what = { .gpu = -1 };
	int minor = f->node->minor;
	struct cgpu_view v;
	long ret;

	if (size != sizeof(args))
		return -EINVAL;
	if (copy_from_user(&args, arg, size))
		return -EFAULT;
	if (cgpu_class_is_refused(args.params.h_class)) {
		args.params.status = NV_ERR_INVALID_CLASS;
		return copy_to_user(arg, &args, size) ? -EFAULT : 0;
	}
	what.client = args.params.h_root;
	what.parent = args.params.h_object_parent;
	what.class = args.params.h_class;
	ret = cgpu_call(&call);
	if (ret)
		return ret;
	what.handle = args.params.h_object_new;
	if (!args.params.status && what.class != NV01_MEMORY_LOCAL_USER)
		ret = cgpu_track(f, &what, 0, NULL);
	if (!args.params.status && what.class == NV01_MEMORY_LOCAL_USER) {
		mutex_lock(&f->node->inst->lock);
		cgpu_view_of(f, minor, &v);
		mutex_unlock(&f->node->inst->lock);
		args.params.limit = v.limit - 1;
	}
	return copy_to_user(arg, &args, size) ? -EFAULT : ret;
}
