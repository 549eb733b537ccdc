// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a file of unified memory has mapped. Managed memory moves to the GPU
 * behind the driver's back, so it is refused beyond a small allowance that some
 * contexts need, or charged by its length.
 *
 * Memory for semaphores is announced by a request before it is mapped. Whether
 * the driver took the announcement cannot be known, since the program can
 * change the answer, and the mapping would be managed memory if it did not. So
 * it is charged as well, but needs no allowance.
 */
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include "compat.h"
#include "uvm.h"

static bool charges_managed(void)
{
	return !strcmp(cgpu_managed, "charge");
}

static bool has(const struct cgpu_range *r, u64 base)
{
	return base >= r->base && base - r->base < r->length;
}

/**
 * cgpu_range_refused() - whether nothing is behind an address
 * @f: the file
 * @base: the address
 *
 * Context: process.
 * Return: true for memory that was refused.
 */
bool cgpu_range_refused(struct cgpu_file *f, u64 base)
{
	struct cgpu_range *r;
	bool refused = false;

	mutex_lock(&f->map_lock);
	list_for_each_entry(r, &f->ranges, link)
		if (r->kind == CGPU_RANGE_REFUSED && has(r, base))
			refused = true;
	mutex_unlock(&f->map_lock);
	return refused;
}

/**
 * cgpu_range_note() - remember a range
 * @f: the file; its map_lock is held
 * @base: first address
 * @length: bytes
 * @kind: what it is
 *
 * Context: process.
 * Return: the range, or NULL without memory.
 */
struct cgpu_range *cgpu_range_note(struct cgpu_file *f, u64 base, u64 length,
				   enum cgpu_range_kind kind)
{
	struct cgpu_range *r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);

	lockdep_assert_held(&f->map_lock);
	if (!r)
		return NULL;
	r->base = base;
	r->length = length;
	r->kind = kind;
	list_add(&r->link, &f->ranges);
	return r;
}

/* Managed memory has no GPU of its own: the container's first one pays. */
static int paying_gpu(struct cgpu_file *f)
{
	int minor;

	for (minor = 0; minor < NV_MAX_DEVICES; minor++)
		if (f->node->inst->share[minor])
			return minor;
	return -1;
}

static void give_back(struct cgpu_file *f, struct cgpu_range *r, u64 bytes)
{
	bytes = min(bytes, r->charged);
	cgpu_uncharge_bytes(f->node->inst, paying_gpu(f), bytes);
	r->charged -= bytes;
	if (r->kind == CGPU_RANGE_MANAGED)
		f->managed -= bytes;
}

/**
 * cgpu_range_drop() - forget a range, with what it holds
 * @f: the file; its map_lock is held
 * @r: the range
 *
 * Context: process.
 */
void cgpu_range_drop(struct cgpu_file *f, struct cgpu_range *r)
{
	lockdep_assert_held(&f->map_lock);
	give_back(f, r, r->charged);
	if (r->phys)
		cgpu_phys_release_hold(f->node->inst, r->phys);
	kfree(r->gpus);
	list_del(&r->link);
	kfree_rcu(r, rcu);
}

/**
 * cgpu_range_forget_announced() - no memory for semaphores is to come there
 * @f: the file
 * @base: its first address
 *
 * Context: process.
 */
void cgpu_range_forget_announced(struct cgpu_file *f, u64 base)
{
	struct cgpu_range *r, *next;

	mutex_lock(&f->map_lock);
	list_for_each_entry_safe(r, next, &f->ranges, link)
		if (r->kind == CGPU_RANGE_ANNOUNCED && r->base == base)
			cgpu_range_drop(f, r);
	mutex_unlock(&f->map_lock);
}

/**
 * cgpu_uvm_unmapped() - a piece of a charged mapping is gone
 * @f: the file
 * @r: the mapping's range
 * @bytes: the piece's length; a byte is in one piece only
 *
 * Context: process, mmap_lock held or nobody else has the address space.
 */
