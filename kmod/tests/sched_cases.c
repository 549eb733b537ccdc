// SPDX-License-Identifier: GPL-2.0-only
/*
 * What sched.c must give in simulated time: every policy, weights, kernel
 * lengths, synchronous and asynchronous programs. Prints one line a case that
 * misses the tolerance and a summary; exit status 1 if one did.
 */
#include "sched_sim.h"

static bool of_wall_time(u32 policy)
{
	return policy == CGPU_FAIR || policy == CGPU_FIXED;
}

static double wanted(const struct program *p, int n, int i, u32 policy)
{
	double all = 0, mine;
	int k;

	if (policy == CGPU_FAIR)
		return 1.0 / 20;
	if (policy == CGPU_FIXED)
		return p[i].weight / 20.0;
	for (k = 0; k < n; k++)
		if (!p[k].idle)
			all += policy == CGPU_WEIGHTED ? p[k].weight : 1;
	mine = policy == CGPU_WEIGHTED ? p[i].weight : 1;
	return mine / all;
}

static double share_of(const struct world *w, int i, u32 policy, u64 time)
{
	double all = 0;
	int k;

	for (k = 0; k < w->n; k++)
		all += w->p[k].busy_ns;
	return w->p[i].busy_ns / (of_wall_time(policy) ? (double)time : all);
}

static int cases, missed;

static void judge(const struct world *w, u32 policy, u64 time, const char *what)
{
	double longest = 0, share, want, off, may;
	int i;

	for (i = 0; i < w->n; i++)
		if (!w->p[i].idle && w->p[i].kernel_ns > longest)
			longest = w->p[i].kernel_ns;
	for (i = 0; i < w->n; i++) {
		if (w->p[i].idle)
			continue;
		want = wanted(w->p, w->n, i, policy);
		share = share_of(w, i, policy, time);
		off = share / want - 1;
		may = 0.01 + longest / (want * time);
		cases++;
		if (off <= may && -off <= may)
			continue;
		missed++;
		printf("MISSED policy %u %s: instance %d has %.4f, wanted %.4f, off %.2f%% of %.2f%%\n",
		       policy, what, i, share, want, 100 * off, 100 * may);
	}
}

static u64 long_enough(const struct program *p, int n, u32 policy, int times)
{
	u64 longest = 0;
	double least = 1;
	int i;

	for (i = 0; i < n; i++) {
		longest = max_t(u64, longest, p[i].kernel_ns);
		if (!p[i].idle && wanted(p, n, i, policy) < least)
			least = wanted(p, n, i, policy);
	}
	return max_t(u64, 10000 * MS, times * longest / least);
}

static const u64 lengths[] = { 100 * US, MS, 5 * MS, 20 * MS, 50 * MS, 200 * MS };
static const u32 weights[][2] = { { 1, 2 }, { 1, 1 }, { 2, 1 }, { 8, 4 }, { 2, 18 } };
static const u32 depths[] = { 1, 32 };

static void pairs(int times)
{
	struct world w;
	char what[128];
	size_t a, b, i;
	u32 policy, da, db;

	for (policy = CGPU_FAIR; policy < CGPU_NATIVE; policy++)
	for (i = 0; i < ARRAY_SIZE(weights); i++)
	for (a = 0; a < ARRAY_SIZE(lengths); a++)
	for (b = 0; b < ARRAY_SIZE(lengths); b++)
	for (da = 0; da < 2; da++)
	for (db = 0; db < 2; db++) {
		struct program p[2] = {
			{ .kernel_ns = lengths[a], .depth = depths[da], .weight = weights[i][0] },
			{ .kernel_ns = lengths[b], .depth = depths[db], .weight = weights[i][1] },
		};
		u64 time = long_enough(p, 2, policy, times);

		start(&w, p, 2, policy);
		run(&w, time);
		snprintf(what, sizeof(what), "weights %u:%u kernels %llu:%llu us depth %u:%u",
			 p[0].weight, p[1].weight, (unsigned long long)(lengths[a] / US),
			 (unsigned long long)(lengths[b] / US), depths[da], depths[db]);
		judge(&w, policy, time, what);
	}
}

/* Programs that wait for each kernel and think before the next one. */
static void gaps(int times)
{
	static const u64 thinks[] = { 0, 100 * US, 500 * US };
	struct world w;
	char what[96];
	size_t i, a, g, h;
	u32 policy;

	for (policy = CGPU_FAIR; policy < CGPU_NATIVE; policy++)
	for (i = 0; i < ARRAY_SIZE(weights); i++)
	for (a = 1; a < ARRAY_SIZE(lengths); a++)
	for (g = 0; g < ARRAY_SIZE(thinks); g++)
	for (h = 0; h < ARRAY_SIZE(thinks); h++) {
		struct program p[2] = {
			{ .kernel_ns = lengths[a], .depth = 1, .weight = weights[i][0], .gap_ns = thinks[g] },
			{ .kernel_ns = MS, .depth = 1, .weight = weights[i][1], .gap_ns = thinks[h] },
		};
		u64 time = long_enough(p, 2, policy, times);

		if (policy == CGPU_FIXED && p[0].weight + p[1].weight == 20)
			continue;	/* nobody's slices are left for the gaps */
		start(&w, p, 2, policy);
		run(&w, time);
		snprintf(what, sizeof(what), "weights %u:%u kernels %llu:1000 us gaps %llu:%llu us",
			 p[0].weight, p[1].weight, (unsigned long long)(lengths[a] / US),
			 (unsigned long long)(thinks[g] / US), (unsigned long long)(thinks[h] / US));
		judge(&w, policy, time, what);
	}
}

