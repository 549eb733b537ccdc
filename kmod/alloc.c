// SPDX-License-Identifier: GPL-2.0-only
/*
 * Escapes that make and free objects. Memory of the GPU is charged before the
 * driver is asked and given back if it refuses; beyond the limit the answer is
 * the driver's own "no memory", in its own status field.
 */
#include <linux/uaccess.h>
#include "grant.h"

/* The driver rounds up to its page size, never by more than this. */
#define ROUNDING_MOST		(4ULL << 20)

/**
 * cgpu_free_handle() - end a handle that the table does not have
 * @f: the control file
 * @client: its client
 * @parent: its parent
 * @handle: the handle; that it does not exist is fine
 *
 * Context: process; f->lock is held.
 */
void cgpu_free_handle(struct cgpu_file *f, u32 client, u32 parent, u32 handle)
{
	struct nvos00_parameters args = {
		.h_root = client, .h_object_parent = parent,
		.h_object_old = handle,
	};
	struct cgpu_call call = {
		.f = f, .cmd = NV_IOCTL(NV_ESC_RM_FREE, sizeof(args)),
		.args = &args, .size = sizeof(args),
	};

	cgpu_call(&call);
}

/**
 * cgpu_esc_free() - RM_FREE
 * @f: the control file
 * @cmd: the ioctl
 * @size: bytes of its arguments
 * @arg: the arguments
 *
 * Context: process; f->lock is held.
 * Return: 0 or an errno.
 */
long cgpu_esc_free(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg)
{
	struct nvos00_parameters args;
	struct cgpu_call call = {
		.f = f, .cmd = cmd, .args = &args, .size = sizeof(args),
	};
	u32 client, handle;
	long ret;

	if (size != sizeof(args))
		return -EINVAL;
	if (copy_from_user(&args, arg, sizeof(args)))
		return -EFAULT;
	client = args.h_root;
	handle = args.h_object_old;
	ret = cgpu_call(&call);
	if (ret)
		return ret;
	if (!args.status)
		cgpu_untrack(f, client, handle);
	return copy_to_user(arg, &args, sizeof(args)) ? -EFAULT : 0;
}

/**
 * cgpu_grant_begin() - charge memory before the driver is asked
 * @f: the control file
 * @g: what is wanted
 *
 * Context: process; f->lock is held.
 * Return: an RM status.
 */
u32 cgpu_grant_begin(struct cgpu_file *f, struct grant *g)
{
	if (cgpu_known(f, g->client, g->handle))
		return NV_ERR_INSERT_DUPLICATE_NAME;
	if (g->gpu < 0)
		return NV_ERR_INVALID_OBJECT_PARENT;
	return cgpu_charge(f->node->inst, g->gpu, g->bytes) ?
	       NV_OK : NV_ERR_NO_MEMORY;
}

/**
 * cgpu_grant_undo() - the driver refused, or the table has no room
 * @f: the control file
 * @g: what was charged
 *
 * Whatever the caller's memory says now, the handle must not exist before its
 * charge is dropped.
 *
 * Context: process; f->lock is held.
 */
void cgpu_grant_undo(struct cgpu_file *f, struct grant *g)
{
	if (!g->bytes)
		return;
	cgpu_free_handle(f, g->client, g->parent, g->handle);
	cgpu_uncharge_bytes(f->node->inst, g->gpu, g->bytes);
}

/**
 * cgpu_grant_add_rounding() - the size that the driver gave
 * @f: the control file
 * @g: what was charged
 * @limit: last byte, as the driver told; believed upwards only, and not far
 *
 * Context: process; f->lock is held.
 */
void cgpu_grant_add_rounding(struct cgpu_file *f, struct grant *g, u64 limit)
{
	u64 actual = limit + 1;

	if (!g->bytes || actual <= g->bytes ||
	    actual - g->bytes >= ROUNDING_MOST)
		return;
	cgpu_charge_rounding(f->node->inst, g->gpu, actual - g->bytes);
	g->bytes = actual;
}

/**
 * cgpu_grant_commit() - the driver agreed: the object holds the charge
 * @f: the control file
 * @g: what was charged
 * @what: the object
 *
 * Context: process; f->lock is held.
 * Return: 0 or an errno, and then nothing is left.
 */
int cgpu_grant_commit(struct cgpu_file *f, struct grant *g, struct cgpu_obj *what)
{
	int ret = cgpu_track(f, what, g->bytes, NULL);

	if (ret)
		cgpu_grant_undo(f, g);
	return ret;
}

/* ---- RM_ALLOC ---- */

