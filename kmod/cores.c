// SPDX-License-Identifier: GPL-2.0-only
/* The cores that are loaded, and the one that runs. */
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/srcu.h>
#include "layout.h"

/*
 * One change at a time; outside the registry's lock, which files of a GPU's
 * folder take. The list and the running core change under both.
 */
static DEFINE_MUTEX(change_lock);
static LIST_HEAD(cores);
static struct cgpu_core __rcu *running;
static bool pinned;		/* under the registry's lock */
static char last_error[160];	/* under change_lock */

/* Calls into a core: short ones under RCU, those that sleep in here. */
DEFINE_STATIC_SRCU(calls);

/* The running core, for those who may change it. */
static struct cgpu_core *get_running(void)
{
	return rcu_dereference_protected(running,
					 lockdep_is_held(&change_lock) ||
					 lockdep_is_held(&cgpu_registry_lock));
}

/**
 * cgpu_core_enter() - begin a call into the core that runs
 * @section: gets what cgpu_core_leave() wants
 *
 * Context: process; there is a core, because one stays while instances exist.
 * Return: the core, which stays until cgpu_core_leave().
 */
const struct cgpu_core *cgpu_core_enter(int *section)
	__acquires(&calls)
{
	*section = srcu_read_lock(&calls);
	return srcu_dereference(running, &calls);
}

/**
 * cgpu_core_leave() - the call is over
 * @section: from cgpu_core_enter()
 *
 * Context: process.
 */
void cgpu_core_leave(int section)
	__releases(&calls)
{
	srcu_read_unlock(&calls, section);
}

/**
 * cgpu_passes() - whether a call goes to the driver as it is
 * @f: the file
 * @cmd: the ioctl
 *
 * Context: process.
 * Return: true if the core has nothing to do with it.
 */
bool cgpu_passes(struct cgpu_file *f, u32 cmd)
{
	bool passes;

	rcu_read_lock();
	passes = rcu_dereference(running)->passes(f, cmd);
	rcu_read_unlock();
	return passes;
}

static void set_running(struct cgpu_core *core)
{
	mutex_lock(&cgpu_registry_lock);
	rcu_assign_pointer(running, core);
	mutex_unlock(&cgpu_registry_lock);
}

/* Nobody is in a core that ran before any more. */
static void drain(void)
{
	synchronize_srcu(&calls);
	synchronize_rcu();
}

/* ---- what a core needs, and is needed for ---- */

/**
 * cgpu_core_pin() - an instance comes: the core must stay
 * @id: the instance, for the log
 *
 * Context: process; the registry's lock is held.
 * Return: 0, or -ENODEV without a core.
 */
int cgpu_core_pin(const char *id)
{
	struct cgpu_core *core = get_running();

	lockdep_assert_held(&cgpu_registry_lock);
	if (!pinned)
		pinned = core && try_module_get(core->owner);
	if (pinned)
		return 0;
	pr_err("create %s: no core is loaded; load the cgpu_core module of version %s\n",
	       id, CGPU_VERSION);
	return -ENODEV;
}

/**
 * cgpu_core_unpin() - an instance has gone, with its files: was it the last?
 *
 * Context: process; the registry's lock is held.
 */
void cgpu_core_unpin(void)
{
	lockdep_assert_held(&cgpu_registry_lock);
	if (!pinned || !list_empty(&cgpu_insts))
		return;
	pinned = false;
	module_put(get_running()->owner);
}

static void stop_gpus(void)
{
	int minor;

	for (minor = 0; minor < NV_MAX_DEVICES; minor++) {
		if (!cgpu_gpus[minor])
			continue;
		cgpu_procfs_del_gpu(cgpu_gpus[minor]);
		cgpu_slices_stop(cgpu_gpus[minor]);
	}
}

static int start_gpus(void)
{
	int minor, ret = 0;

	for (minor = 0; !ret && minor < NV_MAX_DEVICES; minor++) {
		if (!cgpu_gpus[minor])
			continue;
		ret = cgpu_slices_start(cgpu_gpus[minor]);
		if (!ret)
			ret = cgpu_procfs_add_gpu(cgpu_gpus[minor]);
	}
	if (ret)
		stop_gpus();
	return ret;
}

/* ---- coming and going ---- */

static int refuse_layout(const struct cgpu_core *core, const char *what,
			 u32 theirs, u32 ours)
{
	snprintf(last_error, sizeof(last_error),
		 "%s has %s %u, this front %u: unload both and load those that belong together",
		 core->name, what, theirs, ours);
	pr_err("%s\n", last_error);
	return -EPROTO;
}

