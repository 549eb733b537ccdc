/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what calls came back with, by the call's name: one line each, "escape 0x2a EFAULT 12". */
#ifndef TALLY_H
#define TALLY_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define TALLY_ERRORS	135	/* errnos, 0 = the call succeeded */
#define TALLY_STATUSES	128	/* statuses of the driver, 0 = none or success */

struct tally {
	unsigned long errors[TALLY_ERRORS];
	unsigned long statuses[TALLY_STATUSES];
};

static inline void tally_count(struct tally *t, long result, uint32_t status)
{
	t->errors[result < 0 ? errno : 0]++;
	if (result >= 0 && status)
		t->statuses[status < TALLY_STATUSES ? status : TALLY_STATUSES - 1]++;
}

static inline unsigned long tally_print(const struct tally *t, const char *kind, const char *name)
{
	unsigned long all = 0;
	int i;

	for (i = 0; i < TALLY_ERRORS; all += t->errors[i++])
		if (t->errors[i])
			printf("%s %s %s %lu\n", kind, name, i ? strerrorname_np(i) : "ok", t->errors[i]);
	for (i = 1; i < TALLY_STATUSES; i++)
		if (t->statuses[i])
			printf("%s %s status-%#x %lu\n", kind, name, i, t->statuses[i]);
	return all;
}

#endif
