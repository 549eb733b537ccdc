/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that is charged for a call in progress: grant.c, for alloc.c and heap.c. */
#ifndef CGPU_GRANT_H
#define CGPU_GRANT_H

#include "cgpu.h"

#define U32_AT(p, at)		(*(u32 *)((u8 *)(p) + (at)))
#define U64_AT(p, at)		(*(u64 *)((u8 *)(p) + (at)))

/**
 * struct grant - memory that was charged for a call in progress
 * @gpu: the GPU's minor
 * @bytes: charged, 0 = nothing
 * @client: of the handle
 * @parent: of the handle
 * @handle: known before the call
 */
struct grant {
	int gpu;
	u64 bytes;
	u32 client;
	u32 parent;
	u32 handle;
};

bool cgpu_class_is_refused(u32 class);
bool cgpu_client_is_ours(struct cgpu_file *f, u32 client);
void cgpu_free_handle(struct cgpu_file *f, u32 client, u32 parent, u32 handle);
u32 cgpu_grant_begin(struct cgpu_file *f, struct grant *g);
void cgpu_grant_undo(struct cgpu_file *f, struct grant *g);
void cgpu_grant_add_rounding(struct cgpu_file *f, struct grant *g, u64 limit);
int cgpu_grant_commit(struct cgpu_file *f, struct grant *g,
		      struct cgpu_obj *what);

#endif
