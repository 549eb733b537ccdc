// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings of unified memory that are charged. Memory of this kind is there for
 * as long as it is mapped, whatever requests say, so the charge follows the
 * mapping: each piece that goes gives its bytes back.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include "cgpu.h"
#include "compat.h"

static struct cgpu_range *range_of(const struct vm_area_struct *vma)
{
	return container_of(vma->vm_ops, struct cgpu_range, ops);
}

/*
 * The driver maps nothing that is elsewhere than its offset says, and nothing
 * may move. So what is elsewhere is the copy that a refused mremap() has made
 * and takes back; neither the driver nor the books hear of it.
 */
static bool is_in_place(const struct vm_area_struct *vma)
{
	return vma->vm_pgoff == vma->vm_start >> PAGE_SHIFT;
}

static void piece_open(struct vm_area_struct *vma)
{
	const struct vm_operations_struct *orig = range_of(vma)->orig;

	if (is_in_place(vma) && orig && orig->open)
		orig->open(vma);
}

static void piece_close(struct vm_area_struct *vma)
{
	struct cgpu_range *r = range_of(vma);

	if (!is_in_place(vma))
		return;
	if (r->orig && r->orig->close)
		r->orig->close(vma);
	cgpu_uvm_unmapped(cgpu_file_of(vma->vm_file), r,
			  vma->vm_end - vma->vm_start);
}

static int refuse_mremap(struct vm_area_struct *vma)
{
	return -EPERM;
}

/**
 * cgpu_range_wrap() - let a fresh mapping carry its charge
 * @r: the charged range
 * @vma: the mapping, as the driver left it
 *
 * Context: process, mmap_lock held for writing.
 */
void cgpu_range_wrap(struct cgpu_range *r, struct vm_area_struct *vma)
{
	r->orig = vma->vm_ops;
	if (r->orig)
		r->ops = *r->orig;
	r->ops.open = piece_open;
	r->ops.close = piece_close;
	r->ops.mremap = refuse_mremap;
	cgpu_vm_flags(vma, VM_DONTCOPY | VM_DONTEXPAND, 0);
	vma->vm_ops = &r->ops;
}
EXPORT_SYMBOL_GPL(cgpu_range_wrap);
