// SPDX-License-Identifier: GPL-2.0-only
/*
 * The thread of each GPU that asks sched.c whose turn it is and sets the
 * gates. It sleeps while no instance has work.
 */
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include "cgpu.h"

static struct cgpu_share *share_of(struct cgpu_gpu *gpu, int ent)
{
	struct cgpu_share *share;

	lockdep_assert_held(&gpu->lock);
	list_for_each_entry(share, &gpu->shares, link)
		if (share->ent == ent)
			return share;
	return NULL;
}

/* An instance has work while it waits, and while its gate is open. */
static bool update_busy(struct cgpu_gpu *gpu, u64 now)
{
	struct cgpu_share *share;
	bool any = false;

	list_for_each_entry(share, &gpu->shares, link) {
		bool busy = atomic_read(&share->gate.waiting) ||
			    (share == gpu->open &&
			     READ_ONCE(share->gate.touched));

		cgpu_sched_set_busy(&gpu->sched, share->ent, busy, now);
		any |= busy;
	}
	return any;
}

static void close_gate(struct cgpu_gpu *gpu, u64 now)
{
	struct cgpu_share *share = gpu->open;

	if (!share)
		return;
	if (READ_ONCE(share->gate.touched))
		share->busy_ns += now - share->opened_ns;
	gpu->open = NULL;
	cgpu_gate_set(share, false);
}

static void open_gate(struct cgpu_gpu *gpu, struct cgpu_share *share, u64 now)
{
	if (gpu->open == share)
		return;
	close_gate(gpu, now);
	gpu->open = share;
	if (!share)
		return;
	share->opened_ns = now;
	cgpu_gate_set(share, true);
}

static void open_all(struct cgpu_gpu *gpu)
{
	struct cgpu_share *share;

	close_gate(gpu, ktime_get_ns());
	list_for_each_entry(share, &gpu->shares, link)
		if (!share->gate.open)
			cgpu_gate_set(share, true);
}

static void close_all(struct cgpu_gpu *gpu)
{
	struct cgpu_share *share;

	list_for_each_entry(share, &gpu->shares, link)
		if (share->gate.open && share != gpu->open)
			cgpu_gate_set(share, false);
}

/* One look at the GPU. Returns when to look again, 0 = when kicked. */
static u64 decide(struct cgpu_gpu *gpu)
{
	u64 now = ktime_get_ns();
	struct cgpu_turn turn;

	lockdep_assert_held(&gpu->lock);
	if (gpu->sched.conf.policy == CGPU_NATIVE) {
		open_all(gpu);
		return 0;
	}
	close_all(gpu);
	if (!update_busy(gpu, now)) {
		cgpu_sched_park(&gpu->sched);
		close_gate(gpu, now);
		return 0;
	}
	turn = cgpu_sched_next(&gpu->sched, now, now);
	open_gate(gpu, share_of(gpu, turn.open), now);
	return turn.until_ns;
}

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
		until = decide(gpu);
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
	if (gpu->open == share)
		close_gate(gpu, ktime_get_ns());
	cgpu_sched_del(&gpu->sched, share->ent);
	list_del(&share->link);
	mutex_unlock(&gpu->lock);
	cgpu_slices_kick(gpu);
}

/**
 * cgpu_share_busy_ns() - time of a share's turns
 * @share: the share
 *
 * Context: process.
 * Return: ns, the turn that runs included.
 */
u64 cgpu_share_busy_ns(struct cgpu_share *share)
{
	struct cgpu_gpu *gpu = share->gpu;
	u64 ns;

	mutex_lock(&gpu->lock);
	ns = share->busy_ns;
	if (gpu->open == share && READ_ONCE(share->gate.touched))
		ns += ktime_get_ns() - share->opened_ns;
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
