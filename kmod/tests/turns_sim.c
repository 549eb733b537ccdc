// SPDX-License-Identifier: GPL-2.0-only
/*
 * A GPU, its programs and the module's looks in simulated time: the rules
 * (sched.c), the looks (turns.c) and what they charge (watch.c) are the
 * module's own; gates, rings and the engine are played here. Where sched_sim.c
 * tells the rules the truth, here they learn what a look can learn: a doorbell
 * is noticed late, kernels end between two looks, a thread takes time to launch
 * and to wake up. turns_cases.c says what must come out.
 */
#include "turns_sim.h"

#define WAKE_NS		(10 * US)
#define ROWS		2		/* in flight */
#define PACE_NS		(40 * US)	/* how often the engine looks for doorbells */
#define EVENT_NS	US		/* an entry without a kernel */

struct world w;

u64 ktime_get_ns(void)
{
	return w.now;
}

u64 noise(u64 most)
{
	w.noise = w.noise * 6364136223846793005ULL + 1442695040888963407ULL;
	return (w.noise >> 33) % most;
}

static struct program *program_of(const struct cgpu_share *share)
{
	return (struct program *)((char *)share - offsetof(struct program, share));
}

/* ---- programs ---- */

static u32 kernels_of_row(const struct program *p)
{
	u32 kernels = p->sleep_ns || p->kernel_ns >= 2 * MS ? 1 : 2 * MS / p->kernel_ns;

	return kernels + p->events;
}

/* What the entry after @done others takes. */
static u64 entry_ns(const struct program *p, u32 done)
{
	return p->events && !((done + 1) % kernels_of_row(p)) ? EVENT_NS : p->kernel_ns;
}

static bool may_launch(const struct program *p)
{
	u32 row = kernels_of_row(p);

	if (p->sleep_ns)
		return p->done == p->written;
	return p->rows < ROWS || p->done >= (p->rows - ROWS + 1) * row;
}

static void go_on(struct program *p)
{
	p->doing = LAUNCHES;
	p->next_ns = w.now + p->launch_ns;
	if (p->in_row || may_launch(p))
		return;
	p->doing = AWAITS;
	p->next_ns = NEVER;
}

/* The doorbell: a store, or a fault that waits for the turn. */
static void ring(struct program *p)
{
	struct cgpu_gate *gate = &p->share.gate;

	if (!gate->open) {
		p->doing = KNOCKS;
		p->next_ns = NEVER;
		gate->waiting.counter++;
		w.kicked = true;
		return;
	}
	if (!gate->touched)
		gate->touched_ns = w.now;
	gate->touched = true;
	p->bell = true;
	go_on(p);
}

static void act(struct program *p)
{
	if (p->doing == LAUNCHES && p->sleep_ns)
		p->woke_ns = w.now;
	if (p->doing == KNOCKS) {
		p->share.gate.waiting.counter--;
		ring(p);
		return;
	}
	p->written++;
	if (++p->in_row == kernels_of_row(p)) {
		p->in_row = 0;
		p->rows++;
	}
	ring(p);
}

/* ---- the engine ---- */

static void latch(struct program *p)
{
	if (!p->bell)
		return;
	p->bell = false;
	if (p->latched == p->done)
		p->left_ns = entry_ns(p, p->done);
	p->latched = p->written;
}

static int to_run(void)
{
	int i;

	if (w.owner >= 0 && w.p[w.owner].latched != w.p[w.owner].done)
		return w.owner;
	for (i = 0; i < w.n; i++)
		if (w.p[i].latched != w.p[i].done)
			return i;
	return -1;
}

static void finish(struct program *p)
{
	p->done++;
	p->stamp = w.time_ns;
	p->left_ns = entry_ns(p, p->done);
	if (p->doing != AWAITS || !may_launch(p))
		return;
	p->doing = LAUNCHES;
	p->next_ns = w.now + WAKE_NS + p->launch_ns + p->sleep_ns;
	if (p->sleep_ns)
		p->worst_ns = max(p->worst_ns, w.now + WAKE_NS - p->woke_ns);
}

