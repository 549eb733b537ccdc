// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work reaches a GPU through a mapped page, the doorbell. Its mapping is taken
 * away at once and comes back by a fault, which waits for the turn. Closing a
 * gate is a flip under a rw_semaphore and then an unmapping, so that no page
 * can come back after it.
 */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/refcount.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "cgpu.h"
#include "compat.h"

/**
 * struct doorbell - one mapping of a doorbell, and its copies after a fork
 * @ops: what the mappings' vm_ops point to
 * @orig: the driver's operations
 * @link: in gate->maps
 * @share: whose turn it needs; holds a reference of the instance
 * @mapping: the open file's pages, for unmapping
 * @vmas: mappings
 * @rcu: frees it
 * @pages: how many
 * @pfns: what they are, since the driver may have no fault handler
 */
struct doorbell {
	struct vm_operations_struct ops;
	const struct vm_operations_struct *orig;
	struct list_head link;
	struct cgpu_share *share;
	struct address_space *mapping;
	refcount_t vmas;
	struct rcu_head rcu;
	unsigned long pages;
	unsigned long pfns[];
};

static struct doorbell *doorbell_of(struct vm_area_struct *vma)
{
	return container_of(vma->vm_ops, struct doorbell, ops);
}

static void doorbell_open(struct vm_area_struct *vma)
{
	struct doorbell *d = doorbell_of(vma);

	refcount_inc(&d->vmas);
	if (d->orig && d->orig->open)
		d->orig->open(vma);
}

static void doorbell_close(struct vm_area_struct *vma)
{
	struct doorbell *d = doorbell_of(vma);
	struct cgpu_gate *gate = &d->share->gate;

	if (d->orig && d->orig->close)
		d->orig->close(vma);
	if (!refcount_dec_and_test(&d->vmas))
		return;
	mutex_lock(&gate->maps_lock);
	list_del(&d->link);
	mutex_unlock(&gate->maps_lock);
	cgpu_inst_put(d->share->inst);
	kfree_rcu(d, rcu);
}

static int refuse_mprotect(struct vm_area_struct *vma, unsigned long start,
			   unsigned long end, unsigned long flags)
{
	return flags & VM_EXEC ? -EACCES : 0;
}

static vm_fault_t ring(struct vm_fault *vmf, struct doorbell *d)
{
	struct cgpu_gate *gate = &d->share->gate;

	if (vmf->pgoff >= d->pages)
		return VM_FAULT_SIGBUS;
	if (!READ_ONCE(gate->touched))
		WRITE_ONCE(gate->touched_ns, ktime_get_ns());
	smp_store_release(&gate->touched, true);	/* after its time */
	return vmf_insert_pfn_prot(vmf->vma, vmf->address, d->pfns[vmf->pgoff],
				   vmf->vma->vm_page_prot);
}

static bool may_go(struct cgpu_share *share)
{
	return READ_ONCE(share->gate.open) || READ_ONCE(share->inst->poisoned);
}

/*
 * The mapping may vanish once the lock is dropped; the instance may not. A
 * system call that stores here is retried after a signal unless it is fatal,
 * so that it must not end for less.
 */
static void wait_for_turn(struct cgpu_share *share, unsigned int flags)
{
	struct cgpu_gate *gate = &share->gate;

	atomic_inc(&gate->waiting);
	cgpu_slices_kick(share->gpu);
	if (flags & FAULT_FLAG_INTERRUPTIBLE && flags & FAULT_FLAG_USER)
		wait_event_interruptible(gate->wq, may_go(share));
	else
		wait_event_killable(gate->wq, may_go(share));
	atomic_dec(&gate->waiting);
}

static vm_fault_t doorbell_fault(struct vm_fault *vmf)
{
	struct doorbell *d = doorbell_of(vmf->vma);
	struct cgpu_share *share = d->share;
	struct cgpu_gate *gate = &share->gate;
	unsigned int flags = vmf->flags;
	vm_fault_t ret;

	if (READ_ONCE(share->inst->poisoned))
		return VM_FAULT_SIGBUS;
	down_read(&gate->sem);
	if (gate->open) {
		ret = ring(vmf, d);
		up_read(&gate->sem);
		return ret;
	}
	up_read(&gate->sem);
	if (!(flags & FAULT_FLAG_ALLOW_RETRY))
		return VM_FAULT_SIGBUS;
	if (flags & FAULT_FLAG_RETRY_NOWAIT)
		return VM_FAULT_RETRY;
	cgpu_inst_get(share->inst);
	cgpu_release_fault_lock(vmf);
	wait_for_turn(share, flags);
	cgpu_inst_put(share->inst);
	return VM_FAULT_RETRY;
}

