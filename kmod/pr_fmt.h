/* SPDX-License-Identifier: GPL-2.0-only */
/* Every line of the log begins with the module. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
