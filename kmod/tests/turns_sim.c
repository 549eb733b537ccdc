// SPDX-License-Identifier: GPL-2.0-only
/*
 * A GPU, its programs and the module's looks in simulated time: the rules
 * (sched.c), the looks (turns.c) and what they charge (watch.c) are the
 * module's own; gates, rings and the engine are played here. Where sched_sim.c
 * tells the rules the truth, here they learn what a look can learn: a doorbell
 * is noticed late, kernels end between two looks, a thread takes time to launch
 * and to wake up. Prints one line a case that misses the tolerance and a
 * summary; exit status 1 if one did.
 */
#include "shim/cgpu.h"

#define MOST		20
#define US		1000ULL
#define MS		1000000ULL
#define NEVER		U64_MAX
#define WAKE_NS		(10 * US)
#define ROWS		2		/* in flight */
#define PACE_NS		(50 * US)	/* how often the engine looks for doorbells */

enum doing { LAUNCHES, KNOCKS, AWAITS };

struct program {
	u64 kernel_ns;
	u32 weight;
	u64 launch_ns;		/* how long it takes to launch */
	u64 sleep_ns;		/* of high priority: between a kernel and the next one */
	u64 woke_ns, worst_ns;	/* when it woke, and the longest that a kernel took from there */
	struct cgpu_share share;
	enum doing doing;
	u64 next_ns;		/* when it does it */
	u32 written, latched, done, until;
	bool bell;
	u32 rows;		/* launched so far */
	u32 in_row;
	u64 stamp;
	u64 left_ns;		/* of the kernel that runs */
	u64 busy_ns;
};

static struct world {
	struct cgpu_gpu gpu;
	struct program *p;
	int n;
	u64 now;
	u64 look_ns, engine_ns, time_ns;
	int owner;
	bool kicked;
	u64 noise;
	u32 policy;
	double allowed;		/* beside the contract's tolerance */
} w;

u64 ktime_get_ns(void)
{
	return w.now;
}

static u64 noise(u64 most)
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
	if (p->sleep_ns || p->kernel_ns >= 2 * MS)
		return 1;
	return 2 * MS / p->kernel_ns;
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
		p->left_ns = p->kernel_ns;
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
	p->left_ns = p->kernel_ns;
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
}

/* ---- cases ---- */

static void start(struct program *p, int n, u32 policy)
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
		share->highprio = p[i].sleep_ns;
		share->ent = cgpu_sched_add(&w.gpu.sched, share->weight, share->highprio, w.now);
		list_add_tail(&share->link, shares);
		p[i].next_ns = w.now + noise(MS);
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

static void run(u64 until)
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

static double wanted(int i)
{
	double all = 0;
	int k;

	if (w.policy == CGPU_FAIR)
		return 1.0 / 20;
	if (w.policy == CGPU_FIXED)
		return w.p[i].weight / 20.0;
	for (k = 0; k < w.n; k++)
		all += w.policy == CGPU_WEIGHTED ? w.p[k].weight : 1;
	return (w.policy == CGPU_WEIGHTED ? w.p[i].weight : 1) / all;
}

static int cases, missed;

static void judge(const u64 *busy, u64 time, const char *what)
{
	double longest = 0, all = 0;
	u64 sum = 0;
	int i;

	for (i = 0; i < w.n; i++) {
		longest = max_t(double, longest, w.p[i].kernel_ns);
		sum += w.p[i].busy_ns - busy[i];
	}
	all = w.policy == CGPU_FAIR || w.policy == CGPU_FIXED ? time : sum;
	for (i = 0; i < w.n; i++) {
		double share = (w.p[i].busy_ns - busy[i]) / all, off = share / wanted(i) - 1;
		double may = (w.policy == CGPU_SOFT ? 0.1 : 0.01) + longest / (wanted(i) * time) + w.allowed;

		cases++;
		if (off <= may && -off <= may)
			continue;
		missed++;
		printf("MISSED policy %u %s: instance %d has %.4f, wanted %.4f, off %+.2f%% of %.2f%%\n",
		       w.policy, what, i, share, wanted(i), 100 * off, 100 * may);
	}
}

/* Where shares are parts of the clock, a turn comes seldom: many are needed. */
static u64 long_enough(void)
{
	return (w.policy == CGPU_FAIR || w.policy == CGPU_FIXED ? 40 : 4) * 1000 * MS;
}

static void play(struct program *p, int n, u32 policy, double allowed, const char *what)
{
	u64 busy[MOST], time;
	int i;

	start(p, n, policy);
	w.allowed = allowed;
	time = long_enough();
	run(w.now + 500 * MS);
	for (i = 0; i < n; i++)
		busy[i] = p[i].busy_ns;
	run(w.now + time);
	judge(busy, time, what);
}

