/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's types, for pure files compiled on the host. */
#ifndef CGPU_SHIM_TYPES_H
#define CGPU_SHIM_TYPES_H

#include_next <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#endif
