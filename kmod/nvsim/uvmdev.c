// SPDX-License-Identifier: GPL-2.0-only
/* /dev/nvidia-uvm, and the capability nodes that only need to open. */
#include "module.h"

#include <linux/module.h>

static int uvm_major, caps_major;

static int uvm_open(struct inode *inode, struct file *file)
{
	struct nvsim_uvm *uvm = kzalloc(sizeof(*uvm), GFP_KERNEL);

	if (!uvm)
		return -ENOMEM;
	nvsim_uvm_open(uvm);
	file->private_data = uvm;
	return 0;
}

static int uvm_release(struct inode *inode, struct file *file)
{
	nvsim_uvm_close(file->private_data);
	kfree(file->private_data);
	return 0;
}

static long uvm_ioctl(struct file *file, unsigned int command,
		      unsigned long argument)
{
	return nvsim_uvm_ioctl(file->private_data, command, argument);
}

/* A mapping of the UVM file: its bytes, and where its range was made. */
static void vma_close(struct vm_area_struct *vma)
{
	nvsim_uvm_munmap(vma->vm_file->private_data, vma->vm_start,
			 vma->vm_end - vma->vm_start);
	nvsim_host_backing_put(vma->vm_private_data);
}

static void vma_open(struct vm_area_struct *vma)
{
	nvsim_host_backing_get(vma->vm_private_data);
}

static vm_fault_t vma_fault(struct vm_fault *vmf)
{
	struct nvsim_backing *backing = vmf->vma->vm_private_data;
	struct page *page;

	page = nvsim_page(backing, vmf->pgoff - backing->first_index);
	if (!page)
		return VM_FAULT_SIGBUS;
	get_page(page);
	vmf->page = page;
	return 0;
}

static const struct vm_operations_struct vm_ops = {
	.open = vma_open,
	.close = vma_close,
	.fault = vma_fault,
};

static int uvm_mmap(struct file *file, struct vm_area_struct *vma)
{
	unsigned long bytes = vma->vm_end - vma->vm_start;
	struct nvsim_backing *backing;
	int error;

	if (vma->vm_pgoff != vma->vm_start >> PAGE_SHIFT)
		return -EINVAL;
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	backing = nvsim_host_backing_new(bytes, NVSIM_SPARSE);
	if (!backing)
		return -ENOMEM;
	backing->first_index = vma->vm_pgoff;
	nvsim_host_backing_get(backing);	/* the range's, beside the mapping's */
	error = nvsim_uvm_mmap(file->private_data, vma->vm_start, bytes, backing);
	if (error) {
		nvsim_host_backing_put(backing);
		return error;
	}
	nvsim_vm_flags(vma, VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	vma->vm_private_data = backing;
	vma->vm_ops = &vm_ops;
	return 0;
}

static const struct file_operations uvm_fops = {
	.owner = THIS_MODULE,
	.open = uvm_open,
	.release = uvm_release,
	.unlocked_ioctl = uvm_ioctl,
	.compat_ioctl = uvm_ioctl,
	.mmap = uvm_mmap,
};

static int caps_open(struct inode *inode, struct file *file)
{
	return 0;
}

static const struct file_operations caps_fops = {
	.owner = THIS_MODULE,
	.open = caps_open,
};

int nvsim_uvmdev_init(void)
{
	uvm_major = register_chrdev(0, "nvidia-uvm", &uvm_fops);
	if (uvm_major < 0)
		return uvm_major;
	caps_major = register_chrdev(0, "nvidia-caps", &caps_fops);
	if (caps_major >= 0)
		return 0;
	unregister_chrdev(uvm_major, "nvidia-uvm");
	return caps_major;
}

void nvsim_uvmdev_exit(void)
{
	unregister_chrdev(caps_major, "nvidia-caps");
	unregister_chrdev(uvm_major, "nvidia-uvm");
}
