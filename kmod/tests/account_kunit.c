// SPDX-License-Identifier: GPL-2.0-only
#include <kunit/test.h>
#include "../account.h"

#define MIB	0x100000ULL

static void limit_holds_to_the_byte(struct kunit *test)
{
	struct cgpu_account a = { .limit = 4301 * MIB };

	KUNIT_EXPECT_TRUE(test, cgpu_try_charge(&a, 3193 * MIB));
	KUNIT_EXPECT_FALSE(test, cgpu_try_charge(&a, 1109 * MIB));
	KUNIT_EXPECT_TRUE(test, cgpu_try_charge(&a, 1108 * MIB));
	KUNIT_EXPECT_FALSE(test, cgpu_try_charge(&a, 1));
	KUNIT_EXPECT_EQ(test, a.oom, 2);
	KUNIT_EXPECT_EQ(test, cgpu_free(&a), 0);
}

static void huge_request_does_not_wrap(struct kunit *test)
{
	struct cgpu_account a = { .limit = 100, .used = 50 };

	KUNIT_EXPECT_FALSE(test, cgpu_try_charge(&a, U64_MAX));
	KUNIT_EXPECT_FALSE(test, cgpu_try_charge(&a, U64_MAX - 49));
	KUNIT_EXPECT_EQ(test, a.used, 50);
}

static void freed_memory_comes_back_and_peak_stays(struct kunit *test)
{
	struct cgpu_account a = { .limit = 100 };

	cgpu_try_charge(&a, 70);
	cgpu_charge_more(&a, 10);
	cgpu_uncharge(&a, 80);
	KUNIT_EXPECT_EQ(test, a.used, 0);
	KUNIT_EXPECT_EQ(test, a.peak, 80);
	cgpu_uncharge(&a, 1);
	KUNIT_EXPECT_EQ(test, a.used, 0);
}

static void limit_never_falls_below_use(struct kunit *test)
{
	struct cgpu_account a = { .limit = 100, .used = 50 };

	KUNIT_EXPECT_EQ(test, cgpu_set_limit(&a, 49), -EBUSY);
	KUNIT_EXPECT_EQ(test, a.limit, 100);
	KUNIT_EXPECT_EQ(test, cgpu_set_limit(&a, 50), 0);
}

static void rounding_beyond_the_limit_leaves_nothing(struct kunit *test)
{
	struct cgpu_account a = { .limit = 100, .used = 100 };

	cgpu_charge_more(&a, 5);
	KUNIT_EXPECT_EQ(test, cgpu_free(&a), 0);
}

static struct kunit_case account_cases[] = {
	KUNIT_CASE(limit_holds_to_the_byte),
	KUNIT_CASE(huge_request_does_not_wrap),
	KUNIT_CASE(freed_memory_comes_back_and_peak_stays),
	KUNIT_CASE(limit_never_falls_below_use),
	KUNIT_CASE(rounding_beyond_the_limit_leaves_nothing),
	{}
};

static struct kunit_suite account_suite = {
	.name = "cgpu-account", .test_cases = account_cases,
};

kunit_test_suite(account_suite);
