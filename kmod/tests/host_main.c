// SPDX-License-Identifier: GPL-2.0-only
/* Runs the suites of the pure files on the host. */
#include <kunit/test.h>

extern struct kunit_suite *account_suite_host, *objects_suite_host,
			  *replies_suite_host, *sched_suite_host,
			  *ring_suite_host;

static int run_suite(const struct kunit_suite *suite, int *ran)
{
	struct kunit_case *c;
	int failed = 0;

	for (c = suite->test_cases; c->run; c++, (*ran)++) {
		struct kunit test = { .name = c->name };

		c->run(&test);
		failed += !!test.failed;
	}
	return failed;
}

int main(void)
{
	const struct kunit_suite *suites[] = {
		account_suite_host, objects_suite_host, replies_suite_host,
		sched_suite_host, ring_suite_host,
	};
	int failed = 0, ran = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(suites); i++)
		failed += run_suite(suites[i], &ran);
	printf("%d of %d cases pass\n", ran - failed, ran);
	return !!failed;
}
