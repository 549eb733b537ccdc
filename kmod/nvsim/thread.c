// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine's thread. Doorbells are stores to a page and wake nobody, so while
 * channels are open it looks for them: often when there was work, seldom when
 * there was none for a while. Without channels it sleeps.
 */
#include "module.h"

#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/sched.h>

#define RUNNING_NS	((u64)(2 * NSEC_PER_MSEC))

struct pace {
	u64 until_ns;	/* without work for less than this: */
	u64 rest_ns;
};

static const struct pace paces[] = {
	{ 5 * NSEC_PER_MSEC, 50 * NSEC_PER_USEC },
	{ 200 * NSEC_PER_MSEC, 500 * NSEC_PER_USEC },
	{ 2 * NSEC_PER_SEC, 2 * NSEC_PER_MSEC },
	{ U64_MAX, 20 * NSEC_PER_MSEC },
};

static struct task_struct *thread;
static DECLARE_WAIT_QUEUE_HEAD(wait);
static bool kicked;

void nvsim_host_kick(void)
{
	WRITE_ONCE(kicked, true);
	wake_up_interruptible(&wait);
}

/* A kernel that runs is followed closely, so that its time is told in /proc. */
static u64 period(u64 quiet_ns, bool runs)
{
	const struct pace *pace = paces;

	while (quiet_ns >= pace->until_ns)
		pace++;
	return runs ? min(pace->rest_ns, RUNNING_NS) : pace->rest_ns;
}

static void rest(u64 next, u64 quiet_ns)
{
	u64 now = nvsim_host_now(), ns = period(quiet_ns, next != ~0ull);
	ktime_t time;

	if (!next || next <= now) {
		cond_resched();
		return;
	}
	time = ns_to_ktime(min(next - now, ns));
	set_current_state(TASK_INTERRUPTIBLE);
	schedule_hrtimeout_range(&time, ns / 4, HRTIMER_MODE_REL);
}

static int engine(void *unused)
{
	u64 last = 0, since = nvsim_host_now();

	while (!kthread_should_stop()) {
		u64 next, progress;
		bool open;

		WRITE_ONCE(kicked, false);
		nvsim_lock();
		next = nvsim_engine_run();
		progress = nvsim.progress;
		open = nvsim_engine_open();
		nvsim_unlock();
		if (progress != last)
			since = nvsim_host_now();
		last = progress;
		if (open)
			rest(next, nvsim_host_now() - since);
		else
			wait_event_interruptible(wait, READ_ONCE(kicked) ||
						 kthread_should_stop());
	}
	return 0;
}

int nvsim_thread_init(void)
{
	thread = kthread_run(engine, NULL, "nvsim");
	return PTR_ERR_OR_ZERO(thread);
}

void nvsim_thread_exit(void)
{
	kthread_stop(thread);
}
