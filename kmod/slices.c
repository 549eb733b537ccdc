// SPDX-License-Identifier: GPL-2.0-only
/*
 * The thread of each GPU, which looks (turns.c) and sleeps, for ever while no
 * instance has work; and who takes part in the turns.
 */
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include "cgpu.h"

static bool is_kicked(struct cgpu_gpu *gpu)
{
	return atomic_read(&gpu->event) || kthread_should_stop();
}

static void sleep_until(struct cgpu_gpu *gpu, u64 until)
{
	u64 now = ktime_get_ns();

	if (!until)
		wait_event_interruptible(gpu->wq, is_kicked(gpu));
	else if (until > now)
		wait_event_interruptible_hrtimeout(gpu->wq, is_kicked(gpu),
						   ns_to_ktime(until - now));
}

static int run_slices(void *data)
{
	struct cgpu_gpu *gpu = data;
	u64 until;

	while (!kthread_should_stop()) {
		atomic_set(&gpu->event, 0);
		mutex_lock(&gpu->lock);
		until = cgpu_turns_look(gpu);
		mutex_unlock(&gpu->lock);
		sleep_until(gpu, until);
	}
	return 0;
}

/**
 * cgpu_slices_kick() - something changed: look at the GPU again
 * @gpu: the GPU
 *
 * Context: any.
 */
void cgpu_slices_kick(struct cgpu_gpu *gpu)
{
	atomic_set(&gpu->event, 1);
	wake_up(&gpu->wq);
}

/**
 * cgpu_slices_conf() - change the settings of a GPU
 * @gpu: the GPU
 * @policy: one of enum cgpu_policy
 * @max_inst: slices of a round
 * @prio_ratio: percent of the high-priority class
 *
 * Context: process; the registry's lock is held.
 */
void cgpu_slices_conf(struct cgpu_gpu *gpu, u32 policy, u32 max_inst,
		      u32 prio_ratio)
{
	u32 half_up = (30 + max_inst / 2) / max_inst;
	struct cgpu_sched_conf conf = {
		.policy = policy, .max_inst = max_inst,
		.prio_ratio = prio_ratio,
		.slice_ns = (cgpu_slice_ms ?: max(half_up, 1U)) *
			    (u64)NSEC_PER_MSEC,
		.debt_ns = cgpu_debt_ms * (u64)NSEC_PER_MSEC,
	};

	mutex_lock(&gpu->lock);
	cgpu_sched_configure(&gpu->sched, &conf);
	mutex_unlock(&gpu->lock);
	cgpu_slices_kick(gpu);
}

/**
 * cgpu_slices_add() - a share joins the turns
 * @share: the share
 *
 * Context: process; the registry's lock is held.
 * Return: 0, or -ENOSPC when all slots are taken.
 */
int cgpu_slices_add(struct cgpu_share *share)
{
	struct cgpu_gpu *gpu = share->gpu;

	mutex_lock(&gpu->lock);
	share->ent = cgpu_sched_add(&gpu->sched, share->weight, share->highprio,
				    ktime_get_ns());
	if (share->ent >= 0)
		list_add_tail(&share->link, &gpu->shares);
	mutex_unlock(&gpu->lock);
	cgpu_slices_kick(gpu);
	return share->ent < 0 ? -ENOSPC : 0;
}

/**
 * cgpu_slices_del() - a share leaves the turns
 * @share: the share
 *
 * Context: process; the registry's lock is held.
 */
void cgpu_slices_del(struct cgpu_share *share)
{
	struct cgpu_gpu *gpu = share->gpu;

	mutex_lock(&gpu->lock);
	if (share->gate.open)
		cgpu_gate_set(share, false);
	if (gpu->open == share)
		gpu->open = NULL;
	if (gpu->draining == share)
		gpu->draining = NULL;
	cgpu_sched_del(&gpu->sched, share->ent);
	list_del(&share->link);
	mutex_unlock(&gpu->lock);
	cgpu_slices_kick(gpu);
}

/**
 * cgpu_share_busy_ns() - time that a share's work was on the GPU
 * @share: the share
 *
 * Context: process.
 * Return: ns, as of the last look.
 */
u64 cgpu_share_busy_ns(struct cgpu_share *share)
{
	struct cgpu_gpu *gpu = share->gpu;
	u64 ns;

	mutex_lock(&gpu->lock);
	ns = share->busy_ns;
	mutex_unlock(&gpu->lock);
	return ns;
}

/**
 * cgpu_slices_start() - start the thread of a GPU
 * @gpu: the GPU
 *
 * Context: module load.
 * Return: 0 or an errno.
 */
int cgpu_slices_start(struct cgpu_gpu *gpu)
{
	struct task_struct *thread;

	cgpu_slices_conf(gpu, CGPU_PREEMPTIVE, 20, 80);
	thread = kthread_run(run_slices, gpu, "cgpu/%d", gpu->minor);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	sched_set_fifo(thread);
	gpu->thread = thread;
	return 0;
}

/**
 * cgpu_slices_stop() - end the thread of a GPU
 * @gpu: the GPU
 *
 * Context: module unload; no share is left.
 */
void cgpu_slices_stop(struct cgpu_gpu *gpu)
{
	if (gpu->thread)
		kthread_stop(gpu->thread);
	gpu->thread = NULL;
}