static int save_pages(struct doorbell *d, struct vm_area_struct *vma)
{
	unsigned long i;
	int ret = 0;

	for (i = 0; !ret && i < d->pages; i++)
		ret = cgpu_follow_pfn(vma, vma->vm_start + (i << PAGE_SHIFT),
				      &d->pfns[i]);
	return ret;
}

static struct doorbell *new_doorbell(struct cgpu_file *f,
				     struct cgpu_share *share,
				     struct vm_area_struct *vma)
{
	unsigned long pages = vma_pages(vma);
	struct doorbell *d = kzalloc(struct_size(d, pfns, pages), GFP_KERNEL_ACCOUNT);

	if (!d)
		return NULL;
	d->orig = vma->vm_ops;
	if (d->orig)
		d->ops = *d->orig;
	d->ops.open = doorbell_open;
	d->ops.close = doorbell_close;
	d->ops.fault = doorbell_fault;
	d->ops.mprotect = refuse_mprotect;
	d->ops.access = NULL;
	d->share = share;
	d->mapping = f->file->f_mapping;
	d->pages = pages;
	refcount_set(&d->vmas, 1);
	return d;
}

/**
 * cgpu_gate_wrap() - put a fresh mapping of a doorbell behind the gate
 * @f: the file
 * @share: whose turn it needs
 * @vma: the mapping, as the driver left it
 *
 * It starts without pages, for two reasons: the gate may be closed; and an
 * unmapping that met pages of remap_pfn_range() in the child of a fork would
 * warn about memory types.
 *
 * Context: process, mmap_lock held for writing.
 * Return: 0 or an errno; the caller then unmaps.
 */
int cgpu_gate_wrap(struct cgpu_file *f, struct cgpu_share *share,
		   struct vm_area_struct *vma)
{
	struct doorbell *d = new_doorbell(f, share, vma);
	int ret;

	if (!d)
		return -ENOMEM;
	ret = save_pages(d, vma);
	if (ret) {
		pr_err_ratelimited("%s: the doorbell at %#lx has no pages: %d\n",
				   share->inst->id, vma->vm_start, ret);
		kfree(d);
		return ret;
	}
	cgpu_inst_get(share->inst);
	vma->vm_ops = &d->ops;
	mutex_lock(&share->gate.maps_lock);
	list_add(&d->link, &share->gate.maps);
	mutex_unlock(&share->gate.maps_lock);
	zap_vma_ptes(vma, vma->vm_start, vma->vm_end - vma->vm_start);
	return 0;
}

static void unmap_all(struct cgpu_gate *gate)
{
	struct doorbell *d;

	mutex_lock(&gate->maps_lock);
	list_for_each_entry(d, &gate->maps, link)
		unmap_mapping_range(d->mapping, 0, 0, 1);
	mutex_unlock(&gate->maps_lock);
}

/**
 * cgpu_gate_set() - open or close the doorbells of a share
 * @share: the share
 * @open: whether they may be rung
 *
 * Context: process; gpu->lock is held.
 */
void cgpu_gate_set(struct cgpu_share *share, bool open)
{
	struct cgpu_gate *gate = &share->gate;

	lockdep_assert_held(&share->gpu->lock);
	down_write(&gate->sem);
	WRITE_ONCE(gate->open, open);
	up_write(&gate->sem);
	if (open) {
		wake_up_all(&gate->wq);
		return;
	}
	if (!READ_ONCE(gate->touched))
		return;
	WRITE_ONCE(gate->touched, false);
	unmap_all(gate);
}

/**
 * cgpu_gate_init() - a closed gate without doorbells
 * @gate: the gate
 *
 * Context: any.
 */
void cgpu_gate_init(struct cgpu_gate *gate)
{
	init_rwsem(&gate->sem);
	init_waitqueue_head(&gate->wq);
	mutex_init(&gate->maps_lock);
	INIT_LIST_HEAD(&gate->maps);
}
