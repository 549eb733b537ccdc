// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mapping of the argument pages: who may write to them, and what becomes of
 * those who try otherwise. argpage.c says why.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/io.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "argpage.h"
#include "compat.h"

static void note_event(struct vm_area_struct *vma)
{
	struct cgpu_argpage *p = vma->vm_private_data;

	if (READ_ONCE(p->live))
		atomic_inc(&p->events);
}

static void note_close(struct vm_area_struct *vma)
{
	struct cgpu_argpage *p = vma->vm_private_data;

	/* Not the copy that a refused mremap() has made. */
	if (vma->vm_start == p->at)
		WRITE_ONCE(p->mapped, false);
	/* Either begin() sees that nothing is mapped, or we see the call. */
	smp_mb();
	note_event(vma);
}

static int refuse_mremap(struct vm_area_struct *vma)
{
	note_event(vma);
	return -EPERM;
}

static int refuse_mprotect(struct vm_area_struct *vma, unsigned long start,
			   unsigned long end, unsigned long flags)
{
	return -EACCES;
}

static int refuse_split(struct vm_area_struct *vma, unsigned long addr)
{
	return -EPERM;
}

static vm_fault_t allow_result(struct vm_fault *vmf)
{
	struct cgpu_argpage *p = vmf->vma->vm_private_data;

	if (vmf->flags & FAULT_FLAG_USER || READ_ONCE(p->owner) != current)
		return VM_FAULT_SIGBUS;
	if (vmf->pgoff < p->now || vmf->pgoff > p->now + p->more)
		return VM_FAULT_SIGBUS;
	if (vmf->pgoff == p->now)
		p->dirty = true;
	else if (p->apart)
		p->answered = true;
	return 0;
}

static const struct vm_operations_struct argpage_vm_ops = {
	.open = note_event,
	.close = note_close,
	.mremap = refuse_mremap,
	.mprotect = refuse_mprotect,
	.may_split = refuse_split,
	.pfn_mkwrite = allow_result,
};

static int argpage_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct cgpu_argpage *p = file->private_data;

	if (vma->vm_end - vma->vm_start != CGPU_ARG_BYTES || vma->vm_pgoff ||
	    !(vma->vm_flags & VM_SHARED) || READ_ONCE(p->mapper) != current)
		return -EINVAL;
	/*
	 * VM_MAYWRITE stays: handle_mm_fault() warns about a write fault in a
	 * VM_WRITE mapping without it; ->mprotect refuses instead.
	 */
	cgpu_vm_flags(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP |
		      VM_DONTCOPY, VM_MAYEXEC);
	vma->vm_private_data = p;
	vma->vm_ops = &argpage_vm_ops;
	p->at = vma->vm_start;
	WRITE_ONCE(p->mapped, true);
	return 0;
}

static void free_pages_of(struct cgpu_argpage *p)
{
	while (p->pages)
		free_page((unsigned long)p->page[--p->pages]);
	kfree(p);
}

static int argpage_release(struct inode *inode, struct file *file)
{
	struct cgpu_argpage *p = file->private_data;

	mmdrop(p->mm);
	free_pages_of(p);
	return 0;
}

static const struct file_operations argpage_fops = {
	.owner = THIS_MODULE,
	.mmap = argpage_mmap,
	.release = argpage_release,
};

/* ---- pages: made, revoked, dropped ---- */

static int get_pages(struct cgpu_argpage *p, u32 pages)
{
	for (; p->pages < pages; p->pages++) {
		p->page[p->pages] = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
		if (!p->page[p->pages])
			return -ENOMEM;
	}
	return 0;
}

/**
 * cgpu_argmap_new() - pages for the current address space, not mapped yet
 *
 * Context: process, with an address space.
 * Return: the pages, whose file is the caller's reference, or NULL.
 */
struct cgpu_argpage *cgpu_argmap_new(void)
{
	struct cgpu_argpage *p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);

	if (!p)
		return NULL;
	p->file = anon_inode_getfile("[cgpu]", &argpage_fops, p, O_RDWR);
	if (IS_ERR(p->file))
		goto free;
	p->mm = current->mm;
	mmgrab(p->mm);
	return p;
free:
	free_pages_of(p);
	return NULL;
}

static bool is_ours(struct vm_area_struct *vma, struct cgpu_argpage *p)
{
	return vma && vma->vm_ops == &argpage_vm_ops &&
	       vma->vm_private_data == p && vma->vm_start == p->at;
}

/* Called with the page table's lock. */
static int put_page_at(pte_t *pte, unsigned long addr, void *data)
{
	struct cgpu_argpage *p = data;
	unsigned long i = (addr - p->at) >> PAGE_SHIFT;

	set_pte_at(p->mm, addr, pte,
		   pte_mkspecial(pfn_pte(virt_to_phys(p->page[i]) >> PAGE_SHIFT,
					 !i && p->dirty ? PAGE_SHARED :
							  PAGE_READONLY)));
	return 0;
}

/*
 * Out of the page tables and of every processor's TLB, and in again: zapping is
 * what a module can flush with. vmf_insert_pfn() would look each page's memory
 * type up, which costs more than all else; ordinary memory is write-back.
 */
static int put_pages(struct vm_area_struct *vma, struct cgpu_argpage *p)
{
	if (p->filled)
		zap_vma_ptes(vma, p->at, CGPU_ARG_BYTES);
	p->filled = true;
	return apply_to_page_range(p->mm, p->at, p->pages * PAGE_SIZE,
				   put_page_at, p);
}

static int put_pages_again(struct cgpu_argpage *p)
{
	struct vm_area_struct *vma;
	int ret = -EAGAIN;

	if (mmap_read_lock_killable(p->mm))
		return -EINTR;
	vma = find_vma(p->mm, p->at);
	if (is_ours(vma, p))
		ret = put_pages(vma, p);
	mmap_read_unlock(p->mm);
	return ret;
}

static int renew_pages(struct cgpu_argpage *p, u32 pages, bool dirty)
{
	int ret = get_pages(p, pages);

	p->now = 0;
	p->dirty = dirty;
	if (!ret)
		ret = put_pages_again(p);
	if (ret)
		WRITE_ONCE(p->mapped, false);
	return ret;
}

/**
 * cgpu_argmap_revoke() - nobody can write to a page any more
 * @p: the pages
 * @pages: how many there are to be from now on
 *
 * All are read-only again, in every thread, when this succeeds; the mapping is
 * given up when it does not.
 *
 * Context: process, without mmap_lock.
 * Return: 0, -ENOMEM, -EINTR, or -EAGAIN when the program has unmapped them.
 */
int cgpu_argmap_revoke(struct cgpu_argpage *p, u32 pages)
{
	return renew_pages(p, pages, false);
}

/**
 * cgpu_argmap_map() - map one page
 * @p: from cgpu_argmap_new()
 * @dirty: it may be written to from the beginning, as if a result had been
 *	   stored: for a task that is alone in its address space
 *
 * Context: process, without mmap_lock.
 * Return: 0 or an errno.
 */
int cgpu_argmap_map(struct cgpu_argpage *p, bool dirty)
{
	unsigned long at;

	WRITE_ONCE(p->mapper, current);
	at = vm_mmap(p->file, 0, CGPU_ARG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	WRITE_ONCE(p->mapper, NULL);
	return IS_ERR_VALUE(at) ? (int)at : renew_pages(p, 1, dirty);
}
