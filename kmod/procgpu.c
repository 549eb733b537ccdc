// SPDX-License-Identifier: GPL-2.0-only
/* /proc/cgpu_km/N: the settings of a GPU. */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include "procfs.h"

static void show_policy(struct seq_file *m, void *owner)
{
	struct cgpu_gpu *gpu = owner;

	seq_printf(m, "%u\n", gpu->sched.conf.policy);
}

static void show_max_inst(struct seq_file *m, void *owner)
{
	struct cgpu_gpu *gpu = owner;

	seq_printf(m, "%u\n", gpu->sched.conf.max_inst);
}

static void show_prio_ratio(struct seq_file *m, void *owner)
{
	struct cgpu_gpu *gpu = owner;

	seq_printf(m, "%u\n", gpu->sched.conf.prio_ratio);
}

static void show_major(struct seq_file *m, void *owner)
{
	struct cgpu_gpu *gpu = owner;

	seq_printf(m, "%d\n", gpu->major);
}

static void show_free_weight(struct seq_file *m, void *owner)
{
	struct cgpu_gpu *gpu = owner;
	u32 given;

	mutex_lock(&gpu->lock);
	given = cgpu_weights_given(gpu);
	mutex_unlock(&gpu->lock);
	seq_printf(m, "%u\n", gpu->sched.conf.max_inst - given);
}

static int store_policy(void *owner, u64 value)
{
	struct cgpu_gpu *gpu = owner;
	struct cgpu_sched_conf *c = &gpu->sched.conf;

	if (value >= CGPU_POLICIES)
		return cgpu_refuse(-EINVAL, "policy", value, "0 to 5 are policies");
	mutex_lock(&cgpu_registry_lock);
	gpu->policy_written = true;
	cgpu_slices_conf(gpu, value, c->max_inst, c->prio_ratio);
	mutex_unlock(&cgpu_registry_lock);
	return 0;
}

static int store_max_inst(void *owner, u64 value)
{
	struct cgpu_gpu *gpu = owner;
	struct cgpu_sched_conf *c = &gpu->sched.conf;
	int ret = 0;

	if (!value || value > CGPU_MAX_INST)
		return cgpu_refuse(-EINVAL, "max_inst", value, "1 to 25 are possible");
	mutex_lock(&cgpu_registry_lock);
	if (!list_empty(&gpu->shares))
		ret = cgpu_refuse(-EBUSY, "max_inst", value,
				  "instances exist; destroy them first");
	else
		cgpu_slices_conf(gpu, c->policy, value, c->prio_ratio);
	mutex_unlock(&cgpu_registry_lock);
	return ret;
}

static int store_prio_ratio(void *owner, u64 value)
{
	struct cgpu_gpu *gpu = owner;
	struct cgpu_sched_conf *c = &gpu->sched.conf;

	if (value < 20 || value > 99)
		return cgpu_refuse(-EINVAL, "prio_ratio", value,
				   "20 to 99 percent are possible");
	mutex_lock(&cgpu_registry_lock);
	cgpu_slices_conf(gpu, c->policy, c->max_inst, value);
	mutex_unlock(&cgpu_registry_lock);
	return 0;
}

static const struct cgpu_attr gpu_attrs[] = {
	{ "policy", show_policy, store_policy },
	{ "max_inst", show_max_inst, store_max_inst },
	{ "free_weight", show_free_weight },
	{ "prio_ratio", show_prio_ratio, store_prio_ratio },
	{ "major", show_major },
};

/**
 * cgpu_procfs_add_gpu() - a folder for a GPU
 * @gpu: the GPU
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int cgpu_procfs_add_gpu(struct cgpu_gpu *gpu)
{
	char name[8];
	int ret;

	snprintf(name, sizeof(name), "%d", gpu->minor);
	gpu->dir = proc_mkdir(name, cgpu_procfs_root());
	if (!gpu->dir)
		return -ENOMEM;
	ret = cgpu_attrs_add(gpu->dir, gpu_attrs, ARRAY_SIZE(gpu_attrs), gpu,
			     NULL);
	if (ret)
		cgpu_procfs_del_gpu(gpu);
	return ret;
}

/**
 * cgpu_procfs_del_gpu() - remove the folder of a GPU
 * @gpu: the GPU, which no instance has a share of
 *
 * Context: process; no lock that a file of the folder takes.
 */
void cgpu_procfs_del_gpu(struct cgpu_gpu *gpu)
{
	proc_remove(gpu->dir);
	gpu->dir = NULL;
	cgpu_attrs_free(gpu);
}
