// SPDX-License-Identifier: GPL-2.0-only
/* /proc/cgpu_km: settings and figures. A refused write logs why. */
#include <linux/capability.h>
#include <linux/list.h>
#include <linux/pid.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "cgpu.h"
#include "compat.h"

#define WRITE_MOST		4096

static struct proc_dir_entry *root;

/**
 * struct attr - one file
 * @name: its name
 * @show: what it shows
 * @store: what a number written to it does, NULL = read only
 */
struct attr {
	const char *name;
	void (*show)(struct seq_file *m, void *owner);
	int (*store)(void *owner, u64 value);
};

/**
 * struct attr_file - a file and what it belongs to
 * @attr: the file
 * @owner: a GPU or a share
 * @link: in the list that is freed with the folder
 */
struct attr_file {
	const struct attr *attr;
	void *owner;
	struct list_head link;
};

static LIST_HEAD(attr_files);
static DEFINE_MUTEX(attr_files_lock);

static int attr_show(struct seq_file *m, void *unused)
{
	struct attr_file *file = m->private;

	file->attr->show(m, file->owner);
	return 0;
}

static int attr_open(struct inode *inode, struct file *file)
{
	return single_open(file, attr_show, cgpu_pde_data(inode));
}

/* Whoever is root in a container sees these files too. */
static int may_write(const char *name)
{
	if (capable(CAP_SYS_ADMIN))
		return 0;
	pr_err_ratelimited("%s: write refused: it needs CAP_SYS_ADMIN, which containers lack\n",
			   name);
	return -EPERM;
}

static ssize_t attr_write(struct file *file, const char __user *from,
			  size_t count, loff_t *at)
{
	struct attr_file *f = cgpu_pde_data(file_inode(file));
	u64 value;
	int ret = may_write(f->attr->name);

	if (ret)
		return ret;
	ret = kstrtou64_from_user(from, count, 10, &value);
	if (ret) {
		pr_err("%s: a number is wanted\n", f->attr->name);
		return -EINVAL;
	}
	ret = f->attr->store(f->owner, value);
	return ret ?: count;
}

static const struct proc_ops attr_ops = {
	.proc_open = attr_open,
	.proc_read = seq_read,
	.proc_write = attr_write,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
};

static int add_attr(struct proc_dir_entry *dir, const struct attr *attr,
		    void *owner)
{
	struct attr_file *file = kzalloc(sizeof(*file), GFP_KERNEL);

	if (!file)
		return -ENOMEM;
	file->attr = attr;
	file->owner = owner;
	if (!proc_create_data(attr->name, attr->store ? 0644 : 0444, dir,
			      &attr_ops, file)) {
		kfree(file);
		return -ENOMEM;
	}
	mutex_lock(&attr_files_lock);
	list_add(&file->link, &attr_files);
	mutex_unlock(&attr_files_lock);
	return 0;
}

/* The folder is gone, so nobody reads its files any more. */
static void free_attrs(void *owner)
{
	struct attr_file *file, *next;

	mutex_lock(&attr_files_lock);
	list_for_each_entry_safe(file, next, &attr_files, link) {
		if (file->owner != owner)
			continue;
		list_del(&file->link);
		kfree(file);
	}
	mutex_unlock(&attr_files_lock);
}

static int add_attrs(struct proc_dir_entry *dir, const struct attr *attrs,
		     int n, void *owner)
{
	int i, ret = 0;

	for (i = 0; !ret && i < n; i++)
		ret = add_attr(dir, &attrs[i], owner);
	return ret;
}

static int refuse(int ret, const char *file, u64 value, const char *why)
{
	pr_err("%s: %llu refused: %s\n", file, value, why);
	return ret;
}

/* ---- a GPU ---- */

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
		return refuse(-EINVAL, "policy", value, "0 to 5 are policies");
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
		return refuse(-EINVAL, "max_inst", value, "1 to 25 are possible");
	mutex_lock(&cgpu_registry_lock);
	if (!list_empty(&gpu->shares))
		ret = refuse(-EBUSY, "max_inst", value,
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
		return refuse(-EINVAL, "prio_ratio", value,
			      "20 to 99 percent are possible");
	mutex_lock(&cgpu_registry_lock);
	cgpu_slices_conf(gpu, c->policy, c->max_inst, value);
	mutex_unlock(&cgpu_registry_lock);
	return 0;
}

