/* SPDX-License-Identifier: GPL-2.0-only */
/* What the pure files use of the kernel, on the host. */
#ifndef CGPU_SHIM_HOST_H
#define CGPU_SHIM_HOST_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

#define U64_MAX			UINT64_MAX
#define S64_MAX			INT64_MAX
#define min_t(t, a, b)		((t)(a) < (t)(b) ? (t)(a) : (t)(b))
#define max_t(t, a, b)		((t)(a) > (t)(b) ? (t)(a) : (t)(b))
#define max(a, b)		max_t(__typeof__(a), a, b)
#define min(a, b)		min_t(__typeof__(a), a, b)
#define clamp_t(t, v, lo, hi)	min_t(t, max_t(t, v, lo), hi)
#define BIT(n)			(1UL << (n))
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define ALIGN(x, a)		(((x) + (a) - 1) & ~((__typeof__(x))(a) - 1))

#endif
