// SPDX-License-Identifier: GPL-2.0-only
/* What no table names is logged once, with its numbers. */
#include "core.h"

#define MAX_UNKNOWN	128

static struct {
	const char *kind;
	u32 number;
} seen[MAX_UNKNOWN];
static u32 count;

/**
 * nvsim_unknown() - Logs a number at its first use.
 * @kind: of what, and what becomes of it; the same string for all of a kind
 * @number: its number
 * @size: bytes of its argument
 *
 * Context: lock held.
 */
void nvsim_unknown(const char *kind, u32 number, u32 size)
{
	u32 i;

	for (i = 0; i < count; i++)
		if (seen[i].kind == kind && seen[i].number == number)
			return;
	if (count == MAX_UNKNOWN)
		return;
	seen[count].kind = kind;
	seen[count++].number = number;
	nvsim_host_log("%s: %u (0x%x) of %u bytes is not known\n", kind, number,
		       number, size);
}
