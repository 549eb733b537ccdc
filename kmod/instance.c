// SPDX-License-Identifier: GPL-2.0-only
/* Instances and their shares: look-up, changes, end, poison. */
#include <linux/module.h>
#include <linux/slab.h>
#include "cgpu.h"

/* Which instances and shares exist, and the settings of the GPUs. */
DEFINE_MUTEX(cgpu_registry_lock);
LIST_HEAD(cgpu_insts);

static void free_inst(struct kref *ref)
{
	struct cgpu_inst *inst = container_of(ref, struct cgpu_inst, ref);
	int minor;

	for (minor = 0; minor < NV_MAX_DEVICES; minor++)
		kfree(inst->share[minor]);
	kfree(inst);
}

/**
 * cgpu_inst_get() - take a reference
 * @inst: the instance
 *
 * Context: any.
 */
void cgpu_inst_get(struct cgpu_inst *inst)
{
	kref_get(&inst->ref);
}

/**
 * cgpu_inst_put() - drop a reference
 * @inst: the instance
 *
 * Context: any.
 */
void cgpu_inst_put(struct cgpu_inst *inst)
{
	kref_put(&inst->ref, free_inst);
}

/**
 * cgpu_inst_find() - look an instance up
 * @id: its name
 *
 * Context: the registry's lock is held.
 * Return: the instance without a reference, or NULL.
 */
struct cgpu_inst *cgpu_inst_find(const char *id)
{
	struct cgpu_inst *inst;

	lockdep_assert_held(&cgpu_registry_lock);
	list_for_each_entry(inst, &cgpu_insts, link)
		if (!strcmp(inst->id, id))
			return inst;
	return NULL;
}

/**
 * cgpu_weights_given() - slices of a round that instances have
 * @gpu: the GPU
 *
 * Context: the registry's lock or gpu->lock is held.
 * Return: their sum.
 */
u32 cgpu_weights_given(const struct cgpu_gpu *gpu)
{
	struct cgpu_share *share;
	u32 sum = 0;

	list_for_each_entry(share, &gpu->shares, link)
		sum += share->weight;
	return sum;
}

/**
 * cgpu_mem_given() - memory that instances may use
 * @gpu: the GPU
 *
 * Context: the registry's lock is held.
 * Return: the sum of their limits in bytes.
 */
u64 cgpu_mem_given(const struct cgpu_gpu *gpu)
{
	struct cgpu_share *share;
	u64 sum = 0;

	lockdep_assert_held(&cgpu_registry_lock);
	list_for_each_entry(share, &gpu->shares, link)
		sum += share->account.limit;
	return sum;
}

/**
 * cgpu_inst_detach() - end an instance, but for its folders
 * @id: its name
 *
 * Context: process; the registry's lock is held.
 * Return: the instance, whose reference is the caller's, or an ERR_PTR:
 *	   -ENOENT, or -EBUSY while it is mounted or held open.
 */
struct cgpu_inst *cgpu_inst_detach(const char *id)
{
	struct cgpu_inst *inst = cgpu_inst_find(id);
	int minor;

	if (!inst) {
		pr_err("destroy %s: there is no such instance\n", id);
		return ERR_PTR(-ENOENT);
	}
	if (inst->sb) {
		pr_err("destroy %s: its nodes are mounted or open; end its container and unmount them\n",
		       id);
		return ERR_PTR(-EBUSY);
	}
	list_del(&inst->link);
	for (minor = 0; minor < NV_MAX_DEVICES; minor++) {
		if (!inst->share[minor])
			continue;
		cgpu_slices_del(inst->share[minor]);
		cgpu_policy_follow(inst->share[minor]->gpu);
	}
	return inst;
}

/**
 * cgpu_policy_follow() - weights choose the policy where nobody has
 * @gpu: the GPU
 *
 * Context: process; the registry's lock is held.
 */
void cgpu_policy_follow(struct cgpu_gpu *gpu)
{
	struct cgpu_sched_conf *c = &gpu->sched.conf;
	struct cgpu_share *share;
	bool weighted = false;

	lockdep_assert_held(&cgpu_registry_lock);
	list_for_each_entry(share, &gpu->shares, link)
		weighted |= share->weight > 1;
	if (gpu->policy_written || weighted == gpu->switched)
		return;
	gpu->switched = weighted;
	cgpu_slices_conf(gpu, weighted ? CGPU_WEIGHTED : CGPU_PREEMPTIVE,
			 c->max_inst, c->prio_ratio);
}

/**
 * cgpu_share_set() - change weight and class of a share
 * @share: the share
 * @weight: slices a turn, within what is free
 * @highprio: of the high-priority class
 *
 * Context: process; the registry's lock is held.
 */
void cgpu_share_set(struct cgpu_share *share, u32 weight, bool highprio)
{
	struct cgpu_gpu *gpu = share->gpu;

	lockdep_assert_held(&cgpu_registry_lock);
	WRITE_ONCE(share->weight, weight);
	WRITE_ONCE(share->highprio, highprio);
	mutex_lock(&gpu->lock);
	if (share->ent >= 0)
		cgpu_sched_set_weight(&gpu->sched, share->ent, weight, highprio);
	mutex_unlock(&gpu->lock);
	cgpu_policy_follow(gpu);
	cgpu_slices_kick(gpu);
}

/**
 * cgpu_share_resize() - change the limit of a share
 * @share: the share
 * @mem: bytes
 *
 * Context: process; the registry's lock is held.
 * Return: 0, -EBUSY below what is in use, -ENOSPC beyond the card.
 */
int cgpu_share_resize(struct cgpu_share *share, u64 mem)
{
	struct cgpu_inst *inst = share->inst;
	u64 others = cgpu_mem_given(share->gpu) - share->account.limit;
	int ret;

	lockdep_assert_held(&cgpu_registry_lock);
	if (!cgpu_overcommit && (mem > share->gpu->total ||
				 others > share->gpu->total - mem)) {
		pr_err("memsize %s: %llu bytes asked, GPU %d has %llu that others do not have\n",
		       inst->id, mem, share->gpu->minor,
		       share->gpu->total - min(others, share->gpu->total));
		return -ENOSPC;
	}
	mutex_lock(&inst->lock);
	ret = cgpu_set_limit(&share->account, mem);
	mutex_unlock(&inst->lock);
	if (ret)
		pr_err("memsize %s: %llu bytes is less than the %llu in use\n",
		       inst->id, mem, share->account.used);
	return ret;
}

/**
 * cgpu_inst_poison() - an instance tampered with the module: it is cut off
 * @inst: the instance
 *
 * Context: any.
 */
void cgpu_inst_poison(struct cgpu_inst *inst)
{
	WRITE_ONCE(inst->poisoned, true);
	pr_warn_ratelimited("%s: argument page unmapped during a call; the instance gets no more calls and no compute\n",
			    inst->id);
}
