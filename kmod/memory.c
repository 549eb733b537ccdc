// SPDX-License-Identifier: GPL-2.0-only
/* The table of objects and the charges of an instance, under its lock. */
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include "grant.h"

static struct cgpu_share *share_of(struct cgpu_inst *inst, int gpu)
{
	return gpu >= 0 && gpu < NV_MAX_DEVICES ? inst->share[gpu] : NULL;
}

static void log_refusal(const struct cgpu_inst *inst, int gpu, u64 bytes,
			const struct cgpu_account *was)
{
	pr_info_ratelimited("%s gpu%d pid %d: out of memory: asked %llu bytes, used %llu, limit %llu\n",
			    inst->id, gpu, task_tgid_nr(current), bytes,
			    was->used, was->limit);
}

/**
 * cgpu_charge() - take memory before the driver gives it
 * @inst: the instance
 * @gpu: the GPU's minor
 * @bytes: how many
 *
 * Context: process. Logs a refusal, with its figures, at a limited rate.
 * Return: whether the limit has room.
 */
bool cgpu_charge(struct cgpu_inst *inst, int gpu, u64 bytes)
{
	struct cgpu_share *share = share_of(inst, gpu);
	struct cgpu_account was;
	bool ok;

	if (!share)
		return false;
	mutex_lock(&inst->lock);
	was = share->account;
	ok = cgpu_try_charge(&share->account, bytes);
	mutex_unlock(&inst->lock);
	if (!ok)
		log_refusal(inst, gpu, bytes, &was);
	return ok;
}

static u32 charge_new(struct cgpu_inst *inst, struct grant *g,
		      struct cgpu_account *was)
{
	struct cgpu_obj *parent = cgpu_objs_find(&inst->objs, g->client, g->parent);
	struct cgpu_share *share = parent ? share_of(inst, parent->gpu) : NULL;

	if (cgpu_objs_find(&inst->objs, g->client, g->handle))
		return NV_ERR_INSERT_DUPLICATE_NAME;
	if (!share)
		return NV_ERR_INVALID_OBJECT_PARENT;
	g->gpu = parent->gpu;
	*was = share->account;
	return cgpu_try_charge(&share->account, g->bytes) ? NV_OK :
							    NV_ERR_NO_MEMORY;
}

/**
 * cgpu_grant_begin() - charge memory before the driver is asked
 * @f: the control file
 * @g: what is wanted; gets the GPU of its parent
 *
 * Context: process; f->lock is held.
 * Return: an RM status.
 */
u32 cgpu_grant_begin(struct cgpu_file *f, struct grant *g)
{
	struct cgpu_inst *inst = f->node->inst;
	struct cgpu_account was;
	u32 status;

	mutex_lock(&inst->lock);
	status = charge_new(inst, g, &was);
	mutex_unlock(&inst->lock);
	if (status == NV_ERR_NO_MEMORY)
		log_refusal(inst, g->gpu, g->bytes, &was);
	return status;
}

/**
 * cgpu_charge_rounding() - the driver gave more than was asked
 * @inst: the instance
 * @gpu: the GPU's minor
 * @bytes: how many more
 *
 * Context: process.
 */
void cgpu_charge_rounding(struct cgpu_inst *inst, int gpu, u64 bytes)
{
	mutex_lock(&inst->lock);
	cgpu_charge_more(&inst->share[gpu]->account, bytes);
	mutex_unlock(&inst->lock);
}

/**
 * cgpu_uncharge_bytes() - give memory back that no object holds
 * @inst: the instance
 * @gpu: the GPU's minor
 * @bytes: how many
 *
 * Context: process.
 */
void cgpu_uncharge_bytes(struct cgpu_inst *inst, int gpu, u64 bytes)
{
	struct cgpu_share *share = share_of(inst, gpu);

	if (!share || !bytes)
		return;
	mutex_lock(&inst->lock);
	cgpu_uncharge(&share->account, bytes);
	mutex_unlock(&inst->lock);
}

static void put_phys(struct cgpu_inst *inst, struct cgpu_phys *phys)
{
	lockdep_assert_held(&inst->lock);
	if (!phys || !cgpu_phys_put(phys))
		return;
	cgpu_uncharge(&inst->share[phys->gpu]->account, phys->bytes);
	kfree(phys);
}

