// SPDX-License-Identifier: GPL-2.0-only
#include <kunit/test.h>
#include "../sched.h"

#define MS	1000000ULL

static struct cgpu_sched s;

static void fresh(u32 policy)
{
	struct cgpu_sched_conf conf = {
		.policy = policy, .max_inst = 20, .prio_ratio = 80,
		.slice_ns = 2 * MS, .debt_ns = 2000 * MS,
	};

	cgpu_sched_init(&s, &conf);
	cgpu_sched_add(&s, 1, false, 1);
	cgpu_sched_add(&s, 2, false, 1);
}

static int open_at(u64 now, u64 gone)
{
	return cgpu_sched_next(&s, now, gone).open;
}

static void nobody_works_nobody_is_asked_again(struct kunit *test)
{
	struct cgpu_turn turn;

	fresh(CGPU_PREEMPTIVE);
	turn = cgpu_sched_next(&s, 1, 1);
	KUNIT_EXPECT_EQ(test, turn.open, CGPU_NONE);
	KUNIT_EXPECT_EQ(test, turn.until_ns, 0);
}

static void alone_the_gate_stays_open_without_a_timer(struct kunit *test)
{
	struct cgpu_turn turn;

	fresh(CGPU_PREEMPTIVE);
	cgpu_sched_set_busy(&s, 0, true, 1);
	turn = cgpu_sched_next(&s, 1, 1);
	KUNIT_EXPECT_EQ(test, turn.open, 0);
	KUNIT_EXPECT_EQ(test, turn.until_ns, 0);
	KUNIT_EXPECT_EQ(test, open_at(5000 * MS, 0), 0);
}

static void who_was_alone_owes_nothing_for_it(struct kunit *test)
{
	fresh(CGPU_PREEMPTIVE);
	cgpu_sched_set_busy(&s, 0, true, 1);
	open_at(1, 1);
	cgpu_sched_set_busy(&s, 1, true, 5000 * MS);
	KUNIT_EXPECT_EQ(test, open_at(5000 * MS, 5000 * MS), 1);
	KUNIT_EXPECT_EQ(test, s.entity[0].debt_ns, 0);
}

static void the_gate_waits_until_the_work_is_gone(struct kunit *test)
{
	fresh(CGPU_PREEMPTIVE);
	cgpu_sched_set_busy(&s, 0, true, 1);
	cgpu_sched_set_busy(&s, 1, true, 1);
	KUNIT_EXPECT_EQ(test, open_at(1, 1), 1);
	KUNIT_EXPECT_EQ(test, open_at(1 + 2 * MS, 0), CGPU_NONE);
	KUNIT_EXPECT_EQ(test, open_at(9 * MS, 0), CGPU_NONE);
	KUNIT_EXPECT_EQ(test, open_at(12 * MS, 12 * MS), 0);
	KUNIT_EXPECT_EQ(test, s.entity[1].debt_ns, (s64)(10 * MS - 1));
}

static void native_opens_all(struct kunit *test)
{
	fresh(CGPU_NATIVE);
	KUNIT_EXPECT_EQ(test, open_at(1, 1), CGPU_ALL);
}

static void weight_none_gets_none(struct kunit *test)
{
	fresh(CGPU_PREEMPTIVE);
	cgpu_sched_set_weight(&s, 0, 0, false);
	cgpu_sched_set_busy(&s, 0, true, 1);
	KUNIT_EXPECT_EQ(test, open_at(1, 1), CGPU_NONE);
}

static void deleting_whose_turn_it_is_frees_the_gpu(struct kunit *test)
{
	fresh(CGPU_PREEMPTIVE);
	cgpu_sched_set_busy(&s, 0, true, 1);
	cgpu_sched_set_busy(&s, 1, true, 1);
	KUNIT_EXPECT_EQ(test, open_at(1, 1), 1);
	cgpu_sched_del(&s, 1);
	KUNIT_EXPECT_EQ(test, open_at(2, 2), 0);
}

static void all_slots_taken_is_said(struct kunit *test)
{
	int i;

	fresh(CGPU_PREEMPTIVE);
	for (i = 2; i < CGPU_MAX_INST; i++)
		KUNIT_EXPECT_EQ(test, cgpu_sched_add(&s, 1, false, 1), i);
	KUNIT_EXPECT_EQ(test, cgpu_sched_add(&s, 1, false, 1), CGPU_NONE);
}

static void parked_time_is_nobodys(struct kunit *test)
{
	fresh(CGPU_FIXED);
	cgpu_sched_set_busy(&s, 0, true, 1);
	open_at(1, 1);
	cgpu_sched_set_busy(&s, 0, false, 2);
	cgpu_sched_park(&s);
	open_at(9000 * MS, 9000 * MS);
	KUNIT_EXPECT_EQ(test, s.entity[0].debt_ns, 0);
	KUNIT_EXPECT_EQ(test, s.entity[1].debt_ns, 0);
}

static void gaps_are_not_charged_during_a_turn_nor_after_it(struct kunit *test)
{
	fresh(CGPU_PREEMPTIVE);
	cgpu_sched_set_busy(&s, 0, true, 1);
	cgpu_sched_set_busy(&s, 1, true, 1);
	KUNIT_EXPECT_EQ(test, open_at(1, 1), 1);
	cgpu_sched_skip(&s, MS);
	KUNIT_EXPECT_EQ(test, open_at(1 + 2 * MS, 0), 1);
	KUNIT_EXPECT_EQ(test, open_at(1 + 3 * MS, 0), CGPU_NONE);
	cgpu_sched_skip(&s, MS);
	cgpu_sched_skip(&s, 9 * MS);
	KUNIT_EXPECT_EQ(test, s.entity[1].debt_ns, -(s64)MS);
	cgpu_sched_skip(&s, -(s64)(9 * MS));
	KUNIT_EXPECT_EQ(test, s.entity[1].debt_ns, (s64)(8 * MS));
}

static struct kunit_case sched_cases[] = {
	KUNIT_CASE(nobody_works_nobody_is_asked_again),
	KUNIT_CASE(alone_the_gate_stays_open_without_a_timer),
	KUNIT_CASE(who_was_alone_owes_nothing_for_it),
	KUNIT_CASE(the_gate_waits_until_the_work_is_gone),
	KUNIT_CASE(native_opens_all),
	KUNIT_CASE(weight_none_gets_none),
	KUNIT_CASE(deleting_whose_turn_it_is_frees_the_gpu),
	KUNIT_CASE(all_slots_taken_is_said),
	KUNIT_CASE(parked_time_is_nobodys),
	KUNIT_CASE(gaps_are_not_charged_during_a_turn_nor_after_it),
	{}
};

static struct kunit_suite sched_suite = {
	.name = "cgpu-sched", .test_cases = sched_cases,
};

kunit_test_suite(sched_suite);
