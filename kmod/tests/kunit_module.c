// SPDX-License-Identifier: GPL-2.0-only
/* The suites of the pure files as KUnit runs them in a kernel. */
#include <linux/module.h>

MODULE_DESCRIPTION("tests of the pure files of cgpu_km");
MODULE_LICENSE("GPL");
