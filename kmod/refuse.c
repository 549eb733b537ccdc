// SPDX-License-Identifier: GPL-2.0-only
/*
 * All there is of the module on a kernel whose mappings cannot veto mprotect():
 * a container could make its argument page writable there, and its doorbell
 * too. So it does not load, and says so.
 */
#include <linux/module.h>

static int __init cgpu_init(void)
{
	pr_err("this kernel has no vm_operations_struct.mprotect (Linux 5.11 and later): shares could be broken, so the module does not load\n");
	return -EOPNOTSUPP;
}

module_init(cgpu_init);
MODULE_DESCRIPTION("One NVIDIA GPU for several containers: not on this kernel");
MODULE_AUTHOR("The cgpu authors");
MODULE_LICENSE("GPL");
