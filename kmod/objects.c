// SPDX-License-Identifier: GPL-2.0-only
/* The tree of objects: see objects.h. */
#include "objects.h"

#ifdef __KERNEL__
#include <linux/hash.h>
#else
#include "tests/shim/host.h"
#endif

static struct hlist_head *bucket(struct cgpu_objs *t, u32 client, u32 handle)
{
	u32 mixed = (client * 0x9e3779b1u) ^ (handle * 0x85ebca6bu);

	return &t->bucket[(mixed >> 16 ^ mixed) % CGPU_OBJ_BUCKETS];
}

/**
 * cgpu_objs_init() - an empty table
 * @t: the table
 *
 * Context: any.
 */
void cgpu_objs_init(struct cgpu_objs *t)
{
	int i;

	for (i = 0; i < CGPU_OBJ_BUCKETS; i++)
		INIT_HLIST_HEAD(&t->bucket[i]);
	t->count = 0;
	t->orphans = 0;
}

/**
 * cgpu_objs_find() - look a handle up
 * @t: the table
 * @client: the client's handle
 * @handle: the object's
 *
 * Context: the table's lock is held.
 * Return: the object, or NULL.
 */
struct cgpu_obj *cgpu_objs_find(struct cgpu_objs *t, u32 client, u32 handle)
{
	struct cgpu_obj *o;

	hlist_for_each_entry(o, bucket(t, client, handle), node)
		if (o->client == client && o->handle == handle)
			return o;
	return NULL;
}

/* Counts an object among those that fall with another. False if it is not there. */
static bool lean_on(struct cgpu_objs *t, const struct cgpu_obj *o, u32 handle,
		    int by)
{
	struct cgpu_obj *other;

	if (!handle)
		return true;
	other = cgpu_objs_find(t, o->client, handle);
	if (other)
		other->users += by;
	return other;
}

/**
 * cgpu_objs_add() - enter an object, with the GPU of its parent if it has none
 * @t: the table
 * @o: the object; its memory's reference goes to the table
 *
 * Context: the table's lock is held; the handle is not in the table.
 */
void cgpu_objs_add(struct cgpu_objs *t, struct cgpu_obj *o)
{
	struct cgpu_obj *parent = cgpu_objs_find(t, o->client, o->parent);

	if (o->gpu < 0)
		o->gpu = parent ? parent->gpu : -1;
	o->users = 0;
	o->orphan = !lean_on(t, o, o->parent, 1) || !lean_on(t, o, o->needs, 1);
	t->orphans += o->orphan;
	hlist_add_head(&o->node, bucket(t, o->client, o->handle));
	t->count++;
}

static void take(struct cgpu_objs *t, struct cgpu_obj *o,
		 struct list_head *freed)
{
	hlist_del_init(&o->node);
	list_add_tail(&o->freed, freed);
	t->count--;
	t->orphans -= o->orphan;
	if (o->orphan)
		return;
	lean_on(t, o, o->parent, -1);
	lean_on(t, o, o->needs, -1);
}

static bool falls_with(const struct cgpu_obj *o, const struct cgpu_obj *gone)
{
	if (o->client != gone->client)
		return false;
	return gone->handle == gone->client || o->parent == gone->handle ||
	       o->needs == gone->handle;
}

static void take_dependants(struct cgpu_objs *t, const struct cgpu_obj *gone,
			    struct list_head *freed)
{
	struct hlist_node *next;
	struct cgpu_obj *o;
	int i;

	/* The usual free is a leaf's, and must not cost what the table holds. */
	if (!gone->users && !t->orphans && gone->handle != gone->client)
		return;
	for (i = 0; i < CGPU_OBJ_BUCKETS; i++)
		hlist_for_each_entry_safe(o, next, &t->bucket[i], node)
			if (falls_with(o, gone))
				take(t, o, freed);
}

/**
 * cgpu_objs_remove() - a handle is freed, with all that cannot outlive it
 * @t: the table
 * @client: the client's handle
 * @handle: the object's; the client's own frees everything of the client
 * @freed: gets the objects, which are the caller's from then on
 *
 * Context: the table's lock is held.
 */
void cgpu_objs_remove(struct cgpu_objs *t, u32 client, u32 handle,
		      struct list_head *freed)
{
	struct cgpu_obj *o = cgpu_objs_find(t, client, handle);
	LIST_HEAD(found);

	if (!o)
		return;
	take(t, o, &found);
	list_for_each_entry(o, &found, freed)
		take_dependants(t, o, &found);
	list_splice_tail(&found, freed);
}

/**
 * cgpu_objs_remove_owner() - a control file is closed
 * @t: the table
 * @owner: the file's context
 * @freed: gets the objects, which are the caller's from then on
 *
 * Context: the table's lock is held.
 */
void cgpu_objs_remove_owner(struct cgpu_objs *t, const void *owner,
			    struct list_head *freed)
{
	struct hlist_node *next;
	struct cgpu_obj *o;
	int i;

	for (i = 0; i < CGPU_OBJ_BUCKETS; i++)
		hlist_for_each_entry_safe(o, next, &t->bucket[i], node)
			if (o->owner == owner)
				take(t, o, freed);
}

/**
 * cgpu_phys_put() - a handle of some memory is gone
 * @p: the memory
 *
 * Context: the table's lock is held.
 * Return: whether it was the last, so that the charge must be given back.
 */
bool cgpu_phys_put(struct cgpu_phys *p)
{
	return --p->refs == 0 && !p->holds;
}

/**
 * cgpu_objs_bytes() - memory of one process on one GPU
 * @t: the table
 * @pid: the process
 * @gpu: minor of the GPU
 *
 * Memory with several handles counts in equal parts for each.
 *
 * Context: the table's lock is held.
 * Return: bytes.
 */
u64 cgpu_objs_bytes(struct cgpu_objs *t, int pid, int gpu)
{
	struct cgpu_obj *o;
	u64 bytes = 0;
	int i;

	for (i = 0; i < CGPU_OBJ_BUCKETS; i++)
		hlist_for_each_entry(o, &t->bucket[i], node)
			if (o->phys && o->pid == pid && o->phys->gpu == gpu)
				bytes += o->phys->bytes / o->phys->refs;
	return bytes;
}
