// SPDX-License-Identifier: GPL-2.0-only
/* Instances and their shares: creation, end, poison. */
#include <linux/ctype.h>
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

static bool is_id(const char *id)
{
	size_t i, n = strlen(id);

	for (i = 0; i < n; i++)
		if (!isalnum(id[i]) && id[i] != '-' && id[i] != '_')
			return false;
	return n > 0 && n <= CGPU_ID_MAX;
}

static int free_number(void)
{
	DECLARE_BITMAP(taken, CGPU_MINORS) = { 0 };
	struct cgpu_inst *inst;
	int number;

	list_for_each_entry(inst, &cgpu_insts, link)
		__set_bit(inst->number, taken);
	number = find_first_zero_bit(taken, CGPU_MINORS);
	return number < CGPU_MINORS ? number : -ENOSPC;
}

static struct cgpu_inst *new_inst(const char *id)
{
	struct cgpu_inst *inst;
	int number = free_number();

	if (number < 0)
		return ERR_PTR(number);
	inst = kzalloc(sizeof(*inst), GFP_KERNEL);
	if (!inst)
		return ERR_PTR(-ENOMEM);
	kref_init(&inst->ref);
	strscpy(inst->id, id, sizeof(inst->id));
	inst->number = number;
	mutex_init(&inst->lock);
	cgpu_objs_init(&inst->objs);
	INIT_LIST_HEAD(&inst->files);
	inst->next_handle = 0xca000000;
	return inst;
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

static int check_room(struct cgpu_gpu *gpu, const char *id, u64 mem)
{
	u64 taken = cgpu_mem_given(gpu);
	struct cgpu_share *share;
	u32 count = 0;

	list_for_each_entry(share, &gpu->shares, link)
		count++;
	if (count >= gpu->sched.conf.max_inst) {
		pr_err("create %s: GPU %d holds %u of %u instances; raise max_inst or destroy one\n",
		       id, gpu->minor, count, gpu->sched.conf.max_inst);
		return -ENOSPC;
	}
	if (!cgpu_overcommit &&
	    (mem > gpu->total || taken > gpu->total - mem)) {
		pr_err("create %s: %llu bytes asked, GPU %d has %llu of %llu left; ask less or load with overcommit=1\n",
		       id, mem, gpu->minor,
		       gpu->total > taken ? gpu->total - taken : 0, gpu->total);
		return -ENOSPC;
	}
	return 0;
}

static int check_create(struct cgpu_gpu *gpu, const char *id, u64 mem,
			struct cgpu_inst *inst)
{
	if (!is_id(id)) {
		pr_err("create %s: an id has 1 to %d letters, digits, - and _\n",
		       id, CGPU_ID_MAX);
		return -EINVAL;
	}
	if (inst && inst->share[gpu->minor]) {
		pr_err("create %s: it has a share of GPU %d already\n", id,
		       gpu->minor);
		return -EEXIST;
	}
	if (inst && inst->sb) {
		pr_err("create %s: its nodes are mounted; add GPUs before\n",
		       id);
		return -EBUSY;
	}
	return check_room(gpu, id, mem);
}

static struct cgpu_share *new_share(struct cgpu_inst *inst,
				    struct cgpu_gpu *gpu, u64 mem, u32 weight,
				    bool highprio)
{
	u32 left = gpu->sched.conf.max_inst - cgpu_weights_given(gpu);
	struct cgpu_share *share = kzalloc(sizeof(*share), GFP_KERNEL);

	if (!share)
		return NULL;
	if (!left && weight == 1) {
		pr_warn("create %s: no slice of GPU %d is free: it gets weight 0 and no compute\n",
			inst->id, gpu->minor);
		weight = 0;
	}
	share->inst = inst;
	share->gpu = gpu;
	share->account.limit = mem;
	share->weight = weight;
	share->highprio = highprio;
	cgpu_gate_init(&share->gate);
	return share;
}

static int check_weight(struct cgpu_gpu *gpu, const char *id, u32 weight)
{
	u32 most = gpu->sched.conf.max_inst;
	u32 left = most - cgpu_weights_given(gpu);

	if (weight >= 1 && weight <= most && (weight <= left || weight == 1))
		return 0;
	pr_err("create %s: weight=%u is not within 1..%u of which %u are free\n",
	       id, weight, most, left);
	return -EINVAL;
}

static int enter_share(struct cgpu_share *share)
{
	int ret;

	ret = cgpu_slices_add(share);
	if (ret)
		return ret;
	ret = cgpu_procfs_add(share);
	if (ret) {
		cgpu_slices_del(share);
		return ret;
	}
	share->inst->share[share->gpu->minor] = share;
	return 0;
}

/**
 * cgpu_share_create() - give an instance a share of a GPU
 * @id: the instance; made if it does not exist
 * @gpu: the GPU
 * @mem: bytes
 * @weight: slices a turn, at least 1
 * @highprio: of the high-priority class
 *
 * Context: process; the registry's lock is held.
 * Return: the share, or an ERR_PTR whose reason is in the log.
 */
struct cgpu_share *cgpu_share_create(const char *id, struct cgpu_gpu *gpu,
				     u64 mem, u32 weight, bool highprio)
{
	struct cgpu_inst *inst, *old = cgpu_inst_find(id);
	struct cgpu_share *share;
	int ret;

	ret = check_create(gpu, id, mem, old);
	if (!ret)
		ret = check_weight(gpu, id, weight);
	if (ret)
		return ERR_PTR(ret);
	inst = old ?: new_inst(id);
	if (IS_ERR(inst))
		return ERR_CAST(inst);
	share = new_share(inst, gpu, mem, weight, highprio);
	ret = share ? enter_share(share) : -ENOMEM;
	if (ret) {
		kfree(share);
		if (!old)
			cgpu_inst_put(inst);
		return ERR_PTR(ret);
	}
	if (!old)
		list_add_tail(&inst->link, &cgpu_insts);
	return share;
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
 * cgpu_inst_forget_all() - the module goes, and no instance is mounted
 *
 * Context: module unload; the folders are gone.
 */
void cgpu_inst_forget_all(void)
{
	struct cgpu_inst *inst, *next;

	mutex_lock(&cgpu_registry_lock);
	list_for_each_entry_safe(inst, next, &cgpu_insts, link) {
		cgpu_inst_detach(inst->id);
		cgpu_inst_put(inst);
	}
	mutex_unlock(&cgpu_registry_lock);
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
