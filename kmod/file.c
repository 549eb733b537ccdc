// SPDX-License-Identifier: GPL-2.0-only
/*
 * Our operations on a container's device files. The driver works on the very
 * same struct file, so that descriptors, dup, fork, SCM_RIGHTS and mmap need
 * no translation. The rule about f_inode lives here and nowhere else: it is
 * the shadow's while the driver has the file, and what it was before in every
 * failed open and at the end of release, or __fput() counts on the wrong one.
 */
#include <linux/file.h>
#include <linux/hashtable.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include "cgpu.h"

static DEFINE_HASHTABLE(open_files, 10);
static DEFINE_SPINLOCK(open_files_lock);	/* writers of open_files */

/**
 * cgpu_file_of() - our side of an open file
 * @file: the file, held by the caller
 *
 * Context: any.
 * Return: ours, or NULL if it is not one of our nodes.
 */
struct cgpu_file *cgpu_file_of(struct file *file)
{
	struct cgpu_file *f, *found = NULL;

	rcu_read_lock();
	hash_for_each_possible_rcu(open_files, f, hash, (unsigned long)file)
		if (f->file == file) {
			found = f;
			break;
		}
	rcu_read_unlock();
	return found;
}

/**
 * cgpu_own_file() - the file behind a descriptor, if it is the container's
 * @f: a file of the container
 * @fd: the descriptor
 * @file: gets the file, which the caller must fput()
 *
 * Context: process.
 * Return: our side of it, or an ERR_PTR: -EBADF, or -EPERM for a file that is
 *	   not a node of the same instance.
 */
struct cgpu_file *cgpu_own_file(struct cgpu_file *f, int fd, struct file **file)
{
	struct cgpu_file *other;

	*file = fget(fd);
	if (!*file)
		return ERR_PTR(-EBADF);
	other = cgpu_file_of(*file);
	if (other && other->node->inst == f->node->inst)
		return other;
	fput(*file);
	return ERR_PTR(-EPERM);
}
EXPORT_SYMBOL_GPL(cgpu_own_file);

/**
 * cgpu_forward() - hand a call to the driver as it is
 * @f: the file
 * @cmd: the ioctl
 * @arg: its argument, in the caller's memory
 *
 * Context: process.
 * Return: the driver's answer.
 */
long cgpu_forward(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	return f->node->fops->unlocked_ioctl(f->file, cmd, (unsigned long)arg);
}
EXPORT_SYMBOL_GPL(cgpu_forward);

static struct cgpu_file *new_file(struct inode *inode, struct file *file)
{
	struct cgpu_file *f = kzalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);

	if (!f)
		return NULL;
	f->file = file;
	f->node = inode->i_private;
	f->inode = inode;
	f->pid = get_pid(task_tgid(current));
	mutex_init(&f->lock);
	mutex_init(&f->map_lock);
	INIT_LIST_HEAD(&f->ranges);
	return f;
}

static void enter(struct cgpu_file *f)
{
	struct cgpu_inst *inst = f->node->inst;

	spin_lock(&open_files_lock);
	hash_add_rcu(open_files, &f->hash, (unsigned long)f->file);
	spin_unlock(&open_files_lock);
	mutex_lock(&inst->lock);
	list_add_tail(&f->link, &inst->files);
	mutex_unlock(&inst->lock);
}

static void leave(struct cgpu_file *f)
{
	struct cgpu_inst *inst = f->node->inst;

	spin_lock(&open_files_lock);
	hash_del_rcu(&f->hash);
	spin_unlock(&open_files_lock);
	mutex_lock(&inst->lock);
	list_del(&f->link);
	mutex_unlock(&inst->lock);
}

static void show_shadow(struct cgpu_file *f)
{
	f->file->f_inode = f->node->shadow;
	f->file->f_mapping = f->node->shadow->i_mapping;
}

static void show_inode(struct cgpu_file *f)
{
	f->file->f_inode = f->inode;
	f->file->f_mapping = f->inode->i_mapping;
}

static int driver_open(struct cgpu_file *f)
{
	const struct file_operations *fops = f->node->fops;
	int ret = fops->open ? fops->open(f->node->shadow, f->file) : 0;

	if (ret)
		return ret;
	if (WARN_ON_ONCE(f->file->f_op != &cgpu_fops)) {
		fops->release(f->node->shadow, f->file);
		return -EIO;
	}
	return 0;
}

static int cgpu_open(struct inode *inode, struct file *file)
{
	struct cgpu_node *node = inode->i_private;
	struct cgpu_file *f;
	int ret;

	if (node->inst->poisoned)
		return -EIO;
	f = new_file(inode, file);
	if (!f)
		return -ENOMEM;
	if (!try_module_get(node->fops->owner)) {
		ret = -ENXIO;
		goto free;
	}
	show_shadow(f);
	ret = driver_open(f);
	if (ret)
		goto put;
	enter(f);
	return 0;
put:
	show_inode(f);
	module_put(node->fops->owner);
free:
	put_pid(f->pid);
	kfree(f);
	return ret;
}

static int cgpu_release(struct inode *inode, struct file *file)
{
	struct cgpu_file *f = cgpu_file_of(file);
	const struct file_operations *fops = f->node->fops;

	if (fops->release)
		fops->release(f->node->shadow, file);
	show_inode(f);
	leave(f);
	cgpu_untrack_file(f);
	cgpu_uvm_release(f);
	cgpu_argpage_free(f->args);
	module_put(fops->owner);
	put_pid(f->pid);
	kfree_rcu(f, rcu);
	return 0;
}

static long cgpu_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct cgpu_file *f = cgpu_file_of(file);

	if (f->node->inst->poisoned)
		return -EIO;
	if (cgpu_passes(f, cmd))
		return cgpu_forward(f, cmd, (void __user *)arg);
	if (f->node->minor == CGPU_NODE_UVM)
		return cgpu_uvm_ioctl(f, cmd, (void __user *)arg);
	return cgpu_dispatch(f, cmd, (void __user *)arg);
}

static int cgpu_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct cgpu_file *f = cgpu_file_of(file);
	struct cgpu_share *share = READ_ONCE(f->next_map);
	int ret;

	if (f->node->inst->poisoned)
		return -EIO;
	if (f->node->minor == CGPU_NODE_UVM)
		return cgpu_uvm_mmap(f, vma);
	if (!f->node->fops->mmap)
		return -ENODEV;
	ret = f->node->fops->mmap(file, vma);
	if (!ret && share)
		ret = cgpu_gate_wrap(f, share, vma);
	return ret;
}

static __poll_t cgpu_poll(struct file *file, poll_table *wait)
{
	struct cgpu_file *f = cgpu_file_of(file);

	return f->node->fops->poll ? f->node->fops->poll(file, wait) : EPOLLERR;
}

static vm_fault_t nothing_there(struct vm_fault *vmf)
{
	return VM_FAULT_SIGBUS;
}

/* Of managed memory that was refused: see uvm.c. */
const struct vm_operations_struct cgpu_refused_vm_ops = {
	.fault = nothing_there,
};
EXPORT_SYMBOL_GPL(cgpu_refused_vm_ops);

const struct file_operations cgpu_fops = {
	.owner = THIS_MODULE,
	.open = cgpu_open,
	.release = cgpu_release,
	.unlocked_ioctl = cgpu_ioctl,
	.compat_ioctl = cgpu_ioctl,
	.mmap = cgpu_mmap,
	.poll = cgpu_poll,
	.llseek = noop_llseek,
};
