// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a share's turn does on the GPU: when its work began and ended, how long
 * it was busy, how long an entry takes, and whether enough is queued.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include "cgpu.h"

#define ENOUGH_ENTRIES		8	/* to tell what one takes */
#define CLOCK_DRIFT_NS		100	/* a look: clocks drift, programs lie */

/**
 * cgpu_watch_begin() - a turn begins
 * @share: whose
 * @now: ns
 *
 * Context: gpu->lock is held.
 */
void cgpu_watch_begin(struct cgpu_share *share, u64 now)
{
	lockdep_assert_held(&share->gpu->lock);
	share->looked_ns = now;
	share->moved_ns = now;
	share->began_ns = now;
	share->waited = atomic_read(&share->gate.waiting);
	share->rang = false;
	share->shut = false;
	share->turn_ns = 0;
	share->turn_done = 0;
}

/* Time between two looks: busy if both saw work, half if one did. */
static u64 busy_between(const struct cgpu_share *share,
			const struct cgpu_work *was, u64 now)
{
	u64 passed = now - share->looked_ns;

	if (!share->rang)
		return 0;
	if (!share->work.seen)
		return share->gate.open ? passed : 0;
	if (was->left && share->work.left)
		return passed;
	return was->left || share->work.left ? passed / 2 : 0;
}

static void see_ring(struct cgpu_share *share)
{
	struct cgpu_gate *gate = &share->gate;
	u64 rung;

	/* pairs with ring() in gate.c: the time is there with the flag */
	if (share->rang || !smp_load_acquire(&gate->touched))
		return;
	share->rang = true;
	rung = max(gate->touched_ns, share->began_ns);
	if (share->waited)
		cgpu_sched_skip(&share->gpu->sched, rung - share->began_ns);
	share->began_ns = rung;
	share->looked_ns = rung;
	share->moved_ns = rung;
}

/* Gaps between kernels are not charged, up to the length of the turn. */
static void see_gap(struct cgpu_share *share, u64 passed, u64 busy)
{
	u64 gap = passed - min(passed, busy);

	if (!share->rang || !share->work.seen)
		return;
	cgpu_sched_skip(&share->gpu->sched, gap);
}

/* The least delay between the GPU's stamp and our look tells the clocks apart. */
static void see_stamp(struct cgpu_share *share, u64 was, u64 now)
{
	s64 clock = now - share->work.stamp;

	if (!share->work.stamp || share->work.stamp == was)
		return;
	share->clock = share->clock ? min(clock, share->clock + CLOCK_DRIFT_NS) : clock;
}

/**
 * cgpu_watch() - look at the work of the share whose turn it is
 * @share: the share
 * @closed: its gate was closed at the last look already
 *
 * Context: a kernel thread; gpu->lock is held.
 */
void cgpu_watch(struct cgpu_share *share, bool closed)
{
	struct cgpu_work was = share->work;
	u64 now, busy;
	u32 done;

	lockdep_assert_held(&share->gpu->lock);
	see_ring(share);
	cgpu_work_look(share, closed, &share->work);
	now = ktime_get_ns();
	done = share->work.done - was.done;
	if (!share->rang)
		share->work.left = 0;
	if (done)
		share->moved_ns = now;
	busy = busy_between(share, &was, now);
	see_stamp(share, was.stamp, now);
	if (!closed)
		see_gap(share, now - share->looked_ns, busy);
	share->busy_ns += busy;
	share->turn_ns += busy;
	share->turn_done += done;
	share->looked_ns = now;
}

/**
 * cgpu_watch_gone() - when the last work of a closed turn ended
 * @share: whose; a look has just seen no work
 * @before: when a look saw work last
 *
 * Context: gpu->lock is held.
 * Return: ns, by the GPU's own clock if it tells it.
 */
u64 cgpu_watch_gone(const struct cgpu_share *share, u64 before)
{
	if (share->work.stamp && share->clock)
		return clamp(share->work.stamp + share->clock, share->began_ns,
			     share->looked_ns);
	return before + (share->looked_ns - before) / 2;
}

/**
 * cgpu_watch_end() - a turn is over and its work is gone
 * @share: whose
 *
 * Context: gpu->lock is held.
 */
void cgpu_watch_end(struct cgpu_share *share)
{
	u64 mean;

	share->work.left = 0;
	if (!share->turn_done)
		return;
	mean = div_u64(share->turn_ns, share->turn_done);
	share->entry_ns = share->entry_ns ? (share->entry_ns + mean) / 2 : mean;
}

/**
 * cgpu_watch_entry_ns() - what an entry takes
 * @share: whose
 *
 * Context: gpu->lock is held.
 * Return: ns; what the first one has taken so far, if it runs still.
 */
u64 cgpu_watch_entry_ns(const struct cgpu_share *share)
{
	if (share->turn_done >= ENOUGH_ENTRIES)
		return div_u64(share->turn_ns, share->turn_done);
	return share->turn_done ? share->entry_ns :
				  max(share->entry_ns, share->turn_ns);
}

/**
 * cgpu_watch_enough() - whether enough is queued
 * @share: whose
 * @most: how much may be, ns
 *
 * Context: gpu->lock is held.
 * Return: true if nothing more should be queued now.
 */
bool cgpu_watch_enough(const struct cgpu_share *share, u64 most)
{
	u64 queued = share->work.left * cgpu_watch_entry_ns(share);

	return queued && queued >= (share->shut ? most / 2 : most);
}
