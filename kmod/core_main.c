// SPDX-License-Identifier: GPL-2.0-only
/* A core: what it offers to the front. */
#include <linux/module.h>
#include "layout.h"

#ifndef CGPU_CORE_VERSION
#define CGPU_CORE_VERSION	CGPU_VERSION
#endif

static struct cgpu_core this_core = {
	.layout = cgpu_layouts,
	.layouts = ARRAY_SIZE(cgpu_layouts),
	.name = KBUILD_MODNAME,
	.version = CGPU_CORE_VERSION,
	.owner = THIS_MODULE,
	.passes = cgpu_passes,
	.dispatch = cgpu_dispatch,
	.uvm_ioctl = cgpu_uvm_ioctl,
	.uvm_mmap = cgpu_uvm_mmap,
	.uvm_unmapped = cgpu_uvm_unmapped,
	.uvm_release = cgpu_uvm_release,
	.untrack_file = cgpu_untrack_file,
	.objs_init = cgpu_objs_init,
	.objs_bytes = cgpu_objs_bytes,
	.set_limit = cgpu_set_limit,
	.free = cgpu_free,
	.sched_configure = cgpu_sched_configure,
	.sched_add = cgpu_sched_add,
	.sched_del = cgpu_sched_del,
	.sched_set_weight = cgpu_sched_set_weight,
	.sched_set_busy = cgpu_sched_set_busy,
	.sched_next = cgpu_sched_next,
	.sched_skip = cgpu_sched_skip,
	.sched_park = cgpu_sched_park,
};

static int __init core_init(void)
{
	return cgpu_core_register(&this_core);
}

static void __exit core_exit(void)
{
	cgpu_core_unregister(&this_core);
}

module_init(core_init);
module_exit(core_exit);
MODULE_DESCRIPTION("The rules of cgpu_km: memory, replies, turns");
MODULE_AUTHOR("The cgpu authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(CGPU_CORE_VERSION);