/**
 * struct alloc - one RM_ALLOC on its way
 * @args: arguments
 * @size: their bytes
 * @status_at: where the status stands
 * @nested: copy of the parameters, for the classes whose size we know
 * @nested_size: their bytes, 0 = the caller's own are used
 * @limit_at: where the driver tells the size it gave, 0 = nowhere
 */
struct alloc {
	union {
		struct nvos64_parameters_535 head;
		u8 bytes[sizeof(struct nvos64_parameters_535)];
	} args;
	u32 size;
	u32 status_at;
	u8 nested[128];
	u32 nested_size;
	u32 limit_at;
};

static u32 status_at(u32 size)
{
	switch (size) {
	case sizeof(struct nvos64_parameters):
		return offsetof(struct nvos64_parameters, status);
	case sizeof(struct nvos64_parameters_535):
		return offsetof(struct nvos64_parameters_535, status);
	case sizeof(struct nvos21_parameters):
		return cgpu_branch < 535 ?
		       offsetof(struct nvos21_parameters, status) :
		       offsetof(struct nvos21_parameters_535, status);
	}
	return 0;
}

/* Classes that a container has no business with. */
static bool is_refused(u32 class)
{
	switch (class) {
	case NV01_MEMORY_LOCAL_PRIVILEGED:
	case NV01_MEMORY_LOCAL_PHYSICAL:
	case NV01_MEMORY_LIST_SYSTEM:
	case NV01_MEMORY_LIST_FBMEM:
	case NV01_MEMORY_LIST_OBJECT:
	case RM_USER_SHARED_DATA:
	case NV_MEMORY_EXPORT:
	case NV_MEMORY_FABRIC:
	case NV_MEMORY_FABRIC_IMPORT:
	case NV_MEMORY_FABRIC_IMPORT_REF:
		return true;
	}
	return false;
}

static bool is_client(u32 class)
{
	return class == NV01_ROOT || class == NV01_ROOT_NON_PRIV ||
	       class == NV01_ROOT_CLIENT;
}

static int copy_nested(struct alloc *a, u32 size)
{
	void __user *from = (void __user *)a->args.head.p_alloc_parms;

	if (!from)
		return 0;
	a->nested_size = size;
	return copy_from_user(a->nested, from, size) ? -EFAULT : 0;
}

static int gpu_of_instance(struct cgpu_file *f, u32 instance)
{
	int minor;

	for (minor = 0; minor < NV_MAX_DEVICES; minor++)
		if (f->node->inst->share[minor] &&
		    cgpu_gpus[minor]->instance == instance)
			return minor;
	return -1;
}

/* A device: only the container's own; the driver may look for a file of it. */
static int prepare_device(struct cgpu_file *f, struct alloc *a, struct grant *g,
			  struct cgpu_call *call, u32 *status)
{
	struct cgpu_node *node;
	int ret;

	ret = copy_nested(a, sizeof(struct nv0080_alloc_parameters));
	if (ret)
		return ret;
	g->gpu = gpu_of_instance(f, a->nested_size ? U32_AT(a->nested, 0) : 0);
	node = g->gpu >= 0 ? cgpu_node_of(f, g->gpu) : NULL;
	if (!node)
		*status = NV_ERR_INVALID_DEVICE;
	else if (cgpu_branch >= 550)
		call->genuine = node->genuine;
	return 0;
}

static int prepare_memory(struct cgpu_file *f, struct alloc *a, struct grant *g,
			  u32 *status)
{
	u32 size = cgpu_branch >= 545 ?
		   sizeof(struct nv_memory_allocation_params_545) :
		   sizeof(struct nv_memory_allocation_params);
	int ret = copy_nested(a, size);

	if (ret)
		return ret;
	if (!a->nested_size) {
		*status = NV_ERR_INVALID_POINTER;
		return 0;
	}
	a->limit_at = offsetof(struct nv_memory_allocation_params, limit);
	g->bytes = U64_AT(a->nested, offsetof(struct nv_memory_allocation_params,
					      size));
	g->gpu = cgpu_gpu_of(f, g->client, g->parent);
	*status = cgpu_grant_begin(f, g);
	if (*status)
		g->bytes = 0;
	return 0;
}

/*
 * The place in the tree must be known, and the handle before the call: what
 * comes back may be forged, and an object that the table lacks has no limit.
 */
static u32 place(struct cgpu_file *f, struct alloc *a, struct grant *g)
{
	if (is_refused(a->args.head.h_class))
		return NV_ERR_INVALID_CLASS;
	if (is_client(a->args.head.h_class))
		return NV_OK;
	if (!cgpu_known(f, g->client, g->parent))
		return NV_ERR_INVALID_OBJECT_PARENT;
	if (!g->handle)
		g->handle = cgpu_new_handle(f);
	a->args.head.h_object_new = g->handle;
	return NV_OK;
}

