// SPDX-License-Identifier: GPL-2.0-only
/*
 * Arguments that the caller's other threads cannot change between our check
 * and the driver's copy.
 *
 * One kernel page is mapped into the caller's address space for one call, and
 * the driver gets that address. The page is read-only for everybody. A write
 * faults into ->pfn_mkwrite, which lets only the task that makes the call
 * through, and only in kernel mode: that is the driver's copy of the results,
 * when all inputs have been read. Stores of the program, and writes that
 * other tasks' system calls make on its behalf, fail. No page can be pinned
 * (VM_PFNMAP), no protection changed, nothing moved. An unmapping cannot be
 * vetoed, but it is seen: the instance is then poisoned and its process
 * killed.
 *
 * So inputs can be trusted. Results cannot: once the driver has stored the
 * first, the page is writable for as long as the call lasts.
 */
#include <linux/anon_inodes.h>
#include <linux/completion.h>
#include <linux/cred.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include "cgpu.h"
#include "compat.h"

#define NESTED_AT		CGPU_NESTED_AT

/**
 * struct cgpu_argpage - the page of one open file
 * @page: its kernel address
 * @file: what is mapped
 * @owner: task that may write results while a call runs
 * @live: a call runs
 * @events: forbidden things done to the mapping during the call
 */
struct cgpu_argpage {
	void *page;
	struct file *file;
	struct task_struct *owner;
	bool live;
	atomic_t events;
};

/*
 * struct on_worker - a call made by a kernel worker
 *
 * Its table of descriptors is the kernel's own, which no container can see;
 * its address space is the caller's.
 */
struct on_worker {
	struct work_struct work;
	struct completion done;
	struct cgpu_call *call;
	struct cgpu_argpage *page;
	void __user *arg;
	struct mm_struct *mm;
	const struct cred *cred;
	long ret;
};

static struct workqueue_struct *workers;

static void note_event(struct vm_area_struct *vma)
{
	struct cgpu_argpage *p = vma->vm_private_data;

	if (READ_ONCE(p->live))
		atomic_inc(&p->events);
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
	return 0;
}

static const struct vm_operations_struct argpage_vm_ops = {
	.open = note_event,
	.close = note_event,
	.mremap = refuse_mremap,
	.mprotect = refuse_mprotect,
	.may_split = refuse_split,
	.pfn_mkwrite = allow_result,
};

static int argpage_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct cgpu_argpage *p = file->private_data;

	if (vma->vm_end - vma->vm_start != PAGE_SIZE || vma->vm_pgoff ||
	    !(vma->vm_flags & VM_SHARED) || !READ_ONCE(p->live))
		return -EINVAL;
	/*
	 * VM_MAYWRITE stays: handle_mm_fault() warns about a write fault in a
	 * VM_WRITE mapping without it; ->mprotect refuses instead.
	 */
	cgpu_vm_flags(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP |
		      VM_DONTCOPY, VM_MAYEXEC);
	vma->vm_private_data = p;
	vma->vm_ops = &argpage_vm_ops;
	return remap_pfn_range(vma, vma->vm_start,
			       virt_to_phys(p->page) >> PAGE_SHIFT, PAGE_SIZE,
			       PAGE_READONLY);
}

static const struct file_operations argpage_fops = {
	.owner = THIS_MODULE,
	.mmap = argpage_mmap,
};

static struct cgpu_argpage *argpage_new(void)
{
	struct cgpu_argpage *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return NULL;
	p->page = (void *)get_zeroed_page(GFP_KERNEL);
	if (!p->page)
		goto free;
	p->file = anon_inode_getfile("[cgpu]", &argpage_fops, p, O_RDWR);
	if (IS_ERR(p->file))
		goto free_page;
	return p;
free_page:
	free_page((unsigned long)p->page);
free:
	kfree(p);
	return NULL;
}

/**
 * cgpu_argpage_free() - the file is closed
 * @p: its page, or NULL
 *
 * Context: process; no call runs.
 */
void cgpu_argpage_free(struct cgpu_argpage *p)
{
	if (!p)
		return;
	fput(p->file);
	free_page((unsigned long)p->page);
	kfree(p);
}