/**
 * cgpu_phys_release() - a holder of memory that is no handle lets go
 * @inst: the instance
 * @phys: the memory, or NULL
 *
 * Context: process.
 */
void cgpu_phys_release(struct cgpu_inst *inst, struct cgpu_phys *phys)
{
	mutex_lock(&inst->lock);
	put_phys(inst, phys);
	mutex_unlock(&inst->lock);
}

/**
 * cgpu_phys_hold() - a holder of memory that is no handle comes
 * @f: a file of the container
 * @client: a client of the container
 * @handle: an object
 * @phys: gets the memory, NULL if the object has none that is charged; to be
 *	  given to cgpu_phys_release_hold()
 *
 * Context: process.
 * Return: whether the container has the object.
 */
bool cgpu_phys_hold(struct cgpu_file *f, u32 client, u32 handle,
		    struct cgpu_phys **phys)
{
	struct cgpu_inst *inst = f->node->inst;
	struct cgpu_obj *o;

	mutex_lock(&inst->lock);
	o = cgpu_objs_find(&inst->objs, client, handle);
	*phys = o ? o->phys : NULL;
	if (*phys)
		(*phys)->holds++;
	mutex_unlock(&inst->lock);
	return o;
}

/**
 * cgpu_phys_release_hold() - undo cgpu_phys_hold()
 * @inst: the instance
 * @phys: the memory
 *
 * Context: process.
 */
void cgpu_phys_release_hold(struct cgpu_inst *inst, struct cgpu_phys *phys)
{
	mutex_lock(&inst->lock);
	phys->holds--;
	phys->refs++;
	put_phys(inst, phys);
	mutex_unlock(&inst->lock);
}

static struct cgpu_phys *new_phys(int gpu, u64 bytes)
{
	struct cgpu_phys *phys = kzalloc(sizeof(*phys), GFP_KERNEL_ACCOUNT);

	if (phys)
		*phys = (struct cgpu_phys){ .bytes = bytes, .gpu = gpu };
	return phys;
}

/**
 * cgpu_track() - the driver has made an object
 * @f: the control file that its client belongs to
 * @what: client, handle, parent, class and the like
 * @bytes: memory that was charged for it
 * @shared: charged memory that it is one more handle of, or NULL
 *
 * Context: process. A handle that the table has already is left as it is: the
 *	    driver refuses such allocations, so this one was not real.
 * Return: 0 or -ENOMEM.
 */
int cgpu_track(struct cgpu_file *f, const struct cgpu_obj *what, u64 bytes,
	       struct cgpu_phys *shared)
{
	struct cgpu_inst *inst = f->node->inst;
	struct cgpu_phys *phys = bytes ? new_phys(what->gpu, bytes) : shared;
	struct cgpu_obj *o = kmemdup(what, sizeof(*what), GFP_KERNEL_ACCOUNT);

	if (!o || (bytes && !phys)) {
		kfree(o);
		if (bytes)
			kfree(phys);
		return -ENOMEM;
	}
	o->owner = f;
	o->pid = task_tgid_nr(current);
	o->phys = phys;
	mutex_lock(&inst->lock);
	if (cgpu_objs_find(&inst->objs, o->client, o->handle)) {
		mutex_unlock(&inst->lock);
		kfree(o);
		if (bytes)
			kfree(phys);
		return bytes ? -EEXIST : 0;
	}
	if (phys)
		phys->refs++;
	cgpu_objs_add(&inst->objs, o);
	mutex_unlock(&inst->lock);
	return 0;
}

static void free_list(struct cgpu_inst *inst, struct list_head *freed)
{
	struct cgpu_obj *o, *next;

	list_for_each_entry_safe(o, next, freed, freed) {
		put_phys(inst, o->phys);
		if (o->gpu >= 0 && inst->share[o->gpu] &&
		    NV_CLASS_FAMILY(o->class) == NV_FAMILY_GPFIFO)
			cgpu_work_del(inst->share[o->gpu], o->client, o->handle);
		kfree(o);
	}
}

