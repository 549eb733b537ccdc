/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The seam between the front (cgpu_km.ko) and a core (cgpu_core_VERSION.ko).
 *
 * The front has everything whose address a live file, mapping, mount or thread
 * can hold, and all state. A core has the rules, as functions on that state;
 * it keeps none of its own. So a core can be changed under running containers:
 * calls in flight end in the old one, new calls begin in the new one, nobody
 * waits. Both work on the same objects under the same locks, which is why their
 * layouts must be the same; a core with another layout is refused.
 */
#ifndef CGPU_CORE_H
#define CGPU_CORE_H

#include "cgpu.h"

/**
 * struct cgpu_layout - something that both sides must agree on
 * @name: what
 * @is: its number or its bytes
 */
struct cgpu_layout {
	const char *name;
	u32 is;
};

/**
 * struct cgpu_core - a core, as it registers with the front
 * @layout: what it was built with; the first members, so that a front can
 *	    tell of a core whose other members it does not know
 * @layouts: how many
 * @name: of its module
 * @version: its version
 * @owner: its module
 * @link: in the front's list
 *
 * The others are the functions of the same name, which their own files
 * describe; the front's of that name (calls.c) leads to the core that runs.
 */
struct cgpu_core {
	const struct cgpu_layout *layout;
	u32 layouts;
	const char *name;
	const char *version;
	struct module *owner;
	struct list_head link;
	bool (*passes)(struct cgpu_file *f, u32 cmd);
	long (*dispatch)(struct cgpu_file *f, u32 cmd, void __user *arg);
	long (*uvm_ioctl)(struct cgpu_file *f, u32 cmd, void __user *arg);
	int (*uvm_mmap)(struct cgpu_file *f, struct vm_area_struct *vma);
	void (*uvm_unmapped)(struct cgpu_file *f, struct cgpu_range *r,
			     u64 bytes);
	void (*uvm_release)(struct cgpu_file *f);
	void (*untrack_file)(struct cgpu_file *f);
	void (*objs_init)(struct cgpu_objs *t);
	u64 (*objs_bytes)(struct cgpu_objs *t, int pid, int gpu);
	int (*set_limit)(struct cgpu_account *a, u64 limit);
	u64 (*free)(const struct cgpu_account *a);
	void (*sched_configure)(struct cgpu_sched *s,
				const struct cgpu_sched_conf *conf);
	int (*sched_add)(struct cgpu_sched *s, u32 weight, bool highprio,
			 u64 now);
	void (*sched_del)(struct cgpu_sched *s, int ent);
	void (*sched_set_weight)(struct cgpu_sched *s, int ent, u32 weight,
				 bool highprio);
	void (*sched_set_busy)(struct cgpu_sched *s, int ent, bool busy,
			       u64 now);
	struct cgpu_turn (*sched_next)(struct cgpu_sched *s, u64 now, u64 gone);
	void (*sched_skip)(struct cgpu_sched *s, s64 ns);
	void (*sched_park)(struct cgpu_sched *s);
};

/* cores.c: which core runs */
int cgpu_core_register(struct cgpu_core *core);
void cgpu_core_unregister(struct cgpu_core *core);
int cgpu_core_switch(const char *name);
int cgpu_core_pin(const char *id);
void cgpu_core_unpin(void);
void cgpu_core_show_version(struct seq_file *m);
int cgpu_cores_show(struct seq_file *m, void *unused);
const struct cgpu_core *cgpu_core_enter(int *section);
void cgpu_core_leave(int section);

#endif
