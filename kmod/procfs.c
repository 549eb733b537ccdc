// SPDX-License-Identifier: GPL-2.0-only
/* /proc/cgpu_km: settings and figures. A refused write logs why. */
#include <linux/capability.h>
#include <linux/list.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "compat.h"
#include "procfs.h"

#define WRITE_MOST		4096

static struct proc_dir_entry *root;

/**
 * struct attr_file - a file and what it belongs to
 * @attr: the file
 * @owner: a GPU or a share
 * @inst: whom it tells of; NULL = of no instance, for everybody
 * @link: in the list that is freed with the folder
 */
struct attr_file {
	const struct cgpu_attr *attr;
	void *owner;
	struct cgpu_inst *inst;
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
	struct attr_file *f = cgpu_pde_data(inode);

	if (f->inst && !cgpu_inst_visible(f->inst)) {
		pr_info_ratelimited("%s: refused to a container that the instance is not of\n",
				    f->attr->name);
		return -EACCES;
	}
	return single_open(file, attr_show, f);
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
	/* The mode does not stop root. */
	if (!f->attr->store) {
		pr_err("%s: it is read only\n", f->attr->name);
		return -EACCES;
	}
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

static int add_attr(struct proc_dir_entry *dir, const struct cgpu_attr *attr,
		    void *owner, struct cgpu_inst *inst)
{
	struct attr_file *file = kzalloc(sizeof(*file), GFP_KERNEL);

	if (!file)
		return -ENOMEM;
	file->attr = attr;
	file->owner = owner;
	file->inst = inst;
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

/**
 * cgpu_attrs_free() - free what cgpu_attrs_add() made
 * @owner: whose files
 *
 * Context: process; their folder is gone, so nobody reads them any more.
 */
void cgpu_attrs_free(void *owner)
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

/**
 * cgpu_attrs_add() - files of a folder
 * @dir: the folder
 * @attrs: the files
 * @n: how many
 * @owner: what they are about
 * @inst: whom they tell of, NULL = of no instance
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int cgpu_attrs_add(struct proc_dir_entry *dir, const struct cgpu_attr *attrs,
		   int n, void *owner, struct cgpu_inst *inst)
{
	int i, ret = 0;

	for (i = 0; !ret && i < n; i++)
		ret = add_attr(dir, &attrs[i], owner, inst);
	return ret;
}

/**
 * cgpu_refuse() - say why a number is refused
 * @ret: what to return
 * @file: where it was written
 * @value: the number
 * @why: the rule
 *
 * Context: any.
 * Return: @ret.
 */
int cgpu_refuse(int ret, const char *file, u64 value, const char *why)
{
	pr_err("%s: %llu refused: %s\n", file, value, why);
	return ret;
}

/* ---- the module ---- */

static void show_version(struct seq_file *m, void *owner)
{
	cgpu_core_show_version(m);
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

static const struct cgpu_attr root_attrs[] = {
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

static ssize_t write_text(const char *name, const char __user *from,
			  size_t count, int (*run)(char *text))
{
	int ret = may_write(name);
	char *text;

	if (ret)
		return ret;
	if (count > WRITE_MOST) {
		pr_err("%s: %zu bytes refused: a write has at most %d\n", name,
		       count, WRITE_MOST);
		return -E2BIG;
	}
	text = memdup_user_nul(from, count);
	if (IS_ERR(text))
		return PTR_ERR(text);
	ret = run(text);
	kfree(text);
	return ret ?: count;
}

static ssize_t instctl_write(struct file *file, const char __user *from,
			     size_t count, loff_t *at)
{
	return write_text("inst_ctl", from, count, run_lines);
}

static const struct proc_ops instctl_ops = {
	.proc_open = instctl_open,
	.proc_read = seq_read,
	.proc_write = instctl_write,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
};

static int upgrade_open(struct inode *inode, struct file *file)
{
	return single_open(file, cgpu_cores_show, NULL);
}

static int switch_core(char *text)
{
	return cgpu_core_switch(strim(text));
}

static ssize_t upgrade_write(struct file *file, const char __user *from,
			     size_t count, loff_t *at)
{
	return write_text("upgrade", from, count, switch_core);
}

static const struct proc_ops upgrade_ops = {
	.proc_open = upgrade_open,
	.proc_read = seq_read,
	.proc_write = upgrade_write,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
};

/**
 * cgpu_procfs_root() - the folder of the module
 *
 * Context: any, between cgpu_procfs_init() and cgpu_procfs_exit().
 * Return: the folder.
 */
struct proc_dir_entry *cgpu_procfs_root(void)
{
	return root;
}

/**
 * cgpu_procfs_init() - make /proc/cgpu_km
 *
 * Context: module load.
 * Return: 0 or -ENOMEM.
 */
int cgpu_procfs_init(void)
{
	int ret;

	root = proc_mkdir("cgpu_km", NULL);
	if (!root)
		return -ENOMEM;
	ret = cgpu_attrs_add(root, root_attrs, ARRAY_SIZE(root_attrs), NULL,
			     NULL);
	if (!ret && !proc_create("inst_ctl", 0644, root, &instctl_ops))
		ret = -ENOMEM;
	if (!ret && !proc_create("upgrade", 0644, root, &upgrade_ops))
		ret = -ENOMEM;
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
	proc_remove(root);
	cgpu_attrs_free(NULL);
}