/**
 * cgpu_untrack() - the driver has freed an object
 * @f: the control file
 * @client: its client
 * @handle: the object
 *
 * A client belongs to the file that made it, and the driver frees nothing of
 * it for another, whatever the answer says.
 *
 * Context: process.
 */
void cgpu_untrack(struct cgpu_file *f, u32 client, u32 handle)
{
	struct cgpu_inst *inst = f->node->inst;
	struct cgpu_obj *o;
	LIST_HEAD(freed);

	mutex_lock(&inst->lock);
	o = cgpu_objs_find(&inst->objs, client, client);
	if (o && o->owner == f)
		cgpu_objs_remove(&inst->objs, client, handle, &freed);
	free_list(inst, &freed);
	mutex_unlock(&inst->lock);
}

/**
 * cgpu_untrack_file() - the driver has closed a control file
 * @f: the file
 *
 * Context: process.
 */
void cgpu_untrack_file(struct cgpu_file *f)
{
	struct cgpu_inst *inst = f->node->inst;
	LIST_HEAD(freed);

	mutex_lock(&inst->lock);
	cgpu_objs_remove_owner(&inst->objs, f, &freed);
	free_list(inst, &freed);
	put_phys(inst, f->exported);
	f->exported = NULL;
	mutex_unlock(&inst->lock);
}

/**
 * cgpu_gpu_of() - the GPU of an object
 * @f: the control file
 * @client: its client
 * @handle: the object
 *
 * Context: process.
 * Return: the GPU's minor, or -1.
 */
int cgpu_gpu_of(struct cgpu_file *f, u32 client, u32 handle)
{
	struct cgpu_inst *inst = f->node->inst;
	struct cgpu_obj *o;
	int gpu;

	mutex_lock(&inst->lock);
	o = cgpu_objs_find(&inst->objs, client, handle);
	gpu = o ? o->gpu : -1;
	mutex_unlock(&inst->lock);
	return gpu;
}

/**
 * cgpu_known() - whether an instance has a handle
 * @f: the control file
 * @client: its client
 * @handle: the object
 *
 * Context: process.
 * Return: true if it has.
 */
bool cgpu_known(struct cgpu_file *f, u32 client, u32 handle)
{
	struct cgpu_inst *inst = f->node->inst;
	bool known;

	mutex_lock(&inst->lock);
	known = cgpu_objs_find(&inst->objs, client, handle);
	mutex_unlock(&inst->lock);
	return known;
}

/**
 * cgpu_new_handle() - a handle for an allocation that lets the driver choose
 * @f: the control file
 *
 * A charged handle must be known before the call: results cannot be trusted.
 *
 * Context: process.
 * Return: the handle.
 */
u32 cgpu_new_handle(struct cgpu_file *f)
{
	struct cgpu_inst *inst = f->node->inst;
	u32 handle;

	mutex_lock(&inst->lock);
	handle = inst->next_handle++;
	mutex_unlock(&inst->lock);
	return handle;
}

static bool has_pid(const void *arg, u32 pid)
{
	const struct cgpu_inst *inst = arg;
	struct cgpu_file *f;

	lockdep_assert_held(&inst->lock);
	list_for_each_entry(f, &inst->files, link)
		if (pid_vnr(f->pid) == pid)
			return true;
	return false;
}

/**
 * cgpu_view_of() - what the container may see of a GPU
 * @f: one of its files
 * @gpu: the GPU's minor, -1 for what concerns none
 * @v: filled in; valid while inst->lock is held
 *
 * Context: process; inst->lock is held.
 */
void cgpu_view_of(struct cgpu_file *f, int gpu, struct cgpu_view *v)
{
	struct cgpu_inst *inst = f->node->inst;
	struct cgpu_share *share = share_of(inst, gpu);
	int minor;

	lockdep_assert_held(&inst->lock);
	memset(v, 0, sizeof(*v));
	if (share) {
		v->limit = share->account.limit;
		v->used = share->account.used;
	}
	for (minor = 0; minor < NV_MAX_DEVICES; minor++)
		if (inst->share[minor])
			v->gpu_ids[v->gpus++] = cgpu_gpus[minor]->gpu_id;
	v->has_pid = has_pid;
	v->arg = inst;
}
