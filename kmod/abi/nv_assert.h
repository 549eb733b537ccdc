/* SPDX-License-Identifier: GPL-2.0-only */
/* What the layouts are checked with, in the kernel and in user space. */
#ifndef CGPU_ABI_NV_ASSERT_H
#define CGPU_ABI_NV_ASSERT_H

#include <linux/ioctl.h>
#include <linux/types.h>

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#else
#include <assert.h>
#include <stddef.h>
#endif

#define NV_SIZE(type, size) \
	static_assert(sizeof(struct type) == (size), #type " changed size")
#define NV_AT(type, field, where) \
	static_assert(offsetof(struct type, field) == (where), \
		      #type "." #field " moved")

#endif
