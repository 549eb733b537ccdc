// SPDX-License-Identifier: GPL-2.0-only
/*
 * Arguments that the caller's other threads cannot change between our check
 * and the driver's copy.
 *
 * Kernel pages are mapped into the caller's address space, and the driver gets
 * an address there. They are read-only for everybody. A write faults into
 * ->pfn_mkwrite, which lets only the task that makes the call through, only to
 * the page of that call, and only in kernel mode: that is the driver's copy of
 * the results, when all inputs have been read. Stores of the program, and
 * writes that other tasks' system calls make on its behalf, fail. No page can
 * be pinned (VM_PFNMAP), no protection changed, nothing moved. An unmapping
 * cannot be vetoed, but it is seen: during a call the instance is poisoned and
 * its process killed; between calls it does no harm, the next call maps anew.
 *
 * So inputs can be trusted. Results cannot: once the driver has stored the
 * first, the page stays writable. It is therefore used for one call only; when
 * all pages are used up, they are revoked together. A page is never shared by
 * two addresses.
 *
 * A task that is alone in its address space has no other thread, and gets none
 * while it is in the driver: it may use a writable page again, which spares
 * the fault. Who else can hold the address space (a tracer, a reader of /proc)
 * reaches memory through paths that refuse VM_PFNMAP.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/io.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "cgpu.h"
#include "compat.h"

#define NESTED_AT		CGPU_NESTED_AT
#define PAGES			64
#define GROWTH			4
#define BYTES			(PAGES * PAGE_SIZE)

/**
 * struct cgpu_argpage - the pages of one open file in one address space
 * @next: the same file's in another address space; under the file's lock
 * @file: what is mapped; ours is one reference, the mapping another, and the
 *	  last one frees this
 * @mm: the address space, whose number is not given to another meanwhile
 * @at: where they are mapped
 * @page: kernel addresses
 * @pages: how many there are: one, until a second thread shows up; then more
 *	   with every revocation, since one interrupts the other processors
 * @now: which page the call in progress, or the next one, uses
 * @mapper: task whose vm_mmap() is ours
 * @owner: task that may write results while a call runs
 * @mapped: the mapping is there
 * @live: a call runs
 * @dirty: page @now is writable, because a result was stored
 * @events: forbidden things done to the mapping during the call
 */
