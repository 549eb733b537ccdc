/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The driver's objects as far as memory and gates depend on them: a tree per
 * client, with dependants, over memory that several handles may share. The
 * caller allocates, locks and frees.
 */
#ifndef CGPU_OBJECTS_H
#define CGPU_OBJECTS_H

#include <linux/list.h>
#include <linux/types.h>

#define CGPU_OBJ_BUCKETS	256

/**
 * struct cgpu_phys - memory that is charged once, however many handles it has
 * @refs: handles
 * @holds: those who keep it and are no handle
 * @bytes: charged
 * @gpu: GPU whose account holds the charge
 */
struct cgpu_phys {
	u32 refs;
	u32 holds;
	u64 bytes;
	int gpu;
};

/**
 * struct cgpu_obj - one handle
 * @node: in the table
 * @freed: in the list of what a free took along
 * @owner: the control file whose client it belongs to
 * @client: the client's handle
 * @handle: its own
 * @parent: the parent's
 * @needs: another object of the client that it cannot outlive, 0 = none
 * @class: what it is
 * @gpu: minor of the GPU, -1 = none
 * @pid: process that made it
 * @phys: charged memory, NULL = none
 * @users: objects that fall with it
 * @orphan: what it falls with was not in the table when it came
 */
struct cgpu_obj {
	struct hlist_node node;
	struct list_head freed;
	const void *owner;
	u32 client;
	u32 handle;
	u32 parent;
	u32 needs;
	u32 class;
	int gpu;
	int pid;
	struct cgpu_phys *phys;
	u32 users;
	bool orphan;
};

/**
 * struct cgpu_objs - the objects of one instance
 * @bucket: by client and handle
 * @count: how many
 * @orphans: how many of them are orphans
 */
struct cgpu_objs {
	struct hlist_head bucket[CGPU_OBJ_BUCKETS];
	u32 count;
	u32 orphans;
};

void cgpu_objs_init(struct cgpu_objs *t);
struct cgpu_obj *cgpu_objs_find(struct cgpu_objs *t, u32 client, u32 handle);
void cgpu_objs_add(struct cgpu_objs *t, struct cgpu_obj *o);
void cgpu_objs_remove(struct cgpu_objs *t, u32 client, u32 handle,
		      struct list_head *freed);
void cgpu_objs_remove_owner(struct cgpu_objs *t, const void *owner,
			    struct list_head *freed);
bool cgpu_phys_put(struct cgpu_phys *p);
u64 cgpu_objs_bytes(struct cgpu_objs *t, int pid, int gpu);

#endif
