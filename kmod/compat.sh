#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# compat.sh INCLUDE_FOLDER...: says which of the kernel's interfaces its headers have, as macros for compat.h.
has() {
	name=$1 file=$2 pattern=$3
	for folder in $folders; do
		[ -r "$folder/$file" ] && grep -Eq "$pattern" "$folder/$file" && echo "#define CGPU_HAS_$name" && return
	done
}
folders="$*"
echo "/* SPDX-License-Identifier: GPL-2.0-only */"
has IDMAP linux/fs.h 'int \(\*getattr\) ?\(struct mnt_idmap'
has FILLATTR_MASK linux/fs.h 'void generic_fillattr\(struct mnt_idmap \*, u32'
has INIT_TS linux/fs.h 'simple_inode_init_ts'
has FAULT_LOCK linux/mm.h 'void release_fault_lock\('
has FOLLOW_PFNMAP linux/mm.h 'follow_pfnmap_start'
has VM_FLAGS_MOD linux/mm.h 'void vm_flags_mod\('
has PDE_DATA linux/proc_fs.h '[^_A-Za-z]pde_data\('
has VMA_MPROTECT linux/mm.h '\(\*mprotect\)'
exit 0
