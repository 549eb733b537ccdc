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
#define FADES			16	/* ends after which little is left of a long entry */
#define LASTS			1024	/* the same, of one whose length is known exactly */
#define CLOCK_DRIFT_NS		100	/* a look: clocks drift, programs lie */

/* What follows is judged when the next entry ends. */
static void begin_window(struct cgpu_share *share, u64 from)
{
	share->ended_ns = from;
	share->gaps_ns = 0;
	share->idle_ns = 0;
	share->holes_ns = 0;
}

static u64 rate_of(const struct cgpu_share *share)
{
	if (share->solid_done >= ENOUGH_ENTRIES || !share->rate_ns)
		return share->solid_done ? div_u64(share->solid_ns, share->solid_done) : 0;
	return share->rate_ns;
}

/*
 * A thread before the closed gate has written its entry. If the GPU looked at
 * the channel again, it ran in another's turn, and is charged in this one.
 */
static void see_late(struct cgpu_share *share)
{
	u32 waiting = atomic_read(&share->gate.waiting);
	struct cgpu_work now;
	u64 late;

	if (!waiting || !share->work.seen)
		return;
	cgpu_work_look(share, true, &now);
	late = min(now.done - share->work.done, waiting) * rate_of(share);
	share->work.done = now.done;
	share->work.stamp = now.stamp;
	share->busy_ns += late;
	cgpu_sched_skip(&share->gpu->sched, -(s64)late);
}

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
	share->done_ns = 0;
	share->solid_ns = 0;
	share->solid_done = 0;
	share->solid = false;
	begin_window(share, now);
	see_late(share);
}

/* Time between two looks: busy if both saw work, half if one did; the first doorbell is work. */
static u64 busy_between(const struct cgpu_share *share,
			const struct cgpu_work *was, u64 now)
{
	u64 passed = now - share->looked_ns;
	bool had = was->left || share->looked_ns == share->began_ns;

	if (!share->rang)
		return 0;
	if (!share->work.seen)
		return share->gate.open ? passed : 0;
	if (had && share->work.left)
		return passed;
	return had || share->work.left ? passed / 2 : 0;
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
	share->solid = false;
	begin_window(share, rung);
}

/* Gaps are not charged, up to the length of the turn; negative: they were none. */
static void skip(struct cgpu_share *share, s64 ns)
{
	const struct cgpu_sched *sched = &share->gpu->sched;
	u64 before = sched->skipped_ns;

	cgpu_sched_skip(&share->gpu->sched, ns);
	share->gaps_ns += sched->skipped_ns - before;
}

/* What two looks tell: more than that is known when the next entry ends. */
static void see_time(struct cgpu_share *share, u64 passed, u64 busy, bool closed)
{
	u64 idle = passed - min(passed, busy);

	share->busy_ns += busy;
	share->turn_ns += busy;
	share->idle_ns += idle;
	if (!closed && share->rang && share->work.seen)
		skip(share, idle);
}

/* What was taken for idle since the last end of an entry, and what was. */
static void correct(struct cgpu_share *share, u64 gap, u64 after, bool closed)
{
	s64 more = gap + after - share->idle_ns;

	skip(share, gap + (closed ? 0 : after) - share->gaps_ns);
	share->busy_ns -= min_t(s64, more, share->busy_ns);
}

static u64 faded(u64 ns, u32 ends)
{
	return ns - ns / ends;
}

static void learn(struct cgpu_share *share, u64 window, u32 done, bool solid)
{
	share->longest_ns = max(window, faded(share->longest_ns, FADES));
	if (!solid || !share->solid)
		return;
	share->solid_ns += window;
	share->solid_done += done;
	if (done == 1)
		share->single_ns = max(window, faded(share->single_ns, LASTS));
}

/*
 * What the entries of a window have taken, if that is known, else 0. Of long
 * ones only that a single one took no more than the longest of its kind, which
 * shows a gap that no look has seen: until the first of a turn starts.
 */
static u64 time_of(const struct cgpu_share *share, u64 window, u32 done)
{
	u64 rate = rate_of(share);

	if (rate && rate <= share->holes_ns)
		return done * rate;
	if (done == 1 && share->single_ns &&
	    window > share->single_ns + share->idle_ns)
		return share->single_ns;
	return 0;
}

/*
 * Looks are too rare to see the gaps between short kernels, and what passes
 * until the first one starts. Where more was queued than was finished, the GPU
 * worked all the time, which tells what an entry takes; elsewhere its entries
 * have taken as much, by the GPU's clock. After the last one it rests; who is
 * closed is charged until then anyway.
 */
static void see_ends(struct cgpu_share *share, u64 now, u32 done, bool solid, bool closed)
{
	u64 ended = clamp(share->work.stamp + share->clock, share->ended_ns, now);
	u64 after = share->work.left ? 0 : now - ended, window = ended - share->ended_ns;
	u64 took;

	learn(share, window, done, solid);
	took = time_of(share, window, done);
	if (took)
		correct(share, min(window - min(window, took), share->holes_ns),
			after, closed);
	begin_window(share, ended);
	share->solid = solid;
	share->idle_ns = after;
	share->gaps_ns = closed ? 0 : after;
	share->holes_ns = solid ? 0 : now - ended;
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
	u64 now, passed;
	bool solid;
	u32 done;

	lockdep_assert_held(&share->gpu->lock);
	see_ring(share);
	cgpu_work_look(share, closed, &share->work);
	now = ktime_get_ns();
	passed = now - share->looked_ns;
	done = share->work.done - was.done;
	solid = closed || was.left > done;	/* nothing is added to what is closed */
	if (!share->rang)
		share->work.left = 0;
	if (done)
		share->moved_ns = now;
	if (!solid)
		share->holes_ns += passed;
	see_stamp(share, was.stamp, now);
	see_time(share, passed, busy_between(share, &was, now), closed);
	if (done && share->rang && share->work.stamp && share->clock)
		see_ends(share, now, done, solid, closed);
	share->turn_done += done;
	if (done)
		share->done_ns = share->turn_ns;
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

static u64 settled(u64 before, u64 ns, u32 entries)
{
	u64 mean = entries ? div_u64(ns, entries) : before;

	return before ? (before + mean) / 2 : mean;
}

/**
 * cgpu_watch_end() - a turn is over and its work is gone
 * @share: whose
 *
 * Context: gpu->lock is held.
 */
void cgpu_watch_end(struct cgpu_share *share)
{
	share->work.left = 0;
	share->entry_ns = settled(share->entry_ns, share->turn_ns, share->turn_done);
	share->rate_ns = settled(share->rate_ns, share->solid_ns, share->solid_done);
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
	if (share->turn_done >= ENOUGH_ENTRIES ||
	    (share->turn_done && !share->entry_ns))
		return div_u64(share->done_ns, share->turn_done);
	return share->turn_done || share->turn_ns <= share->longest_ns ?
	       share->entry_ns : max(share->entry_ns, share->turn_ns);
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
	u64 entry = cgpu_watch_entry_ns(share), queued = share->work.left * entry;

	u64 ran = share->looked_ns - min(share->looked_ns, share->ended_ns);

	/* the one that runs has done its part since the last one ended */
	ran = min(ran, max(entry, share->longest_ns));
	return queued > ran && queued - ran >= (share->shut ? most / 2 : most);
}
