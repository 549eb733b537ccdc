// SPDX-License-Identifier: GPL-2.0-only
/*
 * A GPU in simulated time under sched.c; sched_cases.c says what must come out.
 *
 * The engine runs one kernel at a time, in order. A program always has work:
 * it submits while its gate is open and it has fewer kernels outstanding than
 * its depth. The caller's part (slices.c) is played here: it closes gates,
 * waits until the work is gone, and stops admitting what outlasts the turn.
 */
#include "sched_sim.h"

#define LATE_NS		(50 * US)	/* how late a timer may be */

static u64 late(struct world *w)
{
	w->noise = w->noise * 6364136223846793005ULL + 1442695040888963407ULL;
	return (w->noise >> 33) % LATE_NS;
}

static void submit(struct world *w, int i)
{
	struct program *p = &w->p[i];
	u64 left = cgpu_sched_left(&w->sched, w->now);

	if (w->now < p->ready_ns)
		return;
	while (p->outstanding < p->depth &&
	       (!p->outstanding || p->outstanding * p->kernel_ns < left)) {
		if (!p->outstanding++)
			p->left_ns = p->kernel_ns;
		p->launches++;
	}
}

static int running(const struct world *w)
{
	int i;

	for (i = 0; i < w->n; i++)
		if (w->p[i].outstanding)
			return i;
	return -1;
}

/* Nothing runs: until the program whose turn it is launches again. */
static void wait_for_launch(struct world *w, u64 to)
{
	u64 until = to;
	struct program *p;

	if (w->open < 0 || w->p[w->open].idle) {
		w->now = to;
		return;
	}
	p = &w->p[w->open];
	if (p->ready_ns > w->now)
		until = min(to, p->ready_ns);
	w->gap_ns += until - w->now;
	w->now = until;
	submit(w, w->open);
	if (!p->outstanding && until < to)
		w->now = to;
}

static void advance(struct world *w, u64 to)
{
	int i;

	while (w->now < to) {
		struct program *p;
		u64 step = to - w->now;

		i = running(w);
		if (i < 0) {
			wait_for_launch(w, to);
			if (w->now == to)
				return;
			continue;
		}
		p = &w->p[i];
		step = min_t(u64, step, p->left_ns);
		p->left_ns -= step;
		p->busy_ns += step;
		w->now += step;
		if (p->left_ns)
			continue;
		p->ready_ns = w->now + p->gap_ns;
		if (--p->outstanding)
			p->left_ns = p->kernel_ns;
		if (w->open == i && !p->idle)
			submit(w, i);
		if (!p->outstanding && !(w->open == i && p->gap_ns))
			return;
	}
}

/*
 * The end of the work is noticed late. The caller knows when it saw the work
 * last, and takes the middle.
 */
static void notice(struct world *w)
{
	u64 gone = w->now;

	if (w->sched.state == CGPU_DRAIN) {
		w->now += late(w);
		gone += late(w) - LATE_NS / 2;
	}
	w->gone = min(gone, w->now);
}

/* As watch.c does it. */
static void skip_gaps(struct world *w)
{
	cgpu_sched_skip(&w->sched, w->gap_ns);
	w->gap_ns = 0;
}

void run(struct world *w, u64 until)
{
	while (w->now < until) {
		int current = w->sched.current_ent;
		bool inflight = current >= 0 && current < w->n &&
				w->p[current].outstanding;
		struct cgpu_turn turn;
		u64 next;

		skip_gaps(w);
		turn = cgpu_sched_next(&w->sched, w->now, inflight ? 0 : w->gone);
		next = turn.until_ns ? turn.until_ns + late(w) : until;

		if (turn.open != w->open)
			w->changes++;
		w->open = turn.open;
		if (w->open >= 0 && !w->p[w->open].idle)
			submit(w, w->open);
		if (w->open == CGPU_NONE && w->sched.state == CGPU_DRAIN)
			next = until;
		advance(w, min(next, until));
		if (running(w) < 0)
			notice(w);
	}
}

void start(struct world *w, struct program *p, int n, u32 policy)
{
	struct cgpu_sched_conf conf = {
		.policy = policy, .max_inst = 20, .prio_ratio = 80,
		.slice_ns = 2 * MS, .debt_ns = 2000 * MS,
	};
	int i;

	memset(w, 0, sizeof(*w));
	w->p = p;
	w->n = n;
	w->now = 1;
	w->gone = 1;
	w->open = CGPU_NONE;
	cgpu_sched_init(&w->sched, &conf);
	for (i = 0; i < n; i++) {
		cgpu_sched_add(&w->sched, p[i].weight, p[i].highprio, 0);
		if (!p[i].idle)
			cgpu_sched_set_busy(&w->sched, i, true, 0);
	}
}
