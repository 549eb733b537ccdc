// SPDX-License-Identifier: GPL-2.0-only
/*
 * One look at a GPU: what work is on it, whose turn sched.c says it is, and
 * which gates are open.
 */
#include <linux/ktime.h>
#include "cgpu.h"

#define LOOK_LEAST_NS		(100ULL * NSEC_PER_USEC)
#define LOOK_MOST_NS		(1ULL * NSEC_PER_MSEC)
#define LOOK_ALONE_NS		(10ULL * NSEC_PER_MSEC)
#define ALONE_NS		(100ULL * NSEC_PER_MSEC)

static struct cgpu_share *share_of(struct cgpu_gpu *gpu, int ent)
{
	struct cgpu_share *share;

	lockdep_assert_held(&gpu->lock);
	list_for_each_entry(share, &gpu->shares, link)
		if (share->ent == ent)
			return share;
	return NULL;
}

/* Others are there, and could wake at any moment. */
static bool has_peers(const struct cgpu_gpu *gpu)
{
	return !list_empty(&gpu->shares) && !list_is_singular(&gpu->shares);
}

static bool others_wait(const struct cgpu_gpu *gpu, const struct cgpu_share *share)
{
	const struct cgpu_share *other;

	list_for_each_entry(other, &gpu->shares, link)
		if (other != share && atomic_read(&other->gate.waiting))
			return true;
	return false;
}

/* How long a share that stopped submitting keeps its turn. */
static u64 linger(const struct cgpu_gpu *gpu, const struct cgpu_share *share)
{
	return others_wait(gpu, share) ? gpu->sched.conf.slice_ns : ALONE_NS;
}

/* An instance has work while it waits, and in its turn while it goes on. */
static bool is_busy(const struct cgpu_gpu *gpu, const struct cgpu_share *share,
		    u64 now)
{
	if (atomic_read(&share->gate.waiting))
		return true;
	if (share != gpu->open || !share->rang)
		return false;
	return !share->work.seen || share->work.left ||
	       now - share->moved_ns < linger(gpu, share);
}

static bool update_busy(struct cgpu_gpu *gpu, u64 now)
{
	struct cgpu_share *share;
	bool any = false;

	list_for_each_entry(share, &gpu->shares, link) {
		bool busy = is_busy(gpu, share, now);

		cgpu_sched_set_busy(&gpu->sched, share->ent, busy, now);
		any |= busy;
	}
	return any;
}

/* The gate closes; what was rung until now is what must leave the GPU. */
static void close_gate(struct cgpu_gpu *gpu)
{
	struct cgpu_share *share = gpu->open;
	bool was_shut;

	if (!share)
		return;
	was_shut = !share->gate.open;
	gpu->open = NULL;
	gpu->draining = share;
	gpu->closed_ns = ktime_get_ns();
	if (!was_shut)
		cgpu_gate_set(share, false);
	cgpu_watch(share, was_shut);
}

static void forget_drained(struct cgpu_gpu *gpu)
{
	if (gpu->draining)
		cgpu_watch_end(gpu->draining);
	gpu->draining = NULL;
}

static void open_gate(struct cgpu_gpu *gpu, struct cgpu_share *share)
{
	if (gpu->open == share)
		return;
	close_gate(gpu);
	if (gpu->sched.state == CGPU_DRAIN)
		return;
	forget_drained(gpu);
	gpu->open = share;
	if (!share)
		return;
	cgpu_watch_begin(share, ktime_get_ns());
	cgpu_gate_set(share, true);
}

