// SPDX-License-Identifier: GPL-2.0-only
/* /proc/cgpu_km/N/ID: limits and figures of an instance on a GPU. */
#include <linux/pid.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include "procfs.h"

static void show_id(struct seq_file *m, void *owner)
{
	struct cgpu_share *share = owner;

	seq_printf(m, "%d\n", share->inst->number);
}

static void show_memsize(struct seq_file *m, void *owner)
{
	struct cgpu_share *share = owner;

	seq_printf(m, "%llu\n", READ_ONCE(share->account.limit));
}

static void show_weight(struct seq_file *m, void *owner)
{
	struct cgpu_share *share = owner;

	seq_printf(m, "%u\n", READ_ONCE(share->weight));
}

static void show_highprio(struct seq_file *m, void *owner)
{
	struct cgpu_share *share = owner;

	seq_printf(m, "%d\n", READ_ONCE(share->highprio));
}

/* The first open file of a process stands for it. */
static bool is_first(struct cgpu_inst *inst, struct cgpu_file *f)
{
	struct cgpu_file *other;

	list_for_each_entry(other, &inst->files, link) {
		if (other == f)
			return true;
		if (other->pid == f->pid)
			return false;
	}
	return true;
}

static void show_meminfo(struct seq_file *m, void *owner)
{
	struct cgpu_share *share = owner;
	struct cgpu_inst *inst = share->inst;
	struct cgpu_file *f;

	mutex_lock(&inst->lock);
	seq_printf(m, "Free: %llu\n", cgpu_free(&share->account));
	list_for_each_entry(f, &inst->files, link)
		if (is_first(inst, f))
			seq_printf(m, "PID: %d Mem: %llu\n", pid_nr(f->pid),
				   cgpu_objs_bytes(&inst->objs, pid_nr(f->pid),
						   share->gpu->minor));
	mutex_unlock(&inst->lock);
}

static int store_memsize(void *owner, u64 value)
{
	struct cgpu_share *share = owner;
	int ret;

	if (!value)
		return cgpu_refuse(-EINVAL, "memsize", value, "bytes, more than 0");
	mutex_lock(&cgpu_registry_lock);
	ret = cgpu_share_resize(share, value);
	mutex_unlock(&cgpu_registry_lock);
	return ret;
}

static int store_weight(void *owner, u64 value)
{
	struct cgpu_share *share = owner;
	struct cgpu_gpu *gpu = share->gpu;
	u32 left;
	int ret = 0;

	mutex_lock(&cgpu_registry_lock);
	left = gpu->sched.conf.max_inst - cgpu_weights_given(gpu) +
	       share->weight;
	if (!value || value > left)
		ret = cgpu_refuse(-EINVAL, "weight", value,
				  "it must be within 1 and what free_weight allows");
	else
		cgpu_share_set(share, value, share->highprio);
	mutex_unlock(&cgpu_registry_lock);
	return ret;
}

static int store_highprio(void *owner, u64 value)
{
	struct cgpu_share *share = owner;

	if (value > 1)
		return cgpu_refuse(-EINVAL, "highprio", value, "0 or 1");
	mutex_lock(&cgpu_registry_lock);
	cgpu_share_set(share, share->weight, value);
	mutex_unlock(&cgpu_registry_lock);
	return 0;
}

static const struct cgpu_attr share_attrs[] = {
	{ "id", show_id },
	{ "memsize", show_memsize, store_memsize },
	{ "meminfo", show_meminfo },
	{ "weight", show_weight, store_weight },
	{ "highprio", show_highprio, store_highprio },
};

/**
 * cgpu_procfs_add() - a folder for a share
 * @share: the share
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int cgpu_procfs_add(struct cgpu_share *share)
{
	int ret;

	share->dir = proc_mkdir(share->inst->id, share->gpu->dir);
	if (!share->dir)
		return -ENOMEM;
	ret = cgpu_attrs_add(share->dir, share_attrs, ARRAY_SIZE(share_attrs),
			     share, share->inst);
	if (ret)
		cgpu_procfs_del(share);
	return ret;
}

/**
 * cgpu_procfs_del() - remove the folder of a share
 * @share: the share
 *
 * Context: process; no lock that a file of the folder takes.
 */
void cgpu_procfs_del(struct cgpu_share *share)
{
	proc_remove(share->dir);
	share->dir = NULL;
	cgpu_attrs_free(share);
}
