/* SPDX-License-Identifier: GPL-2.0-only */
/* Unified memory within the core: uvm.c, managed.c, external.c. */
#ifndef CGPU_UVM_H
#define CGPU_UVM_H

#include "cgpu.h"

/* managed.c: addresses that a file knows about, and what is mapped there */
struct cgpu_range *cgpu_range_note(struct cgpu_file *f, u64 base, u64 length,
				   enum cgpu_range_kind kind);
void cgpu_range_drop(struct cgpu_file *f, struct cgpu_range *r);
bool cgpu_range_refused(struct cgpu_file *f, u64 base);
void cgpu_range_forget_announced(struct cgpu_file *f, u64 base);

/* external.c: requests that name the driver's objects, or end what they made */
long cgpu_uvm_map_external(struct cgpu_file *f, u32 cmd, void __user *arg);
long cgpu_uvm_unmap_external(struct cgpu_file *f, u32 cmd, void __user *arg);
long cgpu_uvm_free(struct cgpu_file *f, u32 cmd, void __user *arg);
long cgpu_uvm_register_space(struct cgpu_file *f, u32 cmd, void __user *arg);
long cgpu_uvm_register_channel(struct cgpu_file *f, u32 cmd, void __user *arg);

#endif
