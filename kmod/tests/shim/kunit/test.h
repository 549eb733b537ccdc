/* SPDX-License-Identifier: GPL-2.0-only */
/* KUnit's words for suites that run on the host. */
#ifndef CGPU_SHIM_KUNIT_H
#define CGPU_SHIM_KUNIT_H

#include "../host.h"

struct kunit {
	const char *name;
	int failed;
};

struct kunit_case {
	void (*run)(struct kunit *test);
	const char *name;
};

struct kunit_suite {
	const char *name;
	struct kunit_case *test_cases;
};

#define KUNIT_CASE(fn)		{ .run = fn, .name = #fn }
#define KUNIT_EXPECT_TRUE(test, what) do {				\
	if (!(what)) {							\
		(test)->failed++;					\
		printf("%s: %s:%d: %s\n", (test)->name, __FILE__,	\
		       __LINE__, #what);				\
	}								\
} while (0)
#define KUNIT_EXPECT_FALSE(test, what)	KUNIT_EXPECT_TRUE(test, !(what))
#define KUNIT_EXPECT_EQ(test, a, b)	KUNIT_EXPECT_TRUE(test, (a) == (b))
#define kunit_test_suite(suite)		struct kunit_suite *suite##_host = &(suite)

#endif
