// SPDX-License-Identifier: GPL-2.0-only
/*
 * RM_CONTROL: the command is frozen, its parameters stay the caller's, except
 * where they name a descriptor. Replies are changed after the driver's.
 */
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "grant.h"

/*
 * struct fd_control - a control whose parameters name a descriptor
 * @cmd: the control
 * @fd_at: where
 */
static const struct fd_control {
	u32 cmd;
	u32 fd_at;
} fd_controls[] = {
	{ NV0000_CTRL_OS_UNIX_EXPORT_OBJECT_TO_FD,
	  offsetof(struct nv0000_ctrl_os_unix_export_object_to_fd_params, fd) },
	{ NV0000_CTRL_OS_UNIX_IMPORT_OBJECT_FROM_FD,
	  offsetof(struct nv0000_ctrl_os_unix_import_object_from_fd_params, fd) },
	{ NV0000_CTRL_OS_UNIX_GET_EXPORT_OBJECT_INFO,
	  offsetof(struct nv0000_ctrl_os_unix_get_export_object_info_params, fd) },
};

static const struct fd_control *fd_control_of(u32 cmd)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(fd_controls); i++)
		if (fd_controls[i].cmd == cmd)
			return &fd_controls[i];
	return NULL;
}

/* Controls that move several objects, or GPUs that are not the container's. */
static bool is_refused(u32 cmd)
{
	return cmd == NV0000_CTRL_OS_UNIX_CREATE_EXPORT_OBJECT_FD ||
	       cmd == NV0000_CTRL_OS_UNIX_EXPORT_OBJECTS_TO_FD ||
	       cmd == NV0000_CTRL_OS_UNIX_IMPORT_OBJECTS_FROM_FD ||
	       cmd == NV0080_CTRL_FIFO_STOP_RUNLIST ||
	       cmd == NV0080_CTRL_FIFO_START_RUNLIST;
}

static long call_control(struct cgpu_file *f, u32 cmd,
			 struct nvos54_parameters *args)
{
	struct cgpu_call call = {
		.f = f, .cmd = cmd, .args = args, .size = sizeof(*args),
	};

	return cgpu_call(&call);
}

/*
 * The memory behind an exported object is held by the exporting file too, from
 * before the call and whatever it answers.
 */
static void note_export(struct cgpu_file *f, struct cgpu_file *holder,
			u32 client, u32 handle)
{
	struct cgpu_inst *inst = f->node->inst;
	struct cgpu_obj *o;

	mutex_lock(&inst->lock);
	o = cgpu_objs_find(&inst->objs, client, handle);
	if (o && o->phys && !holder->exported) {
		o->phys->refs++;
		holder->exported = o->phys;
	}
	mutex_unlock(&inst->lock);
}

/* The handle is chosen before the call: what comes back may be forged. */
static u32 prepare_import(struct cgpu_file *f, u32 client, void *params,
			  struct cgpu_obj *what)
{
	struct nv0000_ctrl_os_unix_import_object_from_fd_params *import = params;

	if (!import->object.h_object)
		import->object.h_object = cgpu_new_handle(f);
	what->client = client;
	what->parent = import->object.h_parent;
	what->handle = import->object.h_object;
	what->class = NV01_MEMORY_LOCAL_USER;
	return cgpu_known(f, client, what->handle) ?
	       NV_ERR_INSERT_DUPLICATE_NAME : NV_OK;
}

static int finish_import(struct cgpu_file *f, struct cgpu_file *holder,
			 struct cgpu_obj *what, bool done)
{
	what->gpu = holder->exported ? holder->exported->gpu : -1;
	if (done)
		return cgpu_track(f, what, 0, holder->exported);
	cgpu_free_handle(f, what->client, what->parent, what->handle);
	return 0;
}

/* The file that was checked is the one that the driver sees. */
static long call_with_fd(struct cgpu_file *f, u32 cmd,
			 struct nvos54_parameters *args, void *params,
			 const struct fd_control *control)
{
	s32 *fd = params + control->fd_at;
	const struct nv0000_ctrl_os_unix_export_object *object = params;
	u32 client = args->h_client, exported = object->h_object;
	s32 users = *fd;
	struct cgpu_call call = {
		.f = f, .cmd = cmd, .args = args, .size = sizeof(*args),
		.nested = params, .nested_size = args->params_size,
		.nested_at = offsetof(struct nvos54_parameters, params),
		.fd_at = CGPU_NESTED_AT + control->fd_at,
	};
	bool import = control->cmd == NV0000_CTRL_OS_UNIX_IMPORT_OBJECT_FROM_FD;
	struct cgpu_obj what = { };
	struct cgpu_file *holder;
	long ret = 0;

	args->status = import ? prepare_import(f, client, params, &what) : NV_OK;
	if (args->status)
		return 0;
	holder = cgpu_own_file(f, users, &call.genuine);
	if (IS_ERR(holder)) {
		args->status = NV_ERR_INVALID_ARGUMENT;
		return 0;
	}
	if (control->cmd == NV0000_CTRL_OS_UNIX_EXPORT_OBJECT_TO_FD)
		note_export(f, holder, client, exported);
	ret = cgpu_call(&call);
	*fd = users;
	if (import)
		ret = finish_import(f, holder, &what, !ret && !args->status) ?: ret;
	fput(call.genuine);
	return ret;
}