static void open_all(struct cgpu_gpu *gpu)
{
	struct cgpu_share *share;

	close_gate(gpu);
	forget_drained(gpu);
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

/*
 * A thread waits, and an entry is missing that may never have been rung; or the
 * work is longer than any debt that is remembered.
 */
static bool is_stuck(const struct cgpu_gpu *gpu, const struct cgpu_share *share,
		     u64 now)
{
	u64 still = now - max(gpu->closed_ns, share->moved_ns);

	if (now - gpu->closed_ns > gpu->sched.conf.debt_ns)
		return true;
	return share->work.waiting &&
	       still > gpu->sched.conf.slice_ns + 2 * share->entry_ns;
}

/* When the work of the turn left the GPU, as well as it is known; 0 = not. */
static u64 see_gone(struct cgpu_gpu *gpu)
{
	struct cgpu_share *share = gpu->open ?: gpu->draining;
	u64 before;

	if (!share)
		return ktime_get_ns();
	before = share->work.left ? share->looked_ns : 0;
	cgpu_watch(share, !share->gate.open);
	if (share->work.left &&
	    (gpu->open || !is_stuck(gpu, share, share->looked_ns)))
		return 0;
	return before ? cgpu_watch_gone(share, before) : gpu->closed_ns;
}

static bool is_below_others(const struct cgpu_gpu *gpu, const struct cgpu_share *share)
{
	const struct cgpu_share *other;

	list_for_each_entry(other, &gpu->shares, link)
		if (other->highprio && other->weight && !share->highprio)
			return true;
	return false;
}

/* Who is below others may at any moment have to leave the GPU to them. */
static u64 below_look(u64 slice)
{
	return clamp(slice / 8, LOOK_LEAST_NS, LOOK_MOST_NS);
}

/* Not more is queued than the turn can take, or than a peer can wait for. */
static u64 most_queued(const struct cgpu_gpu *gpu, u64 until, u64 now)
{
	u64 slice = gpu->sched.conf.slice_ns;

	if (is_below_others(gpu, gpu->open))
		return slice - below_look(slice);
	if (!until)
		return ALONE_NS;
	return cgpu_sched_left(&gpu->sched, now) +
	       min(2 * slice, 2 * cgpu_watch_entry_ns(gpu->open) + slice / 16);
}

static void limit_queue(struct cgpu_gpu *gpu, u64 until, u64 now)
{
	struct cgpu_share *share = gpu->open;
	bool shut;

	if (!share || !share->rang || !has_peers(gpu))
		return;
	shut = cgpu_watch_enough(share, most_queued(gpu, until, now));
	if (shut == share->shut)
		return;
	share->shut = shut;
	cgpu_gate_set(share, !shut);
	if (shut)
		cgpu_watch(share, false);
}

static u64 next_look(const struct cgpu_gpu *gpu, u64 until, u64 now)
{
	u64 slice = gpu->sched.conf.slice_ns, wait = 0;
	const struct cgpu_share *share = gpu->open;

	if (!share && gpu->draining)
		wait = clamp((now - gpu->closed_ns) / 32, LOOK_LEAST_NS, LOOK_MOST_NS);
	else if (share && until)
		wait = share->entry_ns > slice && !share->shut ?
		       LOOK_LEAST_NS : clamp(slice / 16, LOOK_LEAST_NS, LOOK_MOST_NS);
	else if (share && is_below_others(gpu, share))
		wait = below_look(slice);
	else if (share)
		wait = has_peers(gpu) && share->entry_ns > LOOK_MOST_NS ?
		       2 * LOOK_MOST_NS : LOOK_ALONE_NS;
	if (!wait)
		return until;
	return until ? min(until, now + wait) : now + wait;
}

/**
 * cgpu_turns_look() - see whose turn it is and set the gates
 * @gpu: the GPU
 *
 * Context: process; gpu->lock is held.
 * Return: when to look again, ns of the monotonic clock; 0 = when kicked.
 */
u64 cgpu_turns_look(struct cgpu_gpu *gpu)
{
	u64 now, gone;
	struct cgpu_turn turn;

	lockdep_assert_held(&gpu->lock);
	if (gpu->sched.conf.policy == CGPU_NATIVE) {
		open_all(gpu);
		return 0;
	}
	close_all(gpu);
	gone = see_gone(gpu);
	now = ktime_get_ns();
	if (!update_busy(gpu, now) && gone) {
		close_gate(gpu);
		forget_drained(gpu);
		cgpu_sched_park(&gpu->sched);
		return 0;
	}
	turn = cgpu_sched_next(&gpu->sched, now, gone);
	open_gate(gpu, share_of(gpu, turn.open));
	limit_queue(gpu, turn.until_ns, now);
	return next_look(gpu, turn.until_ns, now);
}
