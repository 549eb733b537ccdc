// SPDX-License-Identifier: GPL-2.0-only
/* Proves that the bench sees a kernel's complaints: complain=1 warns, overrun=1 writes behind an allocation. */
#include <linux/module.h>
#include <linux/slab.h>

#define BYTES 32

static bool complain;
module_param(complain, bool, 0444);

static bool overrun;
module_param(overrun, bool, 0444);

static int __init complain_init(void)
{
	char *block = kzalloc(BYTES, GFP_KERNEL);

	WARN(complain, "complain: as asked\n");
	OPTIMIZER_HIDE_VAR(block);
	if (block && overrun)
		block[BYTES] = 1;
	kfree(block);
	return 0;
}

static void __exit complain_exit(void)
{
}

module_init(complain_init);
module_exit(complain_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Warns and overruns when asked to");