static void many(int n, int times)
{
	struct world w;
	char what[64];
	u32 policy;
	int i;

	for (policy = CGPU_FAIR; policy < CGPU_NATIVE; policy++) {
		struct program p[MOST] = { 0 };
		u64 time;

		for (i = 0; i < n; i++)
			p[i] = (struct program) {
				.kernel_ns = lengths[i % ARRAY_SIZE(lengths)],
				.depth = depths[i % 2], .weight = 1,
			};
		time = long_enough(p, n, policy, times);
		start(&w, p, n, policy);
		run(&w, time);
		snprintf(what, sizeof(what), "%d instances", n);
		judge(&w, policy, time, what);
	}
}

static void check(const char *what, bool holds, double value)
{
	cases++;
	if (holds)
		return;
	missed++;
	printf("MISSED %s: %.4f\n", what, value);
}

static bool near(double value, double want, double by)
{
	return value >= want * (1 - by) && value <= want * (1 + by);
}

/* Alone and busy: the whole GPU, except where the policy keeps slices. */
static void alone(void)
{
	static const double want[] = { 0.05, 1, 1, 0.15, 1 };
	struct world w;
	u32 policy;

	for (policy = CGPU_FAIR; policy < CGPU_NATIVE; policy++) {
		struct program p[1] = { { .kernel_ns = MS, .depth = 1, .weight = 3 } };

		start(&w, p, 1, policy);
		run(&w, 10000 * MS);
		check("alone", near(p[0].busy_ns / 1e10, want[policy], 0.011),
		      p[0].busy_ns / 1e10);
		if (want[policy] == 1)
			check("alone, one change of the gate", w.changes == 1, w.changes);
	}
}

/* An idle peer: skipped under 1 and 4, keeps its slices under 0, 2 and 3. */
static void idle_peer(void)
{
	static const double want[] = { 0.05, 1, 1 / 3.0, 0.1, 1 };
	struct world w;
	u32 policy;

	for (policy = CGPU_FAIR; policy < CGPU_NATIVE; policy++) {
		struct program p[2] = {
			{ .kernel_ns = MS, .depth = 1, .weight = 2 },
			{ .kernel_ns = MS, .depth = 1, .weight = 4, .idle = true },
		};

		start(&w, p, 2, policy);
		run(&w, 20000 * MS);
		check("idle peer", near(p[0].busy_ns / 2e10, want[policy], 0.011),
		      p[0].busy_ns / 2e10);
	}
}

/* 2:1 and 8:4 give the same shares, 2:1 changes hands four times as often. */
static void change_of_hands(void)
{
	struct program few[2] = {
		{ .kernel_ns = 100 * US, .depth = 1, .weight = 8 },
		{ .kernel_ns = 100 * US, .depth = 1, .weight = 4 },
	};
	struct program often[2] = {
		{ .kernel_ns = 100 * US, .depth = 1, .weight = 2 },
		{ .kernel_ns = 100 * US, .depth = 1, .weight = 1 },
	};
	struct world w;
	double changes;

	start(&w, few, 2, CGPU_WEIGHTED);
	run(&w, 10000 * MS);
	changes = w.changes;
	start(&w, often, 2, CGPU_WEIGHTED);
	run(&w, 10000 * MS);
	check("2:1 changes hands four times as often as 8:4",
	      near(w.changes / changes, 4, 0.05), w.changes / changes);
}

static void high_priority(void)
{
	struct world w;
	u32 policy;

	for (policy = CGPU_FAIR; policy < CGPU_NATIVE; policy++) {
		struct program p[3] = {
			{ .kernel_ns = MS, .depth = 1, .weight = 1, .highprio = true },
			{ .kernel_ns = MS, .depth = 1, .weight = 1 },
			{ .kernel_ns = MS, .depth = 4, .weight = 1 },
		};
		double all;

		start(&w, p, 3, policy);
		run(&w, 20000 * MS);
		all = of_wall_time(policy) ? 2e10 :
		      (double)(p[0].busy_ns + p[1].busy_ns + p[2].busy_ns);
		check("high priority takes prio_ratio",
		      near(p[0].busy_ns / all, 0.8, 0.02), p[0].busy_ns / all);
		check("the others share the rest alike",
		      near((double)p[1].busy_ns / p[2].busy_ns, 1, 0.02),
		      (double)p[1].busy_ns / p[2].busy_ns);
	}
}

/* It sleeps 20 ms, then wakes: waits a slice and the longest kernel at most. */
static void waking(void)
{
	struct program p[2] = {
		{ .kernel_ns = MS, .depth = 1, .weight = 1, .highprio = true, .idle = true },
		{ .kernel_ns = 20 * MS, .depth = 4, .weight = 1 },
	};
	u64 waited = 0, worst = 0, slept;
	struct world w;
	int i;

	start(&w, p, 2, CGPU_PREEMPTIVE);
	for (i = 0; i < 200; i++) {
		u64 before = p[0].launches;

		p[0].idle = true;
		cgpu_sched_set_busy(&w.sched, 0, false, w.now);
		slept = w.now + 20 * MS + i * 37 * US;
		run(&w, slept);
		p[0].idle = false;
		cgpu_sched_set_busy(&w.sched, 0, true, w.now);
		for (waited = 0; p[0].launches == before; waited += 100 * US)
			run(&w, w.now + 100 * US);
		worst = max_t(u64, worst, waited);
		run(&w, w.now + 5 * MS);
	}
	check("a waking instance of high priority waits a slice and a kernel",
	      worst <= 2 * MS + 4 * 20 * MS, worst / 1e6);
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 10;

	pairs(times);
	gaps(times);
	many(3, times);
	many(20, times);
	alone();
	idle_peer();
	change_of_hands();
	high_priority();
	waking();
	printf("%d of %d hold\n", cases - missed, cases);
	return missed ? 1 : 0;
}
