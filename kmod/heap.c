// SPDX-License-Identifier: GPL-2.0-only
/* VID_HEAP_CONTROL: how drivers before 550 make memory, and tell its size. */
#include <linux/uaccess.h>
#include "grant.h"

/*
 * struct heap_layout - where an allocation's figures stand
 * @size: bytes of the arguments, which tell the branch's layout
 * @function: the allocation function
 * @attr: its attributes
 * @bytes: what is asked
 * @limit: what was given, less one
 */
static const struct heap_layout {
	u32 size, function, attr, bytes, limit;
} heap_layouts[] = {
#define HEAP(type, nr, member)						\
	{ sizeof(struct type), nr, offsetof(struct type, data.member.attr), \
	  offsetof(struct type, data.member.size),			\
	  offsetof(struct type, data.member.limit) }
	HEAP(nvos32_parameters, NVOS32_FUNCTION_ALLOC_SIZE, alloc_size),
	HEAP(nvos32_parameters, NVOS32_FUNCTION_ALLOC_DEPTH,
	     alloc_depth_width_height),
	HEAP(nvos32_parameters, NVOS32_FUNCTION_ALLOC_TILED_PITCH,
	     alloc_tiled_pitch_height),
	HEAP(nvos32_parameters, NVOS32_FUNCTION_ALLOC_SIZE_RANGE,
	     alloc_size_range),
	HEAP(nvos32_parameters_418, NVOS32_FUNCTION_ALLOC_SIZE, alloc_size),
};

static const struct heap_layout *heap_layout_of(u32 size, u32 function)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(heap_layouts); i++)
		if (heap_layouts[i].size == size &&
		    heap_layouts[i].function == function)
			return &heap_layouts[i];
	return NULL;
}

/* Functions that neither make nor move GPU memory. */
static bool is_harmless(u32 function)
{
	return function == NVOS32_FUNCTION_FREE ||
	       function == NVOS32_FUNCTION_INFO ||
	       function == NVOS32_FUNCTION_GET_MEM_ALIGNMENT ||
	       function == NVOS32_FUNCTION_ALLOC_OS_DESC;
}

static bool is_vidmem(const struct nvos32_parameters *args,
		      const struct heap_layout *l)
{
	u32 attr = U32_AT(args, l->attr);

	return !(args->data.alloc_size.flags & NVOS32_FLAGS_VIRTUAL) &&
	       NVOS32_ATTR_LOCATION(attr) == NVOS32_ATTR_LOCATION_VIDMEM;
}

static u32 begin_heap(struct cgpu_file *f, struct nvos32_parameters *args,
		      const struct heap_layout *l, struct grant *g)
{
	struct nvos32_alloc_size *alloc = &args->data.alloc_size;
	u32 status;

	if (!(alloc->flags & NVOS32_FLAGS_MEMORY_HANDLE_PROVIDED) ||
	    !alloc->h_memory) {
		alloc->h_memory = alloc->h_memory ?: cgpu_new_handle(f);
		alloc->flags |= NVOS32_FLAGS_MEMORY_HANDLE_PROVIDED;
	}
	g->handle = alloc->h_memory;
	g->bytes = U64_AT(args, l->bytes);
	status = cgpu_grant_begin(f, g);
	if (status)
		g->bytes = 0;
	return status;
}

static void tell_heap(struct cgpu_file *f, struct nvos32_parameters *args,
		      int gpu)
{
	struct cgpu_view v;

	if (gpu < 0)
		return;
	mutex_lock(&f->node->inst->lock);
	cgpu_view_of(f, gpu, &v);
	mutex_unlock(&f->node->inst->lock);
	args->total = v.limit;
	args->free = v.limit > v.used ? v.limit - v.used : 0;
	args->data.info.size = min(args->data.info.size, args->free);
	args->data.info.base = 0;
}

static int finish_heap(struct cgpu_file *f, struct nvos32_parameters *args,
		       const struct heap_layout *l, struct grant *g,
		       u32 function, u32 freed)
{
	struct cgpu_obj what = {
		.client = g->client, .parent = g->parent, .gpu = g->gpu,
		.class = g->bytes ? NV01_MEMORY_LOCAL_USER : NV01_MEMORY_SYSTEM,
	};

	if (function == NVOS32_FUNCTION_FREE)
		cgpu_untrack(f, g->client, freed);
	if (function == NVOS32_FUNCTION_INFO)
		tell_heap(f, args, g->gpu);
	if (!l)
		return 0;
	args->total = 0;
	args->free = 0;
	what.handle = g->bytes ? g->handle : args->data.alloc_size.h_memory;
	cgpu_grant_add_rounding(f, g, U64_AT(args, l->limit));
	return cgpu_grant_commit(f, g, &what);
}

static long run_heap(struct cgpu_file *f, u32 cmd, u32 size,
		     struct nvos32_parameters *args)
{
	const struct heap_layout *l = heap_layout_of(size, args->function);
	struct cgpu_call call = {
		.f = f, .cmd = cmd, .args = args, .size = size,
	};
	struct grant g = {
		.client = args->h_root, .parent = args->h_object_parent,
		.gpu = cgpu_gpu_of(f, args->h_root, args->h_object_parent),
	};
	u32 function = args->function, freed = args->data.free.h_memory;
	long ret;

	args->status = NV_OK;
	if (!l && !is_harmless(function))
		args->status = NV_ERR_NOT_SUPPORTED;
	else if (l && is_vidmem(args, l))
		args->status = begin_heap(f, args, l, &g);
	if (args->status)
		return 0;
	ret = cgpu_call(&call);
	if (!ret && !args->status)
		return finish_heap(f, args, l, &g, function, freed);
	cgpu_grant_undo(f, &g);
	return ret;
}

/**
 * cgpu_esc_heap() - RM_VID_HEAP_CONTROL
 * @f: the control file
 * @cmd: the ioctl
 * @size: bytes of its arguments
 * @arg: the arguments
 *
 * Context: process; f->lock is held.
 * Return: 0 or an errno.
 */
long cgpu_esc_heap(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg)
{
	union {
		struct nvos32_parameters now;
		struct nvos32_parameters_418 old;
	} args;
	long ret;

	if (size != sizeof(args.now) && size != sizeof(args.old))
		return -EINVAL;
	if (copy_from_user(&args, arg, size))
		return -EFAULT;
	ret = run_heap(f, cmd, size, &args.now);
	if (ret)
		return ret;
	return copy_to_user(arg, &args, size) ? -EFAULT : 0;
}
