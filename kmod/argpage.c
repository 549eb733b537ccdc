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
 * the fault, the first included. Who else can hold the address space (a tracer, a reader of /proc)
 * reaches memory through paths that refuse VM_PFNMAP.
 */
#include <linux/file.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include "argpage.h"

#define NESTED_AT		CGPU_NESTED_AT
#define GROWTH			4

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

/* Pages behind the first: of parameters that are apart, or of a long call. */
static u32 more_of(const struct cgpu_call *call)
{
	return call->apart ? 1 : (call->size - 1) / PAGE_SIZE;
}

/* Sees to it that page @now and @more behind it are such as nobody else can write. */
static int renew(struct cgpu_argpage *p, u32 more)
{
	if (!more && (!p->dirty || is_alone()))
		return 0;
	if (p->now + p->dirty + more < p->pages) {
		p->now += p->dirty;
		p->dirty = false;
		return 0;
	}
	return cgpu_argmap_revoke(p, min(p->pages * GROWTH, (u32)CGPU_ARG_PAGES));
}

static struct cgpu_argpage *argpage_of(struct cgpu_file *f, u32 more)
{
	struct cgpu_argpage *p = find(f);
	int ret;

	if (p) {
		ret = renew(p, more);
		return ret ? ERR_PTR(ret) : p;
	}
	p = cgpu_argmap_new();
	if (!p)
		return ERR_PTR(-ENOMEM);
	ret = cgpu_argmap_map(p, is_alone()) ?: renew(p, more);
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
			vm_munmap(p->at, CGPU_ARG_BYTES);
		fput(p->file);
	}
}

/* ---- calls ---- */

static void *nested_of(struct cgpu_argpage *p)
{
	return p->apart ? p->page[p->now + 1] : p->page[p->now] + NESTED_AT;
}

/*
 * Word by word: memcpy() may be "rep movsb", for which an emulated processor
 * makes a loop a byte.
 */
static void copy(void *to, const void *from, u32 bytes)
{
	u32 i, words = bytes / sizeof(u32);

	for (i = 0; i < words; i++)
		((u32 *)to)[i] = READ_ONCE(((const u32 *)from)[i]);
	memcpy((u32 *)to + words, (const u32 *)from + words, bytes % sizeof(u32));
}

/* The bytes of @call that lie in its page @i. */
static u32 part_of(const struct cgpu_call *call, u32 i)
{
	return min_t(u32, PAGE_SIZE, call->size - i * PAGE_SIZE);
}

static u32 parts_of(const struct cgpu_argpage *p)
{
	return p->apart ? 1 : p->more + 1;
}

static void fill(struct cgpu_argpage *p, const struct cgpu_call *call,
		 unsigned long at)
{
	void *page = p->page[p->now];
	u32 i;

	for (i = 0; i < parts_of(p); i++)
		copy(p->page[p->now + i], call->args + i * PAGE_SIZE,
		     part_of(call, i));
	if (!call->nested)
		return;
	copy(nested_of(p), call->nested, call->nested_size);
	*(u64 *)(page + call->nested_at) = at + (p->apart ? PAGE_SIZE : NESTED_AT);
}

static void take_results(struct cgpu_argpage *p, struct cgpu_call *call)
{
	u64 pointer = call->nested ? *(u64 *)(call->args + call->nested_at) : 0;
	u32 i;

	for (i = 0; i < parts_of(p); i++)
		copy(call->args + i * PAGE_SIZE, p->page[p->now + i],
		     part_of(call, i));
	if (!call->nested)
		return;
	copy(call->nested, nested_of(p), call->nested_size);
	*(u64 *)(call->args + call->nested_at) = pointer;
}

/* Live before the mapping is looked at, so that no unmapping goes unseen. */
static bool begin(struct cgpu_argpage *p, const struct cgpu_call *call)
{
	atomic_set(&p->events, 0);
	p->apart = call->apart;
	p->more = more_of(call);
	p->answered = false;
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

/* The pages behind the first are used up as well. */
static void end_more(struct cgpu_argpage *p, struct cgpu_call *call)
{
	call->answered = p->answered;
	if (!p->more)
		return;
	p->now += p->more;
	p->dirty = true;
}

static long call_mapped(struct cgpu_call *call, struct cgpu_argpage *p)
{
	unsigned long at = p->at + p->now * PAGE_SIZE;
	void *page = p->page[p->now];
	long ret = -EAGAIN;

	if (begin(p, call)) {
		fill(p, call, at);
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
	take_results(p, call);
	end_more(p, call);
	return ret;
}

static bool fits(const struct cgpu_call *call)
{
	return call->size && (call->nested ?
		call->size <= NESTED_AT &&
		call->nested_size <= PAGE_SIZE - NESTED_AT :
		call->size <= GROWTH * PAGE_SIZE);
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
	if (!fits(call) || !current->mm)
		return -EINVAL;
	call->sure = is_alone();
	p = argpage_of(call->f, more_of(call));
	return IS_ERR(p) ? PTR_ERR(p) : call_mapped(call, p);
}
EXPORT_SYMBOL_GPL(cgpu_call);