static const u64 lengths[] = { 100 * US, MS, 5 * MS };
static const u32 weights[][2] = { { 1, 1 }, { 1, 2 }, { 2, 18 } };

static void pair(u32 policy, const u32 *weight, u64 one, u64 other, u64 launch_ns)
{
	struct program p[2] = {
		{ .kernel_ns = one, .weight = weight[0], .launch_ns = launch_ns },
		{ .kernel_ns = other, .weight = weight[1], .launch_ns = launch_ns },
	};
	char what[96];

	snprintf(what, sizeof(what), "weights %u:%u kernels %llu:%llu us launch %llu us", weight[0], weight[1],
		 (unsigned long long)(one / US), (unsigned long long)(other / US), (unsigned long long)(launch_ns / US));
	play(p, 2, policy, 0, what);
}

static void pairs(u64 launch_ns)
{
	size_t i, a, b;
	u32 policy;

	for (policy = CGPU_FAIR; policy < CGPU_NATIVE; policy++)
	for (i = 0; i < ARRAY_SIZE(weights); i++)
	for (a = 0; a < ARRAY_SIZE(lengths); a++)
	for (b = 0; b < ARRAY_SIZE(lengths); b++) {
		bool weighted = policy == CGPU_WEIGHTED || policy == CGPU_FIXED;

		if (weighted ? i > 0 : i == 0)
			pair(policy, weights[i], lengths[a], lengths[b], launch_ns);
	}
}

static void alone(u64 launch_ns)
{
	char what[64];
	size_t a;
	u32 policy;

	for (policy = CGPU_FAIR; policy <= CGPU_FIXED; policy += CGPU_FIXED)
	for (a = 0; a < ARRAY_SIZE(lengths); a++) {
		struct program p[1] = { { .kernel_ns = lengths[a], .weight = 3, .launch_ns = launch_ns } };

		snprintf(what, sizeof(what), "alone kernels %llu us launch %llu us",
			 (unsigned long long)(lengths[a] / US), (unsigned long long)(launch_ns / US));
		play(p, 1, policy, 0, what);
	}
}

/* Who launches more slowly than the GPU works pays for his kernels, hardly for the gaps. */
static void too_slow(void)
{
	u32 policy;

	for (policy = CGPU_FAIR; policy <= CGPU_FIXED; policy += CGPU_FIXED) {
		struct program p[1] = { { .kernel_ns = 100 * US, .weight = 1, .launch_ns = 130 * US } };

		play(p, 1, policy, 0.06, "alone kernels 100 us launch 130 us");
	}
}

/* Who is below one that sleeps for ever has the GPU alone. */
static void beside_a_sleeper(void)
{
	size_t a;

	for (a = 0; a < ARRAY_SIZE(lengths); a++) {
		struct program p[2] = {
			{ .kernel_ns = lengths[a], .weight = 1, .launch_ns = 40 * US },
			{ .kernel_ns = MS, .weight = 1, .launch_ns = 40 * US, .sleep_ns = NEVER / 4 },
		};
		u64 busy;

		start(p, 2, CGPU_PREEMPTIVE);
		run(w.now + 500 * MS);
		busy = p[0].busy_ns;
		run(w.now + 2000 * MS);
		busy = p[0].busy_ns - busy;
		cases++;
		if (busy >= 1990 * MS)
			continue;
		missed++;
		printf("MISSED beside a sleeper of high priority kernels of %llu us get %llu us of 2 s\n",
		       (unsigned long long)(lengths[a] / US), (unsigned long long)(busy / US));
	}
}

/* Who sleeps, of high priority, waits for a slice and the longest kernel, and has his own. */
static void waking(void)
{
	size_t a;

	for (a = 0; a < ARRAY_SIZE(lengths); a++) {
		struct program p[2] = {
			{ .kernel_ns = lengths[a], .weight = 1, .launch_ns = 40 * US },
			{ .kernel_ns = MS, .weight = 1, .launch_ns = 40 * US, .sleep_ns = 53 * MS },
		};
		u64 most = 2 * MS + lengths[a] + MS + MS / 2;

		start(p, 2, CGPU_PREEMPTIVE);
		run(w.now + 20000 * MS);
		cases++;
		if (p[1].worst_ns && p[1].worst_ns <= most)
			continue;
		missed++;
		printf("MISSED beside kernels of %llu us who wakes has waited for %llu us of %llu\n",
		       (unsigned long long)(lengths[a] / US), (unsigned long long)(p[1].worst_ns / US),
		       (unsigned long long)(most / US));
	}
}

int main(void)
{
	static const u64 launches[] = { 40 * US, 90 * US };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(launches); i++) {
		pairs(launches[i]);
		alone(launches[i]);
	}
	too_slow();
	waking();
	beside_a_sleeper();
	printf("%d of %d hold\n", cases - missed, cases);
	return missed ? 1 : 0;
}
