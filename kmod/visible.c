// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whom /proc/cgpu_km tells of an instance. A container sees the whole of /proc
 * that does not belong to processes, and its neighbours are none of its business.
 */
#include <linux/capability.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/user_namespace.h>
#include "procfs.h"

static bool sees_all(void)
{
	return task_active_pid_ns(current) == &init_pid_ns ||
	       ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN);
}

/**
 * cgpu_inst_visible() - whether the current task may see an instance
 * @inst: the instance
 *
 * The host sees all, and so does who may change it. A container sees an
 * instance while one of its processes has a device of it open.
 *
 * Context: process.
 * Return: true if it may.
 */
bool cgpu_inst_visible(struct cgpu_inst *inst)
{
	struct pid_namespace *ns = task_active_pid_ns(current);
	struct cgpu_file *f;
	bool own = false;

	if (sees_all())
		return true;
	mutex_lock(&inst->lock);
	list_for_each_entry(f, &inst->files, link)
		own |= ns_of_pid(f->pid) == ns;
	mutex_unlock(&inst->lock);
	return own;
}
