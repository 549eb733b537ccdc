/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kernel differences, and nothing else. The CGPU_HAS_ macros come from
 * compat.sh, which looks into the kernel's own headers instead of at its
 * version, so that backports are seen.
 */
#ifndef CGPU_COMPAT_H
#define CGPU_COMPAT_H

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/proc_fs.h>
#include "compat_probed.h"

#ifdef CGPU_HAS_IDMAP
#define CGPU_IDMAP		struct mnt_idmap *idmap
#else
#define CGPU_IDMAP		struct user_namespace *idmap
#endif

#ifdef CGPU_HAS_PDE_DATA
#define cgpu_pde_data(inode)	pde_data(inode)
#else
#define cgpu_pde_data(inode)	PDE_DATA(inode)
#endif

#ifdef CGPU_HAS_FILLATTR_MASK
#define cgpu_fillattr(idmap, mask, inode, stat) \
	generic_fillattr(idmap, mask, inode, stat)
#else
#define cgpu_fillattr(idmap, mask, inode, stat) \
	generic_fillattr(idmap, inode, stat)
#endif

static inline void cgpu_inode_times(struct inode *inode)
{
#ifdef CGPU_HAS_INIT_TS
	simple_inode_init_ts(inode);
#else
	inode->i_ctime = current_time(inode);
	inode->i_atime = inode->i_ctime;
	inode->i_mtime = inode->i_ctime;
#endif
}

/* Drops whatever lock the page fault runs under. */
static inline void cgpu_release_fault_lock(struct vm_fault *vmf)
{
#ifdef CGPU_HAS_FAULT_LOCK
	release_fault_lock(vmf);
#else
	mmap_read_unlock(vmf->vma->vm_mm);
#endif
}

static inline int cgpu_follow_pfn(struct vm_area_struct *vma,
				  unsigned long addr, unsigned long *pfn)
{
#ifdef CGPU_HAS_FOLLOW_PFNMAP
	struct follow_pfnmap_args args = { .vma = vma, .address = addr };
	int ret = follow_pfnmap_start(&args);

	if (ret)
		return ret;
	*pfn = args.pfn;
	follow_pfnmap_end(&args);
	return 0;
#else
	return follow_pfn(vma, addr, pfn);
#endif
}

static inline void cgpu_vm_flags(struct vm_area_struct *vma,
				 unsigned long set, unsigned long clear)
{
#ifdef CGPU_HAS_VM_FLAGS_MOD
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

#endif