static int prepare(struct cgpu_file *f, struct alloc *a, struct grant *g,
		   struct cgpu_call *call, u32 *status)
{
	u32 class = a->args.head.h_class;

	*status = place(f, a, g);
	if (*status)
		return 0;
	if (class == NV01_DEVICE_0)
		return prepare_device(f, a, g, call, status);
	if (class == NV01_MEMORY_LOCAL_USER)
		return prepare_memory(f, a, g, status);
	return 0;
}

static bool is_channel(const struct cgpu_obj *what)
{
	return NV_CLASS_FAMILY(what->class) == NV_FAMILY_GPFIFO;
}

/* What a channel cannot outlive, and where its ring lies. */
static void read_channel(const struct alloc *a,
			 struct nv_channel_alloc_params *params)
{
	const void __user *from =
		(const void __user *)a->args.head.p_alloc_parms;

	if (!from ||
	    copy_from_user(params, from,
			   offsetofend(struct nv_channel_alloc_params,
				       h_userd_memory)))
		memset(params, 0, sizeof(*params));
}

static void note_channel(struct cgpu_file *f, const struct cgpu_obj *what,
			 const struct nv_channel_alloc_params *params)
{
	int gpu = cgpu_gpu_of(f, what->client, what->handle);
	struct cgpu_share *share = gpu < 0 ? NULL : f->node->inst->share[gpu];

	if (share)
		cgpu_work_add(share, what->client, what->handle,
			      params->gp_fifo_offset, params->gp_fifo_entries);
}

static int finish_alloc(struct cgpu_file *f, struct alloc *a, struct grant *g)
{
	const struct nvos64_parameters_535 *head = &a->args.head;
	struct cgpu_obj what = {
		.client = g->client, .parent = g->parent,
		.handle = g->handle, .class = head->h_class, .gpu = g->gpu,
	};
	struct nv_channel_alloc_params params;
	int ret;

	if (is_client(what.class)) {
		what.handle = head->h_object_new;
		what.client = what.handle;
		what.parent = 0;
	}
	if (is_channel(&what)) {
		read_channel(a, &params);
		what.needs = params.h_userd_memory[0];
	}
	if (a->limit_at)
		cgpu_grant_add_rounding(f, g, U64_AT(a->nested, a->limit_at));
	ret = cgpu_grant_commit(f, g, &what);
	if (!ret && is_channel(&what))
		note_channel(f, &what, &params);
	return ret;
}

static int give_back(const struct alloc *a, void __user *arg)
{
	void __user *to = (void __user *)a->args.head.p_alloc_parms;

	if (a->nested_size && copy_to_user(to, a->nested, a->nested_size))
		return -EFAULT;
	return copy_to_user(arg, &a->args, a->size) ? -EFAULT : 0;
}

static long run_alloc(struct cgpu_file *f, u32 cmd, struct alloc *a,
		      void __user *arg)
{
	struct nvos64_parameters_535 *head = &a->args.head;
	struct grant g = {
		.gpu = -1, .client = head->h_root,
		.parent = head->h_object_parent, .handle = head->h_object_new,
	};
	struct cgpu_call call = {
		.f = f, .cmd = cmd, .args = &a->args, .size = a->size,
	};
	u32 status = NV_OK, class = head->h_class;
	long ret;

	ret = prepare(f, a, &g, &call, &status);
	if (ret)
		return ret;
	if (status) {
		U32_AT(&a->args, a->status_at) = status;
		return give_back(a, arg);
	}
	call.nested = a->nested_size ? a->nested : NULL;
	call.nested_size = a->nested_size;
	call.nested_at = offsetof(struct nvos64_parameters, p_alloc_parms);
	ret = cgpu_call(&call);
	head->h_class = class;
	if (ret || U32_AT(&a->args, a->status_at))
		cgpu_grant_undo(f, &g);
	else
		ret = finish_alloc(f, a, &g);
	return ret ?: give_back(a, arg);
}

/**
 * cgpu_esc_alloc() - RM_ALLOC
 * @f: the control file
 * @cmd: the ioctl
 * @size: bytes of its arguments
 * @arg: the arguments
 *
 * Context: process; f->lock is held.
 * Return: 0 or an errno.
 */
long cgpu_esc_alloc(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg)
{
	struct alloc a = { .size = size, .status_at = status_at(size) };

	if (!a.status_at)
		return -EINVAL;
	if (copy_from_user(&a.args, arg, size))
		return -EFAULT;
	return run_alloc(f, cmd, &a, arg);
}

/* ---- ALLOC_MEMORY: host memory, and an old way to ask for the heap ---- */

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
	if (is_refused(args.params.h_class)) {
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
