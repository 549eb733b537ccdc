// SPDX-License-Identifier: GPL-2.0-only
/* Parameters, and the ladder of init and exit. */
#include "module.h"

#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

static unsigned int branch = 535;
module_param(branch, uint, 0444);
MODULE_PARM_DESC(branch, "driver branch: 418, 450, 460, 470, 535, 550, 570 or 580");

static char *version;
module_param(version, charp, 0444);
MODULE_PARM_DESC(version, "full driver version; the branch's own when not given");

static char *cards[NVSIM_MAX_GPUS] = { "T4" };
static unsigned int card_count = 1;
module_param_array(cards, charp, &card_count, 0444);
MODULE_PARM_DESC(cards, "cards, one a GPU: T4, V100, A10, A100, P4, P100, H100");

static unsigned int total_mib[NVSIM_MAX_GPUS];
static unsigned int mib_count;
module_param_array(total_mib, uint, &mib_count, 0444);
MODULE_PARM_DESC(total_mib, "MiB of memory, one a GPU (the last repeats); 0 = the card's own");

static unsigned long long kernel_ns;
module_param(kernel_ns, ullong, 0444);
MODULE_PARM_DESC(kernel_ns, "ns that a kernel takes which does not tell its own duration");

static unsigned long content_mib;
module_param(content_mib, ulong, 0444);
MODULE_PARM_DESC(content_mib, "most MiB that contents of memory may take; 0 = half of the RAM");

static DEFINE_MUTEX(lock);

void nvsim_lock(void)
{
	mutex_lock(&lock);
}

void nvsim_unlock(void)
{
	mutex_unlock(&lock);
}

u64 nvsim_host_now(void)
{
	return ktime_get_real_ns();
}

int nvsim_host_copy_in(void *to, u64 from, size_t bytes)
{
	return copy_from_user(to, u64_to_user_ptr(from), bytes) ? -EFAULT : 0;
}

int nvsim_host_copy_out(u64 to, const void *from, size_t bytes)
{
	return copy_to_user(u64_to_user_ptr(to), from, bytes) ? -EFAULT : 0;
}

void *nvsim_host_task_get(void)
{
	return get_pid(task_tgid(current));
}

void nvsim_host_task_put(void *task)
{
	put_pid(task);
}

u32 nvsim_host_task_number(void *task)
{
	return pid_nr_ns(task, task_active_pid_ns(current));
}

u32 nvsim_host_task_global(void *task)
{
	return pid_nr(task);
}

void nvsim_host_log(const char *format, ...)
{
	static DEFINE_RATELIMIT_STATE(limit, 5 * HZ, 50);
	struct va_format text;
	va_list arguments;

	if (!__ratelimit(&limit))
		return;
	va_start(arguments, format);
	text.fmt = format;
	text.va = &arguments;
	pr_info("nvsim: %pV", &text);
	va_end(arguments);
}

static int __init nvsim_init(void)
{
	int error;

	error = nvsim_setup(branch, version, (const char *const *)cards,
			    card_count, total_mib, mib_count);
	if (error)
		return error;
	nvsim.kernel_ns = kernel_ns;
	error = nvsim_pages_init(content_mib);
	if (error)
		return error;
	error = nvsim_thread_init();
	if (error)
		goto undo_pages;
	error = nvsim_procfs_init();
	if (error)
		goto undo_thread;
	error = nvsim_uvmdev_init();
	if (error)
		goto undo_procfs;
	error = nvsim_chrdev_init();
	if (error)
		goto undo_uvmdev;
	return 0;

undo_uvmdev:
	nvsim_uvmdev_exit();
undo_procfs:
	nvsim_procfs_exit();
undo_thread:
	nvsim_thread_exit();
undo_pages:
	nvsim_pages_exit();
	return error;
}

static void __exit nvsim_exit(void)
{
	nvsim_chrdev_exit();
	nvsim_uvmdev_exit();
	nvsim_procfs_exit();
	nvsim_thread_exit();
	nvsim_teardown();
	nvsim_pages_exit();
}

module_init(nvsim_init);
module_exit(nvsim_exit);
MODULE_DESCRIPTION("NVIDIA's driver, played without hardware");
MODULE_LICENSE("GPL");
