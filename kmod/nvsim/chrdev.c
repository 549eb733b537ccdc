// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/nvidiactl and /dev/nvidia<N>. Files named inside ioctls are taken by
 * their device number alone and their private data is trusted, as the driver
 * does it: who forges such a file crashes here as there.
 */
#include "module.h"

#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/poll.h>
#include <linux/sched.h>

static const struct file_operations fops;

static struct nvsim_open *open_of(struct nvsim_file *core)
{
	return container_of(core, struct nvsim_open, core);
}

struct nvsim_file *nvsim_host_file_get(int fd, bool control)
{
	struct file *file = fget(fd);
	struct nvsim_open *open;
	dev_t device;

	if (!file)
		return NULL;
	device = file->f_inode->i_rdev;
	if (MAJOR(device) == NVSIM_MAJOR &&
	    (control ? MINOR(device) == NVSIM_CONTROL_MINOR :
		       MINOR(device) < nvsim.gpu_count)) {
		open = file->private_data;
		return &open->core;
	}
	fput(file);
	return NULL;
}

void nvsim_host_file_put(struct nvsim_file *core)
{
	fput(open_of(core)->file);
}

void nvsim_host_file_wake(struct nvsim_file *core)
{
	wake_up_interruptible(&open_of(core)->wait);
}

static int is_file_of(const void *gpu, struct file *file, unsigned int fd)
{
	const struct nvsim_open *open;

	if (nvsim.branch->genuine_file ? file->f_op != &fops :
	    MAJOR(file->f_inode->i_rdev) != NVSIM_MAJOR)
		return 0;
	open = file->private_data;
	return open && open->core.gpu == gpu;
}

bool nvsim_host_accessible(struct nvsim_gpu *gpu)
{
	return iterate_fd(current->files, 0, is_file_of, gpu);
}

static int nvsim_open(struct inode *inode, struct file *file)
{
	struct nvsim_open *open = kzalloc(sizeof(*open), GFP_KERNEL);
	int error;

	if (!open)
		return -ENOMEM;
	init_waitqueue_head(&open->wait);
	address_space_init_once(&open->mapping);
	open->mapping.host = inode;
	open->mapping.a_ops = inode->i_mapping->a_ops;
	open->file = file;
	error = nvsim_file_open(&open->core, MINOR(inode->i_rdev));
	if (error) {
		kfree(open);
		return error;
	}
	file->private_data = open;
	file->f_mapping = &open->mapping;
	return 0;
}

static int nvsim_release(struct inode *inode, struct file *file)
{
	struct nvsim_open *open = file->private_data;

	/* the driver finds its device by f_inode here too */
	WARN_ON(file->f_inode->i_rdev != MKDEV(NVSIM_MAJOR, open->core.minor));
	nvsim_file_close(&open->core);
	file->private_data = NULL;
	kfree(open);
	return 0;
}

static long nvsim_unlocked_ioctl(struct file *file, unsigned int command,
				 unsigned long argument)
{
	struct nvsim_open *open = file->private_data;

	return nvsim_ioctl(&open->core, command, argument);
}

static void vma_open(struct vm_area_struct *vma)
{
	nvsim_host_backing_get(vma->vm_private_data);
}

static void vma_close(struct vm_area_struct *vma)
{
	nvsim_host_backing_put(vma->vm_private_data);
}

static vm_fault_t vma_fault(struct vm_fault *vmf)
{
	struct nvsim_backing *backing = vmf->vma->vm_private_data;
	struct page *page = nvsim_page(backing, vmf->pgoff);
	vm_fault_t result;

	if (!page)
		return VM_FAULT_SIGBUS;
	result = vmf_insert_pfn(vmf->vma, vmf->address, page_to_pfn(page));
	if (backing->block)	/* after it: a page that stays mapped has an awake engine */
		nvsim_host_kick();
	return result;
}

static const struct vm_operations_struct vm_ops = {
	.open = vma_open,
	.close = vma_close,
	.fault = vma_fault,
};

/*
 * At once, but page by page: what remap_pfn_range() maps is marked, and a kernel
 * that finds such a mapping without its pages warns.
 */
static int map_registers(struct vm_area_struct *vma, struct nvsim_backing *backing)
{
	unsigned long at, index = vma->vm_pgoff;

	for (at = vma->vm_start; at < vma->vm_end; at += PAGE_SIZE, index++) {
		struct page *page = nvsim_page(backing, index);

		if (!page || vmf_insert_pfn(vma, at, page_to_pfn(page)) != VM_FAULT_NOPAGE)
			return -ENOMEM;
	}
	return 0;
}

static int nvsim_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct nvsim_open *open = file->private_data;
	unsigned long bytes = vma->vm_end - vma->vm_start;
	struct nvsim_backing *backing;
	u64 offset = 0;
	int error = 0;

	if (vma->vm_pgoff || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	backing = nvsim_file_mmap(&open->core, bytes, &offset);
	if (!backing)
		return -EINVAL;
	nvsim_vm_flags(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_pgoff = offset >> PAGE_SHIFT;
	if (backing->block)
		error = map_registers(vma, backing);
	if (error) {
		nvsim_host_backing_put(backing);
		return error;
	}
	vma->vm_private_data = backing;
	vma->vm_ops = &vm_ops;
	if (backing->block)	/* a doorbell that can be rung without a fault */
		nvsim_host_kick();
	return 0;
}

static __poll_t nvsim_poll(struct file *file, struct poll_table_struct *wait)
{
	struct nvsim_open *open = file->private_data;

	poll_wait(file, &open->wait, wait);
	return nvsim_file_take_event(&open->core) ? EPOLLIN | EPOLLPRI : 0;
}

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.open = nvsim_open,
	.release = nvsim_release,
	.unlocked_ioctl = nvsim_unlocked_ioctl,
	.compat_ioctl = nvsim_unlocked_ioctl,
	.mmap = nvsim_mmap,
	.poll = nvsim_poll,
};

static bool shows_doorbell(const struct nvsim_file *file)
{
	return file->map_used && file->map->backing->block;
}

/**
 * nvsim_chrdev_hush() - Takes mapped doorbells away: the next store to one faults.
 *
 * Context: lock held.
 * Return: false when a file's operations are not ours any more, so that faults
 *	   on its mapping need not reach us; nothing is taken away then.
 */
bool nvsim_chrdev_hush(void)
{
	struct nvsim_file *file;

	list_for_each_entry(file, &nvsim.files, node)
		if (shows_doorbell(file) && READ_ONCE(open_of(file)->file->f_op) != &fops)
			return false;
	list_for_each_entry(file, &nvsim.files, node)
		if (shows_doorbell(file))
			unmap_mapping_range(&open_of(file)->mapping, 0, 0, 1);
	return true;
}

int nvsim_chrdev_init(void)
{
	return register_chrdev(NVSIM_MAJOR, "nvidia", &fops);
}

void nvsim_chrdev_exit(void)
{
	unregister_chrdev(NVSIM_MAJOR, "nvidia");
}
