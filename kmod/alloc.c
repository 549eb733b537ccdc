// SPDX-License-Identifier: GPL-2.0-only
/*
 * RM_ALLOC and RM_FREE. Memory of the GPU is charged before the driver is asked
 * and given back if it refuses; beyond the limit the answer is the driver's own
 * "no memory", in its own status field.
 */
#include <linux/uaccess.h>
#include "grant.h"

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
	/* A client that is gone may be somebody else's soon. */
	if (!args.status ||
	    (handle == client && !call.sure && !cgpu_client_is_ours(f, client)))
		cgpu_untrack(f, client, handle);
	return copy_to_user(arg, &args, sizeof(args)) ? -EFAULT : 0;
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
 * @sure: nobody but the driver can have written the answer
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
	bool sure;
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

/**
 * cgpu_class_is_refused() - classes that a container has no business with
 * @class: of what is to be made
 *
 * Context: any.
 * Return: true for what no container gets.
 */
bool cgpu_class_is_refused(u32 class)
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

/* A device may live in another client's address space, if that is the container's. */
static bool shares_own_memory(struct cgpu_file *f, struct alloc *a)
{
	u32 share = U32_AT(a->nested, offsetof(struct nv0080_alloc_parameters,
					       h_client_share));
	u32 target = U32_AT(a->nested, offsetof(struct nv0080_alloc_parameters,
						h_target_client));

	return !a->nested_size || ((!share || cgpu_known(f, share, share)) &&
				   (!target || cgpu_known(f, target, target)));
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
	if (!shares_own_memory(f, a))
		*status = NV_ERR_INVALID_CLIENT;
	else if (!node)
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
	if (cgpu_class_is_refused(a->args.head.h_class))
		return NV_ERR_INVALID_CLASS;
	if (is_client(a->args.head.h_class))
		return NV_OK;
	/* Of memory this is seen when it is charged. */
	if (a->args.head.h_class != NV01_MEMORY_LOCAL_USER &&
	    !cgpu_known(f, g->client, g->parent))
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

static int check_client(struct cgpu_file *f, u32 client)
{
	if (cgpu_client_is_ours(f, client))
		return 0;
	pr_warn_ratelimited("%s: client %#x refused: the driver does not take it for the file's\n",
			    f->node->inst->id, client);
	return -EPERM;
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
		ret = a->sure ? 0 : check_client(f, what.handle);
		if (ret)
			return ret;
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
	a->sure = call.sure;
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