static int check_layout(const struct cgpu_core *core)
{
	u32 i, n = ARRAY_SIZE(cgpu_layouts);

	for (i = 0; i < min(core->layouts, n); i++) {
		const struct cgpu_layout *theirs = &core->layout[i];
		const struct cgpu_layout *ours = &cgpu_layouts[i];

		if (strcmp(theirs->name, ours->name) || theirs->is != ours->is)
			return refuse_layout(core, theirs->name, theirs->is,
					     ours->is);
	}
	if (core->layouts != n)
		return refuse_layout(core, "structures", core->layouts, n);
	return 0;
}

static int enter_core(struct cgpu_core *core)
{
	int ret;

	ret = check_layout(core);
	if (ret)
		return ret;
	if (!get_running()) {
		set_running(core);
		ret = start_gpus();
		if (ret) {
			set_running(NULL);
			drain();
			return ret;
		}
		pr_info("core %s runs\n", core->name);
	}
	list_add_tail(&core->link, &cores);
	return 0;
}

/**
 * cgpu_core_register() - a core is loaded; it runs if it is the first
 * @core: the core
 *
 * Context: its module_init.
 * Return: 0, -EPROTO for another layout, or an errno.
 */
int cgpu_core_register(struct cgpu_core *core)
{
	int ret;

	mutex_lock(&change_lock);
	ret = enter_core(core);
	mutex_unlock(&change_lock);
	return ret;
}
EXPORT_SYMBOL_GPL(cgpu_core_register);

/**
 * cgpu_core_unregister() - a core goes; if it runs, there is no instance
 * @core: the core
 *
 * Context: its module_exit.
 */
void cgpu_core_unregister(struct cgpu_core *core)
{
	mutex_lock(&change_lock);
	list_del(&core->link);
	if (get_running() == core) {
		stop_gpus();
		set_running(NULL);
	}
	drain();
	mutex_unlock(&change_lock);
}
EXPORT_SYMBOL_GPL(cgpu_core_unregister);

/* ---- hot upgrade ---- */

static struct cgpu_core *find_core(const char *name)
{
	struct cgpu_core *core;

	list_for_each_entry(core, &cores, link)
		if (!strcmp(core->name, name))
			return core;
	return NULL;
}

/* Moves the instances' hold on the core, and what new calls use. */
static int move_to(struct cgpu_core *core)
{
	struct cgpu_core *old = get_running();
	bool held;

	if (!try_module_get(core->owner))
		return -ENOENT;
	mutex_lock(&cgpu_registry_lock);
	held = pinned;
	rcu_assign_pointer(running, core);
	mutex_unlock(&cgpu_registry_lock);
	drain();
	module_put(held ? old->owner : core->owner);
	pr_info("core %s runs instead of %s\n", core->name, old->name);
	return 0;
}

static int switch_to(const char *name)
{
	struct cgpu_core *core = find_core(name);
	int ret = -ENOENT;

	if (core && core == get_running())
		return 0;
	if (core)
		ret = move_to(core);
	if (!ret) {
		last_error[0] = 0;
		return 0;
	}
	snprintf(last_error, sizeof(last_error),
		 "no core named '%.64s' is loaded", name);
	pr_err("upgrade: %s\n", last_error);
	return ret;
}

/**
 * cgpu_core_switch() - hot upgrade: let another core run
 * @name: of its module
 *
 * Returns when nobody is in the old one any more.
 *
 * Context: process.
 * Return: 0, or -ENOENT.
 */
int cgpu_core_switch(const char *name)
{
	int ret;

	mutex_lock(&change_lock);
	ret = switch_to(name);
	mutex_unlock(&change_lock);
	return ret;
}

/**
 * cgpu_core_show_version() - what "version" shows
 * @m: where
 *
 * Context: process.
 */
void cgpu_core_show_version(struct seq_file *m)
{
	const struct cgpu_core *core;

	mutex_lock(&change_lock);
	core = get_running();
	seq_printf(m, "%s\n", core ? core->version : "none");
	mutex_unlock(&change_lock);
}

/**
 * cgpu_cores_show() - what "upgrade" shows
 * @m: where
 * @unused: nothing
 *
 * Context: process.
 * Return: 0.
 */
int cgpu_cores_show(struct seq_file *m, void *unused)
{
	const struct cgpu_core *core, *now;

	mutex_lock(&change_lock);
	now = get_running();
	seq_printf(m, "core: %s\nstate: %s\nloaded:", now ? now->name : "none",
		   now ? "running" : "no core");
	list_for_each_entry(core, &cores, link)
		seq_printf(m, " %s", core->name);
	seq_printf(m, "\nerror: %s\n", *last_error ? last_error : "none");
	mutex_unlock(&change_lock);
	return 0;
}
