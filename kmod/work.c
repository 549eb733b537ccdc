// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether work of a share is on the GPU: looks at the rings of its channels in
 * the memory of the programs that made them (ring.h says how they are read).
 *
 * Looking never waits: what is not in memory counts as idle. A program that
 * changes its own memory deceives nobody but the account of its own work.
 */
#include <linux/kthread.h>
#include <linux/mmu_context.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "cgpu.h"
#include "ring.h"

/**
 * struct cgpu_channel - a channel of a share
 * @link: in share->channels
 * @client: of the channel's handle
 * @handle: the channel
 * @mm: address space of the program that made it, without its users
 * @ring: how far it is
 * @until: last entry that was rung when the gate closed
 */
struct cgpu_channel {
	struct list_head link;
	u32 client;
	u32 handle;
	struct mm_struct *mm;
	struct cgpu_ring ring;
	u32 until;
};

/**
 * cgpu_work_add() - a program has made a channel
 * @share: whose it is
 * @client: of the channel's handle
 * @handle: the channel
 * @base: address of its ring
 * @entries: length of the ring
 *
 * Context: process, the program's.
 */
void cgpu_work_add(struct cgpu_share *share, u32 client, u32 handle, u64 base,
		   u32 entries)
{
	struct cgpu_channel *c = kzalloc(sizeof(*c), GFP_KERNEL_ACCOUNT);

	if (!c)
		return;
	c->client = client;
	c->handle = handle;
	c->ring.base = base;
	c->ring.entries = entries;
	c->mm = current->mm;
	mmgrab(c->mm);
	mutex_lock(&share->work_lock);
	list_add_tail(&c->link, &share->channels);
	mutex_unlock(&share->work_lock);
}
EXPORT_SYMBOL_GPL(cgpu_work_add);

/**
 * cgpu_work_del() - a channel is gone
 * @share: whose it was
 * @client: of the channel's handle
 * @handle: the channel
 *
 * Context: process; inst->lock may be held.
 */
void cgpu_work_del(struct cgpu_share *share, u32 client, u32 handle)
{
	struct cgpu_channel *c, *next;

	mutex_lock(&share->work_lock);
	list_for_each_entry_safe(c, next, &share->channels, link) {
		if (c->client != client || c->handle != handle)
			continue;
		list_del(&c->link);
		mmdrop(c->mm);
		kfree(c);
	}
	mutex_unlock(&share->work_lock);
}
EXPORT_SYMBOL_GPL(cgpu_work_del);

static bool read_memory(void *context, u64 va, void *to, u32 bytes)
{
	const void __user *from = u64_to_user_ptr(va);

	return !copy_from_user_nofault(to, from, bytes);
}

static const struct cgpu_memory memory = { .read = read_memory };

/* Entries that were written after the gate closed cannot have been rung. */
static void count(struct cgpu_channel *c, bool closed, struct cgpu_work *work)
{
	u32 left;

	cgpu_ring_look(&c->ring, &memory);
	work->seen |= c->ring.progress != 0;
	if (!closed)
		c->until = c->ring.put;
	else if (c->until != c->ring.put)
		work->waiting--;
	left = cgpu_ring_left(&c->ring, c->until);
	work->done += c->ring.done;
	work->stamp = max(work->stamp, c->ring.stamp);
	if (!left || cgpu_ring_is_blocked(&c->ring, &memory))
		return;
	work->left += left;
	work->last += left == 1;
}

static void switch_to(struct mm_struct **at, struct mm_struct *to)
{
	if (*at == to)
		return;
	if (*at) {
		kthread_unuse_mm(*at);
		mmput_async(*at);
	}
	*at = to && mmget_not_zero(to) ? to : NULL;
	if (*at)
		kthread_use_mm(*at);
}

/**
 * cgpu_work_look() - see how much work of a share is on the GPU
 * @share: the share
 * @closed: its gate was closed at the last look already
 * @work: what is seen
 *
 * A thread that waits at a closed gate may have written its entry before the
 * gate closed. Such entries were not rung: as many channels as threads wait,
 * whose last entry alone is missing, count as idle.
 *
 * Context: a kernel thread; gpu->lock is held.
 */
void cgpu_work_look(struct cgpu_share *share, bool closed, struct cgpu_work *work)
{
	struct mm_struct *mm = NULL;
	struct cgpu_channel *c;

	memset(work, 0, sizeof(*work));
	work->waiting = closed ? atomic_read(&share->gate.waiting) : 0;
	mutex_lock(&share->work_lock);
	list_for_each_entry(c, &share->channels, link) {
		switch_to(&mm, c->mm);
		if (mm)
			count(c, closed, work);
	}
	switch_to(&mm, NULL);
	mutex_unlock(&share->work_lock);
	work->waiting = max(work->waiting, 0);
	work->left -= min_t(u32, work->last, work->waiting);
}
