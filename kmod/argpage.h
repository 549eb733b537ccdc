/* SPDX-License-Identifier: GPL-2.0-only */
/* The argument pages of an open file: argmap.c maps them, argpage.c uses them. */
#ifndef CGPU_ARGPAGE_H
#define CGPU_ARGPAGE_H

#include "cgpu.h"

#define CGPU_ARG_PAGES		64
#define CGPU_ARG_BYTES		(CGPU_ARG_PAGES * PAGE_SIZE)

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
 * @filled: pages were put into it
 * @live: a call runs
 * @dirty: page @now is writable: a result was stored, or the task is alone
 * @more: pages behind @now that the call in progress uses as well
 * @apart: they hold the call's parameters
 * @answered: the driver has stored to them
 * @events: forbidden things done to the mapping during the call
 */
struct cgpu_argpage {
	struct cgpu_argpage *next;
	struct file *file;
	struct mm_struct *mm;
	unsigned long at;
	void *page[CGPU_ARG_PAGES];
	u32 pages;
	u32 now;
	u32 more;
	struct task_struct *mapper;
	struct task_struct *owner;
	bool mapped;
	bool filled;
	bool live;
	bool dirty;
	bool apart;
	bool answered;
	atomic_t events;
};

struct cgpu_argpage *cgpu_argmap_new(void);
int cgpu_argmap_map(struct cgpu_argpage *p, bool dirty);
int cgpu_argmap_revoke(struct cgpu_argpage *p, u32 pages);

#endif
