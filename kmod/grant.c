// SPDX-License-Identifier: GPL-2.0-only
/*
 * The charge of a call in progress: taken before the driver is asked, raised to
 * what the driver gave, held by the object or given back.
 */
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
