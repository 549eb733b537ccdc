// SPDX-License-Identifier: GPL-2.0-only
/* How an instance gets a share of a GPU, and why not. */
#include <linux/ctype.h>
#include <linux/slab.h>
#include "core.h"

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

	if (number < 0) {
		pr_err("create %s: there are %d instances, and no more numbers; destroy one\n",
		       id, CGPU_MINORS);
		return ERR_PTR(number);
	}
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
	mutex_init(&share->work_lock);
	INIT_LIST_HEAD(&share->channels);
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

static struct cgpu_inst *enter_inst(const char *id)
{
	struct cgpu_inst *inst;
	int ret = cgpu_core_pin(id);

	if (ret)
		return ERR_PTR(ret);
	inst = new_inst(id);
	if (!IS_ERR(inst))
		list_add_tail(&inst->link, &cgpu_insts);
	else
		cgpu_core_unpin();
	return inst;
}

static void leave_inst(struct cgpu_inst *inst)
{
	list_del(&inst->link);
	cgpu_core_unpin();
	cgpu_inst_put(inst);
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
	inst = old ?: enter_inst(id);
	if (IS_ERR(inst))
		return ERR_CAST(inst);
	share = new_share(inst, gpu, mem, weight, highprio);
	ret = share ? enter_share(share) : -ENOMEM;
	if (!ret)
		return share;
	kfree(share);
	if (!old)
		leave_inst(inst);
	return ERR_PTR(ret);
}
