/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's names of types and small helpers, for the core in user space. */
#ifndef SHIM_TYPES_H
#define SHIM_TYPES_H

#include_next <linux/types.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#define __printf(text, first) __attribute__((__format__(__printf__, text, first)))
#define __alias(name) __attribute__((__alias__(name)))
#define BIT(n) (1ul << (n))
#define BIT_ULL(n) (1ull << (n))

#endif