void cgpu_uvm_unmapped(struct cgpu_file *f, struct cgpu_range *r, u64 bytes)
{
	mutex_lock(&f->map_lock);
	give_back(f, r, bytes);
	if (!r->charged)
		cgpu_range_drop(f, r);
	mutex_unlock(&f->map_lock);
}

/* ---- mmap ---- */

static bool is_announced(struct cgpu_file *f, u64 base, u64 length)
{
	struct cgpu_range *r;

	list_for_each_entry(r, &f->ranges, link)
		if (r->kind == CGPU_RANGE_ANNOUNCED && r->base == base &&
		    r->length == length)
			return true;
	return false;
}

static void forget_refused(struct cgpu_file *f, u64 base, u64 length)
{
	struct cgpu_range *r, *next;

	list_for_each_entry_safe(r, next, &f->ranges, link)
		if (r->kind == CGPU_RANGE_REFUSED &&
		    r->base < base + length && base < r->base + r->length)
			cgpu_range_drop(f, r);
}

static bool is_allowed(struct cgpu_file *f, u64 length)
{
	u64 most = cgpu_managed_free_mib * (u64)SZ_1M;

	return charges_managed() ||
	       (length <= most && f->managed <= most - length);
}

static int map_nothing(struct cgpu_file *f, struct vm_area_struct *vma)
{
	u64 length = vma->vm_end - vma->vm_start;

	if (!is_allowed(f, length))
		pr_info_ratelimited("%s: %llu bytes of managed memory refused: managed=charge counts it like the rest\n",
				    f->node->inst->id, length);
	cgpu_vm_flags(vma, VM_DONTEXPAND | VM_DONTDUMP, 0);
	vma->vm_ops = &cgpu_refused_vm_ops;
	return cgpu_range_note(f, vma->vm_start, length, CGPU_RANGE_REFUSED) ?
	       0 : -ENOMEM;
}

static int map_charged(struct cgpu_file *f, struct vm_area_struct *vma,
		       enum cgpu_range_kind kind)
{
	u64 length = vma->vm_end - vma->vm_start;
	struct cgpu_range *r = cgpu_range_note(f, vma->vm_start, length, kind);
	int ret;

	if (!r) {
		cgpu_uncharge_bytes(f->node->inst, paying_gpu(f), length);
		return -ENOMEM;
	}
	r->charged = length;
	if (kind == CGPU_RANGE_MANAGED)
		f->managed += length;
	ret = f->node->fops->mmap(f->file, vma);
	if (ret)
		cgpu_range_drop(f, r);
	else
		cgpu_range_wrap(r, vma);
	return ret;
}

static int map_locked(struct cgpu_file *f, struct vm_area_struct *vma)
{
	u64 length = vma->vm_end - vma->vm_start;
	bool announced = is_announced(f, vma->vm_start, length);

	forget_refused(f, vma->vm_start, length);
	if ((announced || is_allowed(f, length)) &&
	    cgpu_charge(f->node->inst, paying_gpu(f), length))
		return map_charged(f, vma, announced ? CGPU_RANGE_POOL :
				   CGPU_RANGE_MANAGED);
	/* Semaphores cannot be missing; that managed memory is, is asked for. */
	return announced ? -ENOMEM : map_nothing(f, vma);
}

/**
 * cgpu_uvm_mmap() - a mapping of nvidia-uvm
 * @f: the file
 * @vma: the mapping
 *
 * Context: process, mmap_lock held for writing.
 * Return: 0 or an errno.
 */
int cgpu_uvm_mmap(struct cgpu_file *f, struct vm_area_struct *vma)
{
	int ret;

	mutex_lock(&f->map_lock);
	ret = map_locked(f, vma);
	mutex_unlock(&f->map_lock);
	return ret;
}

/**
 * cgpu_uvm_release() - the file is closed
 * @f: the file
 *
 * Context: process; nobody else has the file.
 */
void cgpu_uvm_release(struct cgpu_file *f)
{
	struct cgpu_range *r, *next;

	mutex_lock(&f->map_lock);
	list_for_each_entry_safe(r, next, &f->ranges, link)
		cgpu_range_drop(f, r);
	mutex_unlock(&f->map_lock);
}