static void run_engine(void)
{
	u64 end = NEVER;
	int i;

	while ((w.owner = to_run()) >= 0 && w.time_ns < w.now) {
		struct program *p = &w.p[w.owner];
		u64 step = min(p->left_ns, w.now - w.time_ns);

		p->left_ns -= step;
		p->busy_ns += step;
		w.time_ns += step;
		if (!p->left_ns)
			finish(p);
	}
	w.time_ns = w.now;
	for (i = 0; i < w.n; i++)
		latch(&w.p[i]);
	w.owner = to_run();
	if (w.owner >= 0)
		end = w.now + w.p[w.owner].left_ns;
	w.engine_ns = min(end, w.now + PACE_NS) + noise(PACE_NS / 4);
}

/* ---- what the module sees and does ---- */

void cgpu_gate_set(struct cgpu_share *share, bool open)
{
	struct program *p = program_of(share);

	share->gate.open = open;
	if (!open)
		share->gate.touched = false;
	else if (p->doing == KNOCKS)
		p->next_ns = w.now + WAKE_NS;
}

/* As work.c does it for one channel. */
void cgpu_work_look(struct cgpu_share *share, bool closed, struct cgpu_work *work)
{
	struct program *p = program_of(share);
	u32 left;

	memset(work, 0, sizeof(*work));
	work->seen = p->written;
	work->waiting = closed ? share->gate.waiting.counter : 0;
	if (!closed)
		p->until = p->written;
	else if (p->until != p->written)
		work->waiting--;
	left = (s32)(p->until - p->done) > 0 ? p->until - p->done : 0;
	work->done = p->done;
	work->stamp = p->stamp;
	work->left = left;
	work->last = left == 1;
	work->waiting = max(work->waiting, 0);
	work->left -= min_t(u32, work->last, work->waiting);
}

static void look(void)
{
	u64 next = cgpu_turns_look(&w.gpu);

	w.look_ns = next ? max(next, w.now) + noise(3 * US) : NEVER;
	w.given += w.gpu.open && w.gpu.open != w.had;
	w.had = w.gpu.open;
}

/* ---- how it goes on ---- */

void start(struct program *p, int n, u32 policy)
{
	struct cgpu_sched_conf conf = {
		.policy = policy, .max_inst = 20, .prio_ratio = 80,
		.slice_ns = 2 * MS, .debt_ns = 2000 * MS,
	};
	struct list_head *shares = &w.gpu.shares;
	int i;

	memset(&w, 0, sizeof(w));
	w.p = p;
	w.n = n;
	w.owner = -1;
	w.now = w.time_ns = w.look_ns = w.engine_ns = 1000 * MS;
	w.policy = policy;
	shares->next = shares->prev = shares;
	cgpu_sched_init(&w.gpu.sched, &conf);
	for (i = 0; i < n; i++) {
		struct cgpu_share *share = &p[i].share;

		share->gpu = &w.gpu;
		share->weight = p[i].weight;
		share->highprio = p[i].sleep_ns || p[i].highprio;
		share->ent = cgpu_sched_add(&w.gpu.sched, share->weight, share->highprio, w.now);
		list_add_tail(&share->link, shares);
		p[i].next_ns = p[i].rests ? NEVER : w.now + noise(MS);
	}
}

static u64 soonest(struct program **who)
{
	u64 at = min(w.look_ns, w.engine_ns);
	int i;

	*who = NULL;
	for (i = 0; i < w.n; i++) {
		if (w.p[i].next_ns >= at)
			continue;
		at = w.p[i].next_ns;
		*who = &w.p[i];
	}
	return at;
}

void run(u64 until)
{
	while (w.now < until) {
		struct program *who;

		w.now = max(w.now, soonest(&who));
		if (who)
			act(who);
		else if (w.engine_ns <= w.now)
			run_engine();
		if (w.kicked || w.look_ns <= w.now) {
			w.kicked = false;
			look();
		}
	}
}