static const struct attr gpu_attrs[] = {
	{ "policy", show_policy, store_policy },
	{ "max_inst", show_max_inst, store_max_inst },
	{ "free_weight", show_free_weight },
	{ "prio_ratio", show_prio_ratio, store_prio_ratio },
	{ "major", show_major },
};

/* ---- a share ---- */

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
		return refuse(-EINVAL, "memsize", value, "bytes, more than 0");
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
		ret = refuse(-EINVAL, "weight", value,
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
		return refuse(-EINVAL, "highprio", value, "0 or 1");
	mutex_lock(&cgpu_registry_lock);
	cgpu_share_set(share, share->weight, value);
	mutex_unlock(&cgpu_registry_lock);
	return 0;
}

static const struct attr share_attrs[] = {
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
	ret = add_attrs(share->dir, share_attrs, ARRAY_SIZE(share_attrs), share);
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
	free_attrs(share);
}

/* ---- the module ---- */

static void show_version(struct seq_file *m, void *owner)
{
	seq_puts(m, CGPU_VERSION "\n");
}

static void show_default_memsize(struct seq_file *m, void *owner)
{
	seq_printf(m, "%llu\n", READ_ONCE(cgpu_default_memsize));
}

static int store_default_memsize(void *owner, u64 value)
{
	WRITE_ONCE(cgpu_default_memsize, value);
	return 0;
}

static const struct attr root_attrs[] = {
	{ "version", show_version },
	{ "default_memsize", show_default_memsize, store_default_memsize },
};

static int instctl_open(struct inode *inode, struct file *file)
{
	return single_open(file, cgpu_commands_show, NULL);
}

static int run_lines(char *text)
{
	char *line;
	int ret = 0;

	while (!ret && (line = strsep(&text, "\n")))
		if (*strim(line))
			ret = cgpu_command(line);
	return ret;
}

static ssize_t instctl_write(struct file *file, const char __user *from,
			     size_t count, loff_t *at)
{
	int ret = may_write("inst_ctl");
	char *text;

	if (ret)
		return ret;
	if (count > WRITE_MOST)
		return -E2BIG;
	text = memdup_user_nul(from, count);
	if (IS_ERR(text))
		return PTR_ERR(text);
	ret = run_lines(text);
	kfree(text);
	return ret ?: count;
}

static const struct proc_ops instctl_ops = {
	.proc_open = instctl_open,
	.proc_read = seq_read,
	.proc_write = instctl_write,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
};

static int add_gpu(struct cgpu_gpu *gpu)
{
	char name[8];

	snprintf(name, sizeof(name), "%d", gpu->minor);
	gpu->dir = proc_mkdir(name, root);
	if (!gpu->dir)
		return -ENOMEM;
	return add_attrs(gpu->dir, gpu_attrs, ARRAY_SIZE(gpu_attrs), gpu);
}

/**
 * cgpu_procfs_init() - make /proc/cgpu_km
 *
 * Context: module load.
 * Return: 0 or -ENOMEM.
 */
int cgpu_procfs_init(void)
{
	int minor, ret;

	root = proc_mkdir("cgpu_km", NULL);
	if (!root)
		return -ENOMEM;
	ret = add_attrs(root, root_attrs, ARRAY_SIZE(root_attrs), NULL);
	if (!ret && !proc_create("inst_ctl", 0644, root, &instctl_ops))
		ret = -ENOMEM;
	for (minor = 0; !ret && minor < NV_MAX_DEVICES; minor++)
		if (cgpu_gpus[minor])
			ret = add_gpu(cgpu_gpus[minor]);
	if (ret)
		cgpu_procfs_exit();
	return ret;
}

/**
 * cgpu_procfs_exit() - remove /proc/cgpu_km
 *
 * Context: module unload.
 */
void cgpu_procfs_exit(void)
{
	struct attr_file *file, *next;

	proc_remove(root);
	list_for_each_entry_safe(file, next, &attr_files, link) {
		list_del(&file->link);
		kfree(file);
	}
}
