// SPDX-License-Identifier: GPL-2.0-only
/* Compiles, and is wrong all the same: a user's pointer is followed, and the style is not the kernel's. */
#include <linux/module.h>

int careless(int __user *at);
int careless(int __user *at)
{
	if ( *at ) {
		return 1;
	}
	return 0;
}
EXPORT_SYMBOL_GPL(careless);

MODULE_DESCRIPTION("careless");
MODULE_LICENSE("GPL");
