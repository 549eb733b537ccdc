/* SPDX-License-Identifier: GPL-2.0-only */
/* The core's host in the kernel: what its files give each other. */
#ifndef NVSIM_MODULE_H
#define NVSIM_MODULE_H

#include "core.h"

#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/wait.h>
#include <linux/xarray.h>

/* An open /dev/nvidiactl or /dev/nvidia<N>. */
struct nvsim_open {
	struct nvsim_file core;
	struct file *file;
	struct address_space mapping;
	wait_queue_head_t wait;
};

struct nvsim_backing {
	struct kref ref;
	u64 bytes;
	struct xarray pages;		/* sparse: those that were touched */
	struct page *block;		/* contiguous */
	struct page **pinned;		/* the caller's */
	unsigned long pinned_count;
	u32 pinned_offset;		/* of the first byte in the first page */
	unsigned long first_index;	/* of a UVM mapping: its address in pages */
};

static inline void nvsim_vm_flags(struct vm_area_struct *vma, unsigned long flags)
{
#ifdef NVSIM_VM_FLAGS_SET
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
}

/* pages.c */
int nvsim_pages_init(unsigned long content_mib);
void nvsim_pages_exit(void);
struct page *nvsim_page(struct nvsim_backing *backing, unsigned long index);

/* chrdev.c, uvmdev.c, procfs.c, thread.c */
int nvsim_chrdev_init(void);
void nvsim_chrdev_exit(void);
bool nvsim_chrdev_hush(void);
int nvsim_uvmdev_init(void);
void nvsim_uvmdev_exit(void);
int nvsim_procfs_init(void);
void nvsim_procfs_exit(void);
int nvsim_thread_init(void);
void nvsim_thread_exit(void);

#endif
