/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIM_KERNEL_H
#define SHIM_KERNEL_H

#include <linux/types.h>
#include <stdarg.h>
#include <stdio.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define min(a, b) ({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a < _b ? _a : _b; })
#define max(a, b) ({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a > _b ? _a : _b; })
#define min3(a, b, c) min(min(a, b), c)
#define min_t(type, a, b) min((type)(a), (type)(b))
#define container_of(at, type, member) ((type *)((char *)(at) - offsetof(type, member)))
#define IS_ALIGNED(value, bytes) (!((value) & ((__typeof__(value))(bytes) - 1)))
#define READ_ONCE(value) (*(const volatile __typeof__(value) *)&(value))
#define xchg(at, value) __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST)
#define smp_store_release(at, value) __atomic_store_n(at, value, __ATOMIC_RELEASE)
#define fallthrough __attribute__((fallthrough))

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline __printf(3, 4) int scnprintf(char *to, size_t room, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(to, room, format, arguments);
	va_end(arguments);
	return length < (int)room ? length : (int)room - 1;
}

#endif