static long fd_control(struct cgpu_file *f, u32 cmd,
		       struct nvos54_parameters *args,
		       const struct fd_control *control)
{
	void __user *user = (void __user *)args->params;
	u32 size = args->params_size;
	u8 params[128];
	long ret;

	if (size > sizeof(params) || size < control->fd_at + sizeof(s32) ||
	    size < sizeof(struct nv0000_ctrl_os_unix_export_object)) {
		args->status = NV_ERR_INVALID_PARAM_STRUCT;
		return 0;
	}
	if (copy_from_user(params, user, size))
		return -EFAULT;
	ret = call_with_fd(f, cmd, args, params, control);
	if (ret)
		return ret;
	return copy_to_user(user, params, size) ? -EFAULT : 0;
}

static void apply(struct cgpu_file *f, const struct cgpu_reply *reply, int gpu,
		  void *params, u32 size)
{
	struct cgpu_inst *inst = f->node->inst;
	struct cgpu_view v;

	mutex_lock(&inst->lock);
	cgpu_view_of(f, gpu, &v);
	reply->change(params, size, &v);
	mutex_unlock(&inst->lock);
}

static int change_reply(struct cgpu_file *f, const struct cgpu_reply *reply,
			int gpu, void __user *user, u32 size)
{
	void *params = kvmalloc(size, GFP_KERNEL);
	int ret = -EFAULT;

	if (!params)
		return -ENOMEM;
	if (copy_from_user(params, user, size))
		goto free;
	apply(f, reply, gpu, params, size);
	if (!copy_to_user(user, params, size))
		ret = 0;
free:
	kvfree(params);
	return ret;
}

/* FB_GET_INFO keeps its list in the caller's memory. */
static int change_fb_list(struct cgpu_file *f, int gpu, void __user *user)
{
	struct nv2080_ctrl_fb_get_info_params p;
	struct nv2080_ctrl_fb_info entry;
	struct nv2080_ctrl_fb_info __user *list;
	struct cgpu_view v;
	u32 i;

	if (copy_from_user(&p, user, sizeof(p)))
		return -EFAULT;
	mutex_lock(&f->node->inst->lock);
	cgpu_view_of(f, gpu, &v);
	mutex_unlock(&f->node->inst->lock);
	list = (void __user *)p.fb_info_list;
	for (i = 0; i < min(p.fb_info_list_size, 256U); i++) {
		if (copy_from_user(&entry, &list[i], sizeof(entry)))
			return -EFAULT;
		entry.data = cgpu_reply_fb(entry.index, entry.data, &v);
		if (put_user(entry.data, &list[i].data))
			return -EFAULT;
	}
	return 0;
}

static int after_control(struct cgpu_file *f, u32 cmd, u32 client, u32 object,
			 void __user *user, u32 size)
{
	const struct cgpu_reply *reply = cgpu_reply_find(cmd, size);
	int gpu = cgpu_gpu_of(f, client, object);

	if (cmd == NV2080_CTRL_FB_GET_INFO && gpu >= 0)
		return change_fb_list(f, gpu, user);
	if (!reply || size > NV_CONTROL_MAX_SIZE)
		return 0;
	return change_reply(f, reply, gpu, user, size);
}

static long run_control(struct cgpu_file *f, u32 cmd,
			struct nvos54_parameters *args)
{
	const struct fd_control *control = fd_control_of(args->cmd);
	void __user *user = (void __user *)args->params;
	u32 which = args->cmd, client = args->h_client;
	u32 object = args->h_object, size = args->params_size;
	long ret;

	if (is_refused(which)) {
		args->status = NV_ERR_INSUFFICIENT_PERMISSIONS;
		return 0;
	}
	if (control)
		return fd_control(f, cmd, args, control);
	ret = call_control(f, cmd, args);
	if (ret || args->status)
		return ret;
	return after_control(f, which, client, object, user, size);
}

/**
 * cgpu_esc_control() - RM_CONTROL
 * @f: the control file
 * @cmd: the ioctl
 * @size: bytes of its arguments
 * @arg: the arguments
 *
 * Context: process; f->lock is held.
 * Return: 0 or an errno.
 */
long cgpu_esc_control(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg)
{
	struct nvos54_parameters args;
	long ret;

	if (size != sizeof(args))
		return -EINVAL;
	if (copy_from_user(&args, arg, size))
		return -EFAULT;
	ret = run_control(f, cmd, &args);
	if (ret)
		return ret;
	return copy_to_user(arg, &args, size) ? -EFAULT : 0;
}
