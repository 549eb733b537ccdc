// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls from the front into the core that runs. Each is documented where the
 * core defines the function of the same name.
 */
#include "core.h"

long cgpu_dispatch(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);
	long ret = core->dispatch(f, cmd, arg);

	cgpu_core_leave(section);
	return ret;
}

long cgpu_uvm_ioctl(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);
	long ret = core->uvm_ioctl(f, cmd, arg);

	cgpu_core_leave(section);
	return ret;
}

int cgpu_uvm_mmap(struct cgpu_file *f, struct vm_area_struct *vma)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);
	int ret = core->uvm_mmap(f, vma);

	cgpu_core_leave(section);
	return ret;
}

void cgpu_uvm_unmapped(struct cgpu_file *f, struct cgpu_range *r, u64 bytes)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);

	core->uvm_unmapped(f, r, bytes);
	cgpu_core_leave(section);
}

void cgpu_uvm_release(struct cgpu_file *f)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);

	core->uvm_release(f);
	cgpu_core_leave(section);
}

void cgpu_untrack_file(struct cgpu_file *f)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);

	core->untrack_file(f);
	cgpu_core_leave(section);
}

void cgpu_objs_init(struct cgpu_objs *t)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);

	core->objs_init(t);
	cgpu_core_leave(section);
}

u64 cgpu_objs_bytes(struct cgpu_objs *t, int pid, int gpu)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);
	u64 ret = core->objs_bytes(t, pid, gpu);

	cgpu_core_leave(section);
	return ret;
}

int cgpu_set_limit(struct cgpu_account *a, u64 limit)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);
	int ret = core->set_limit(a, limit);

	cgpu_core_leave(section);
	return ret;
}

u64 cgpu_free(const struct cgpu_account *a)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);
	u64 ret = core->free(a);

	cgpu_core_leave(section);
	return ret;
}

void cgpu_sched_configure(struct cgpu_sched *s,
			  const struct cgpu_sched_conf *conf)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);

	core->sched_configure(s, conf);
	cgpu_core_leave(section);
}

int cgpu_sched_add(struct cgpu_sched *s, u32 weight, bool highprio, u64 now)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);
	int ret = core->sched_add(s, weight, highprio, now);

	cgpu_core_leave(section);
	return ret;
}

void cgpu_sched_del(struct cgpu_sched *s, int ent)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);

	core->sched_del(s, ent);
	cgpu_core_leave(section);
}

void cgpu_sched_set_weight(struct cgpu_sched *s, int ent, u32 weight,
			   bool highprio)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);

	core->sched_set_weight(s, ent, weight, highprio);
	cgpu_core_leave(section);
}

void cgpu_sched_set_busy(struct cgpu_sched *s, int ent, bool busy, u64 now)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);

	core->sched_set_busy(s, ent, busy, now);
	cgpu_core_leave(section);
}

struct cgpu_turn cgpu_sched_next(struct cgpu_sched *s, u64 now, u64 gone)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);
	struct cgpu_turn ret = core->sched_next(s, now, gone);

	cgpu_core_leave(section);
	return ret;
}

void cgpu_sched_skip(struct cgpu_sched *s, s64 ns)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);

	core->sched_skip(s, ns);
	cgpu_core_leave(section);
}

void cgpu_sched_park(struct cgpu_sched *s)
{
	int section;
	const struct cgpu_core *core = cgpu_core_enter(&section);

	core->sched_park(s);
	cgpu_core_leave(section);
}
