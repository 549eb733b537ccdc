// SPDX-License-Identifier: GPL-2.0-only
/*
 * What each program must get of the GPU that turns_sim.c plays. Prints one line
 * a case that misses the tolerance and a summary; exit status 1 if one did.
 */
#include "turns_sim.h"

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

/*
 * Who sleeps, of high priority, waits for a slice and the longest kernel, and has
 * his own: at whatever moment he wakes, once it is known what a kernel takes.
 */
static void waking(bool events, u64 launch_ns)
{
	static const u64 beside[] = { 100 * US, MS, 5 * MS };
	size_t a;
	int i;

	for (a = 0; a < ARRAY_SIZE(beside); a++) {
		struct program p[2] = {
			{ .kernel_ns = beside[a], .weight = 1, .launch_ns = launch_ns, .events = events },
			{ .kernel_ns = MS, .weight = 1, .launch_ns = 40 * US, .sleep_ns = 53 * MS },
		};
		u64 most = 2 * MS + beside[a] + MS + MS / 2;

		start(p, 2, CGPU_PREEMPTIVE);
		run(w.now + 2000 * MS);
		p[1].worst_ns = 0;
		for (i = 0; i < 400; i++) {
			p[1].sleep_ns = 30 * MS + noise(40 * MS);
			run(w.now + p[1].sleep_ns);
		}
		cases++;
		if (p[1].worst_ns && p[1].worst_ns <= most)
			continue;
		missed++;
		printf("MISSED beside kernels of %llu us launch %llu us who wakes has waited for %llu us of %llu\n",
		       (unsigned long long)(beside[a] / US), (unsigned long long)(launch_ns / US),
		       (unsigned long long)(p[1].worst_ns / US), (unsigned long long)(most / US));
	}
}

static void must(const char *what, double got, double want, double by)
{
	cases++;
	if (got >= want * (1 - by) && got <= want * (1 + by))
		return;
	missed++;
	printf("MISSED %s: %.4f, wanted %.4f\n", what, got, want);
}

/* Runs them, after a while; returns how long their work took in all. */
static double busy_for(struct program *p, int n, u32 policy, u64 time)
{
	u64 busy = 0;
	int i;

	start(p, n, policy);
	run(w.now + 500 * MS);
	for (i = 0; i < n; i++)
		p[i].busy_ns = 0;
	w.given = 0;
	run(w.now + time);
	for (i = 0; i < n; i++)
		busy += p[i].busy_ns;
	return busy;
}

/* Within its class as without one, though who drains is not at the gate for a moment. */
static void inside_a_class(bool events, u64 launch_ns)
{
	struct program p[3] = {
		{ .kernel_ns = MS, .weight = 2, .highprio = true },
		{ .kernel_ns = 5 * MS, .weight = 1, .highprio = true },
		{ .kernel_ns = 5 * MS, .weight = 1 },
	};
	int i;

	for (i = 0; i < 3; i++) {
		p[i].launch_ns = launch_ns;
		p[i].events = events;
	}
	busy_for(p, 3, CGPU_WEIGHTED, 8000 * MS);
	must("weights 2:1 inside the class of high priority", (double)p[0].busy_ns / p[1].busy_ns, 2, 0.03);
}

/* What is lost when turns change comes out of the slices of who rests. */
static void beside_one_that_rests(bool events, u64 launch_ns)
{
	static const u64 short_ones[] = { 100 * US, MS };
	size_t a;

	for (a = 0; a < ARRAY_SIZE(short_ones); a++) {
		struct program p[2] = {
			{ .kernel_ns = short_ones[a], .weight = 2, .launch_ns = launch_ns, .events = events },
			{ .kernel_ns = MS, .weight = 4, .rests = true },
		};

		must("policy 2 beside one that rests", busy_for(p, 2, CGPU_WEIGHTED, 4000 * MS) / (4000 * MS),
		     1 / 3.0, 0.0125);
	}
}

static void change_of_hands(bool events, u64 launch_ns)
{
	double given[2];
	u32 i;

	for (i = 0; i < 2; i++) {
		struct program p[2] = {
			{ .kernel_ns = 100 * US, .weight = i ? 8 : 2, .launch_ns = launch_ns, .events = events },
			{ .kernel_ns = 100 * US, .weight = i ? 4 : 1, .launch_ns = launch_ns, .events = events },
		};

		busy_for(p, 2, CGPU_WEIGHTED, 4000 * MS);
		must("weights 2:1 and 8:4", (double)p[0].busy_ns / p[1].busy_ns, 2, 0.02);
		given[i] = w.given;
	}
	must("2:1 changes hands four times as often as 8:4", given[0] / given[1], 4, 0.1);
}

int main(void)
{
	static const u64 launches[] = { 40 * US, 90 * US };
	int events;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(launches); i++) {
		pairs(launches[i]);
		alone(launches[i]);
	}
	for (i = 0; i < ARRAY_SIZE(launches); i++)
	for (events = 0; events < 2; events++) {
		waking(events, launches[i]);
		inside_a_class(events, launches[i]);
		beside_one_that_rests(events, launches[i]);
		change_of_hands(events, launches[i]);
	}
	too_slow();
	beside_a_sleeper();
	printf("%d of %d hold\n", cases - missed, cases);
	return missed ? 1 : 0;
}