struct cgpu_argpage {
	struct cgpu_argpage *next;
	struct file *file;
	struct mm_struct *mm;
	unsigned long at;
	void *page[PAGES];
	u32 pages;
	u32 now;
	struct task_struct *mapper;
	struct task_struct *owner;
	bool mapped;
	bool live;
	bool dirty;
	atomic_t events;
};

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

	if (vmf->flags & FAULT_FLAG_USER || READ_ONCE(p->owner) != current ||
	    vmf->pgoff != p->now)
		return VM_FAULT_SIGBUS;
	p->dirty = true;
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

	if (vma->vm_end - vma->vm_start != BYTES || vma->vm_pgoff ||
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

static struct cgpu_argpage *argpage_new(void)
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

static int put_pages(struct vm_area_struct *vma, struct cgpu_argpage *p)
{
	vm_fault_t put = VM_FAULT_NOPAGE;
	u32 i;

	zap_vma_ptes(vma, p->at, BYTES);
	for (i = 0; i < p->pages && put == VM_FAULT_NOPAGE; i++)
		put = vmf_insert_pfn_prot(vma, p->at + i * PAGE_SIZE,
					  virt_to_phys(p->page[i]) >> PAGE_SHIFT,
					  PAGE_READONLY);
	return put == VM_FAULT_NOPAGE ? 0 : -ENOMEM;
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

/*
 * All pages are read-only again, in every thread, when this succeeds; the
 * mapping is given up when it does not.
 */
static int revoke(struct cgpu_argpage *p, u32 pages)
{
	int ret = get_pages(p, pages);

	if (!ret)
		ret = put_pages_again(p);
	if (ret)
		WRITE_ONCE(p->mapped, false);
	p->now = 0;
	p->dirty = false;
	return ret;
}

static int map(struct cgpu_argpage *p)
{
	unsigned long at;

	WRITE_ONCE(p->mapper, current);
	at = vm_mmap(p->file, 0, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	WRITE_ONCE(p->mapper, NULL);
	return IS_ERR_VALUE(at) ? (int)at : revoke(p, 1);
}

/* Takes what the program has unmapped, or died with, out of the list. */
static struct cgpu_argpage *find(struct cgpu_file *f)
{
	struct cgpu_argpage *p, **link = &f->args;

	while ((p = *link)) {
		if (READ_ONCE(p->mapped) && p->mm == current->mm)
			return p;
		if (READ_ONCE(p->mapped)) {
			link = &p->next;
			continue;
		}
		*link = p->next;
		fput(p->file);
	}
	return NULL;
}

static bool is_alone(void)
{
	return atomic_read(&current->mm->mm_users) == 1;
}

/* Sees to it that page @now is one that nobody else can write. */
static int renew(struct cgpu_argpage *p)
{
	if (!p->dirty || is_alone())
		return 0;
	if (p->now + 1 < p->pages) {
		p->now++;
		p->dirty = false;
		return 0;
	}
	return revoke(p, min(p->pages * GROWTH, (u32)PAGES));
}

static struct cgpu_argpage *argpage_of(struct cgpu_file *f)
{
	struct cgpu_argpage *p = find(f);
	int ret;

	if (p) {
		ret = renew(p);
		return ret ? ERR_PTR(ret) : p;
	}
	p = argpage_new();
	if (!p)
		return ERR_PTR(-ENOMEM);
	ret = map(p);
	p->next = f->args;
	f->args = p;
	return ret ? ERR_PTR(ret) : p;
}

/**
 * cgpu_argpage_free() - the file is closed
 * @p: its pages, or NULL
 *
 * Context: process, without mmap_lock; no call runs.
 */
void cgpu_argpage_free(struct cgpu_argpage *p)
{
	struct cgpu_argpage *next;

	for (; p; p = next) {
		next = p->next;
		if (READ_ONCE(p->mapped) && p->mm == current->mm)
			vm_munmap(p->at, BYTES);
		fput(p->file);
	}
}

/* ---- calls ---- */

static void fill(void *page, const struct cgpu_call *call, unsigned long at)
{
	memcpy(page, call->args, call->size);
	if (!call->nested)
		return;
	memcpy(page + NESTED_AT, call->nested, call->nested_size);
	*(u64 *)(page + call->nested_at) = at + NESTED_AT;
}

static void take_results(const void *page, struct cgpu_call *call)
{
	u64 pointer = call->nested ? *(u64 *)(call->args + call->nested_at) : 0;

	memcpy(call->args, page, call->size);
	if (!call->nested)
		return;
	memcpy(call->nested, page + NESTED_AT, call->nested_size);
	*(u64 *)(call->args + call->nested_at) = pointer;
}

/* Live before the mapping is looked at, so that no unmapping goes unseen. */
static bool begin(struct cgpu_argpage *p)
{
	atomic_set(&p->events, 0);
	WRITE_ONCE(p->live, true);
	WRITE_ONCE(p->owner, current);
	smp_mb();	/* pairs with note_close() */
	return READ_ONCE(p->mapped);
}

static void end(struct cgpu_argpage *p)
{
	WRITE_ONCE(p->owner, NULL);
	WRITE_ONCE(p->live, false);
}

static long call_mapped(struct cgpu_call *call, struct cgpu_argpage *p)
{
	unsigned long at = p->at + p->now * PAGE_SIZE;
	void *page = p->page[p->now];
	long ret = -EAGAIN;

	if (begin(p)) {
		fill(page, call, at);
		ret = call->genuine ?
		      cgpu_call_on_worker(call, page, &p->owner,
					  (void __user *)at) :
		      cgpu_forward(call->f, call->cmd, (void __user *)at);
	}
	end(p);
	if (atomic_read(&p->events)) {
		cgpu_inst_poison(call->f->node->inst);
		force_sig(SIGKILL);
		return -EIO;
	}
	take_results(page, call);
	return ret;
}

/**
 * cgpu_call() - call the driver with arguments that nobody else can change
 * @call: the call; arguments and parameters hold the results afterwards
 *
 * Context: process, with the address space of the caller; call->f->lock held.
 * Return: the driver's answer; -EIO for a caller that tampered with the page,
 *	   -EAGAIN for one that unmaps it all the time, -EINVAL for arguments
 *	   that do not fit, -ENOMEM, -EINTR.
 */
long cgpu_call(struct cgpu_call *call)
{
	struct cgpu_argpage *p;

	lockdep_assert_held(&call->f->lock);
	if (call->size > NESTED_AT ||
	    call->nested_size > PAGE_SIZE - NESTED_AT || !current->mm)
		return -EINVAL;
	p = argpage_of(call->f);
	return IS_ERR(p) ? PTR_ERR(p) : call_mapped(call, p);
}
EXPORT_SYMBOL_GPL(cgpu_call);
