// SPDX-License-Identifier: GPL-2.0-only
/* Parameters, and the order in which things begin and end. */
#include <linux/module.h>
#include "cgpu.h"

unsigned int cgpu_slice_ms;
module_param_named(slice_ms, cgpu_slice_ms, uint, 0444);
MODULE_PARM_DESC(slice_ms, "length of a slice in ms; 0 = 30 / max_inst");

unsigned int cgpu_debt_ms = 2000;
module_param_named(debt_ms, cgpu_debt_ms, uint, 0444);
MODULE_PARM_DESC(debt_ms, "how much debt is remembered, 100 to 60000 ms");

char *cgpu_managed = "refuse";
EXPORT_SYMBOL_GPL(cgpu_managed);
module_param_named(managed, cgpu_managed, charp, 0444);
MODULE_PARM_DESC(managed, "managed memory: refuse or charge");

unsigned int cgpu_managed_free_mib = 16;
EXPORT_SYMBOL_GPL(cgpu_managed_free_mib);
module_param_named(managed_free_mib, cgpu_managed_free_mib, uint, 0444);
MODULE_PARM_DESC(managed_free_mib, "managed memory a process has anyway, MiB");

bool cgpu_overcommit;
module_param_named(overcommit, cgpu_overcommit, bool, 0444);
MODULE_PARM_DESC(overcommit, "let the sum of limits pass the card");

bool cgpu_allow_unknown_driver;
module_param_named(allow_unknown_driver, cgpu_allow_unknown_driver, bool, 0444);
MODULE_PARM_DESC(allow_unknown_driver, "load on a driver branch without known layouts");

int cgpu_ctl_major;

static int check_parameters(void)
{
	if (cgpu_slice_ms > 1000) {
		pr_err("slice_ms=%u: 1 to 1000 ms, or 0 for 30 / max_inst\n",
		       cgpu_slice_ms);
		return -EINVAL;
	}
	if (cgpu_debt_ms < 100 || cgpu_debt_ms > 60000) {
		pr_err("debt_ms=%u: 100 to 60000 ms\n", cgpu_debt_ms);
		return -EINVAL;
	}
	if (strcmp(cgpu_managed, "refuse") && strcmp(cgpu_managed, "charge")) {
		pr_err("managed=%s: refuse or charge\n", cgpu_managed);
		return -EINVAL;
	}
	return 0;
}

/* Numbers are reserved, nothing is behind them: a mknod opens nothing. */
static int reserve(int *major, unsigned int count, const char *name)
{
	dev_t dev;
	int ret = alloc_chrdev_region(&dev, 0, count, name);

	if (!ret)
		*major = MAJOR(dev);
	return ret;
}

static void release(int major, unsigned int count)
{
	if (major)
		unregister_chrdev_region(MKDEV(major, 0), count);
}

static void release_majors(void)
{
	int minor;

	for (minor = 0; minor < NV_MAX_DEVICES; minor++)
		if (cgpu_gpus[minor])
			release(cgpu_gpus[minor]->major, CGPU_MINORS);
	release(cgpu_ctl_major, 2 * CGPU_MINORS);
}

static int reserve_majors(void)
{
	int minor, ret;

	ret = reserve(&cgpu_ctl_major, 2 * CGPU_MINORS, "cgpu-ctl");
	for (minor = 0; !ret && minor < NV_MAX_DEVICES; minor++)
		if (cgpu_gpus[minor])
			ret = reserve(&cgpu_gpus[minor]->major, CGPU_MINORS,
				      "cgpu");
	if (ret)
		release_majors();
	return ret;
}

static int __init cgpu_init(void)
{
	int ret;

	ret = check_parameters();
	if (ret)
		return ret;
	ret = cgpu_probe();
	if (ret)
		goto undo_probe;
	ret = reserve_majors();
	if (ret)
		goto undo_probe;
	ret = cgpu_workers_init();
	if (ret)
		goto undo_majors;
	ret = cgpu_procfs_init();
	if (ret)
		goto undo_workers;
	ret = cgpu_fs_init();
	if (ret)
		goto undo_procfs;
	pr_info("version %s on driver branch %d; load a core now\n",
		CGPU_VERSION, cgpu_branch);
	return 0;
undo_procfs:
	cgpu_procfs_exit();
undo_workers:
	cgpu_workers_exit();
undo_majors:
	release_majors();
undo_probe:
	cgpu_probe_undo();
	return ret;
}

static void __exit cgpu_exit(void)
{
	cgpu_fs_exit();
	cgpu_procfs_exit();
	cgpu_workers_exit();
	release_majors();
	cgpu_probe_undo();
	rcu_barrier();
}

module_init(cgpu_init);
module_exit(cgpu_exit);
MODULE_DESCRIPTION("One NVIDIA GPU for several containers, each with its share");
MODULE_AUTHOR("The cgpu authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(CGPU_VERSION);
