/* SPDX-License-Identifier: GPL-2.0-only */
/* Files of /proc/cgpu_km that show a value and take a number. */
#ifndef CGPU_PROCFS_H
#define CGPU_PROCFS_H

#include "cgpu.h"
#include "core.h"

/**
 * struct cgpu_attr - one file
 * @name: its name
 * @show: what it shows
 * @store: what a number written to it does, NULL = read only
 */
struct cgpu_attr {
	const char *name;
	void (*show)(struct seq_file *m, void *owner);
	int (*store)(void *owner, u64 value);
};

struct proc_dir_entry *cgpu_procfs_root(void);
int cgpu_attrs_add(struct proc_dir_entry *dir, const struct cgpu_attr *attrs,
		   int n, void *owner, struct cgpu_inst *inst);
void cgpu_attrs_free(void *owner);
bool cgpu_inst_visible(struct cgpu_inst *inst);
int cgpu_refuse(int ret, const char *file, u64 value, const char *why);

#endif
