// SPDX-License-Identifier: GPL-2.0-only
/*
 * Backings: the bytes of memory objects. Sparse ones get their pages when they
 * are touched; beyond the machine's content limit all further pages are one
 * scratch page, so that a program may "fill" more memory than there is.
 */
#include "module.h"

#include <linux/atomic.h>
#include <linux/highmem.h>
#include <linux/sched.h>

#define MAX_PIN_BYTES	(64ull << 30)
#define BLOCK_ORDER	4	/* 64 KiB of registers */

static atomic_long_t content_pages;
static unsigned long content_limit;
static struct page *scratch;

int nvsim_pages_init(unsigned long content_mib)
{
	scratch = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!scratch)
		return -ENOMEM;
	content_limit = content_mib ? content_mib << (20 - PAGE_SHIFT) :
			totalram_pages() / 2;
	return 0;
}

void nvsim_pages_exit(void)
{
	WARN_ON(atomic_long_read(&content_pages));
	__free_page(scratch);
}

static struct nvsim_backing *backing_alloc(u64 bytes)
{
	struct nvsim_backing *backing = kzalloc(sizeof(*backing), GFP_KERNEL);

	if (!backing)
		return NULL;
	kref_init(&backing->ref);
	xa_init(&backing->pages);
	backing->bytes = bytes;
	return backing;
}

struct nvsim_backing *nvsim_host_backing_new(u64 bytes,
					     enum nvsim_backing_kind kind)
{
	struct nvsim_backing *backing = backing_alloc(bytes);

	if (!backing || kind == NVSIM_SPARSE)
		return backing;
	backing->block = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_COMP,
				     BLOCK_ORDER);
	if (backing->block)
		return backing;
	kfree(backing);
	return NULL;
}

struct nvsim_backing *nvsim_host_backing_pin(u64 address, u64 bytes)
{
	struct nvsim_backing *backing;
	unsigned long count;
	int got = 0;

	if (!bytes || bytes > MAX_PIN_BYTES || address + bytes < address)
		return NULL;
	count = (offset_in_page(address) + bytes + PAGE_SIZE - 1) >> PAGE_SHIFT;
	backing = backing_alloc(bytes);
	if (!backing)
		return NULL;
	backing->pinned_offset = offset_in_page(address);
	backing->pinned = kvcalloc(count, sizeof(*backing->pinned), GFP_KERNEL);
	if (backing->pinned)
		got = pin_user_pages_fast(address & PAGE_MASK, count,
					  FOLL_WRITE | FOLL_LONGTERM,
					  backing->pinned);
	backing->pinned_count = max(got, 0);
	if (backing->pinned && got == count)
		return backing;
	nvsim_host_backing_put(backing);
	return NULL;
}

void nvsim_host_backing_get(struct nvsim_backing *backing)
{
	kref_get(&backing->ref);
}

static void free_sparse(struct nvsim_backing *backing)
{
	struct page *page;
	unsigned long index;

	xa_for_each(&backing->pages, index, page) {
		__free_page(page);
		atomic_long_dec(&content_pages);
		cond_resched();
	}
	xa_destroy(&backing->pages);
}

static void backing_free(struct kref *ref)
{
	struct nvsim_backing *backing = container_of(ref, struct nvsim_backing, ref);

	free_sparse(backing);
	if (backing->block)
		__free_pages(backing->block, BLOCK_ORDER);
	if (backing->pinned_count)
		unpin_user_pages_dirty_lock(backing->pinned,
					    backing->pinned_count, true);
	kvfree(backing->pinned);
	kfree(backing);
}

void nvsim_host_backing_put(struct nvsim_backing *backing)
{
	kref_put(&backing->ref, backing_free);
}

/* Takes one page of the content limit, or the scratch page. */
static struct page *new_page(void)
{
	struct page *page;

	if (atomic_long_inc_return(&content_pages) <= content_limit) {
		page = alloc_page(GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);
		if (page)
			return page;
	}
	atomic_long_dec(&content_pages);
	return scratch;
}

static void drop_page(struct page *page)
{
	__free_page(page);
	atomic_long_dec(&content_pages);
}

static struct page *sparse_page(struct nvsim_backing *backing, unsigned long index)
{
	struct page *page = xa_load(&backing->pages, index), *old;

	if (page)
		return page;
	page = new_page();
	if (page == scratch)
		return page;
	old = xa_cmpxchg(&backing->pages, index, NULL, page, GFP_KERNEL);
	if (!old)
		return page;
	drop_page(page);
	return xa_is_err(old) ? scratch : old;
}

/**
 * nvsim_page() - One page of a backing.
 * @backing: the backing
 * @index: which, counted from its first byte
 *
 * Context: may sleep; takes only the backing's own lock.
 * Return: the page (no reference is taken), or NULL behind the end.
 */
struct page *nvsim_page(struct nvsim_backing *backing, unsigned long index)
{
	if ((u64)index << PAGE_SHIFT >= backing->bytes)
		return NULL;
	if (backing->block)
		return nth_page(backing->block, index);
	if (backing->pinned)
		return index < backing->pinned_count ? backing->pinned[index] : NULL;
	return sparse_page(backing, index);
}

void *nvsim_host_backing_at(struct nvsim_backing *backing, u64 offset, u64 *left)
{
	u64 at = offset + backing->pinned_offset;
	struct page *page;

	if (offset >= backing->bytes)
		return NULL;
	if (backing->pinned)
		page = backing->pinned[at >> PAGE_SHIFT];
	else
		page = nvsim_page(backing, at >> PAGE_SHIFT);
	*left = min_t(u64, PAGE_SIZE - offset_in_page(at), backing->bytes - offset);
	return page_address(page) + offset_in_page(at);
}