static void run_on_worker(struct work_struct *work)
{
	struct on_worker *w = container_of(work, struct on_worker, work);
	struct cgpu_call *call = w->call;
	const struct cred *old;
	int fd = get_unused_fd_flags(O_CLOEXEC);

	w->ret = fd;
	if (fd < 0)
		goto out;
	fd_install(fd, get_file(call->genuine));
	if (call->fd_at)
		*(s32 *)(w->page->page + call->fd_at) = fd;
	WRITE_ONCE(w->page->owner, current);
	kthread_use_mm(w->mm);
	old = override_creds(w->cred);
	w->ret = cgpu_forward(call->f, call->cmd, w->arg);
	revert_creds(old);
	kthread_unuse_mm(w->mm);
	close_fd(fd);
out:
	complete(&w->done);
}

static long call_on_worker(struct cgpu_call *call, struct cgpu_argpage *p,
			   void __user *arg)
{
	struct on_worker w = {
		.call = call, .page = p, .arg = arg, .mm = current->mm,
		.cred = current_cred(),
	};

	INIT_WORK_ONSTACK(&w.work, run_on_worker);
	init_completion(&w.done);
	queue_work(workers, &w.work);
	wait_for_completion(&w.done);
	destroy_work_on_stack(&w.work);
	return w.ret;
}

static void fill(struct cgpu_argpage *p, const struct cgpu_call *call,
		 unsigned long at)
{
	memcpy(p->page, call->args, call->size);
	if (!call->nested)
		return;
	memcpy(p->page + NESTED_AT, call->nested, call->nested_size);
	*(u64 *)(p->page + call->nested_at) = at + NESTED_AT;
}

static void take_results(struct cgpu_argpage *p, struct cgpu_call *call)
{
	u64 pointer = call->nested ? *(u64 *)(call->args + call->nested_at) : 0;

	memcpy(call->args, p->page, call->size);
	if (!call->nested)
		return;
	memcpy(call->nested, p->page + NESTED_AT, call->nested_size);
	*(u64 *)(call->args + call->nested_at) = pointer;
}

static long call_mapped(struct cgpu_call *call, struct cgpu_argpage *p)
{
	unsigned long at;
	long ret;

	atomic_set(&p->events, 0);
	/* Live before the mapping exists, so that no unmapping goes unseen. */
	smp_store_release(&p->live, true);
	WRITE_ONCE(p->owner, current);
	at = vm_mmap(p->file, 0, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		     0);
	if (IS_ERR_VALUE(at)) {
		WRITE_ONCE(p->live, false);
		return at;
	}
	fill(p, call, at);
	ret = call->genuine ? call_on_worker(call, p, (void __user *)at) :
	      cgpu_forward(call->f, call->cmd, (void __user *)at);
	WRITE_ONCE(p->live, false);
	if (atomic_read(&p->events)) {
		cgpu_inst_poison(call->f->node->inst);
		force_sig(SIGKILL);
		return -EIO;
	}
	vm_munmap(at, PAGE_SIZE);
	take_results(p, call);
	return ret;
}

/**
 * cgpu_call() - call the driver with arguments that nobody else can change
 * @call: the call; arguments and parameters hold the results afterwards
 *
 * Context: process, with the address space of the caller; call->f->lock held.
 * Return: the driver's answer; -EIO for a caller that tampered with the page,
 *	   -EINVAL for arguments that do not fit, -ENOMEM.
 */
long cgpu_call(struct cgpu_call *call)
{
	struct cgpu_file *f = call->f;

	lockdep_assert_held(&f->lock);
	if (call->size > NESTED_AT ||
	    call->nested_size > PAGE_SIZE - NESTED_AT || !current->mm)
		return -EINVAL;
	if (!f->args)
		f->args = argpage_new();
	if (!f->args)
		return -ENOMEM;
	return call_mapped(call, f->args);
}

/**
 * cgpu_argpage_init() - start the workers
 *
 * Context: module load.
 * Return: 0 or -ENOMEM.
 */
int cgpu_argpage_init(void)
{
	workers = alloc_workqueue("cgpu", WQ_UNBOUND, 0);
	return workers ? 0 : -ENOMEM;
}

/**
 * cgpu_argpage_exit() - end the workers
 *
 * Context: module unload; no file is open.
 */
void cgpu_argpage_exit(void)
{
	destroy_workqueue(workers);
}
