// SPDX-License-Identifier: GPL-2.0-only
/* Proves that the bench sees a kernel's complaint: warns when it is loaded with complain=1. */
#include <linux/module.h>

static bool complain;
module_param(complain, bool, 0444);

static int __init complain_init(void)
{
	WARN(complain, "complain: as asked\n");
	return 0;
}

static void __exit complain_exit(void)
{
}

module_init(complain_init);
module_exit(complain_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Warns when asked to");
