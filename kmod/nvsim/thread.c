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

#define BUSY_NS		(50 * NSEC_PER_USEC)
#define QUIET_NS	(500 * NSEC_PER_USEC)
#define IDLE_NS		(2 * NSEC_PER_MSEC)
#define QUIET_AFTER_NS	(5 * NSEC_PER_MSEC)
#define IDLE_AFTER_NS	(200 * NSEC_PER_MSEC)

static struct task_struct *thread;
static DECLARE_WAIT_QUEUE_HEAD(wait);
static bool kicked;

void nvsim_host_kick(void)
{
	WRITE_ONCE(kicked, true);
	wake_up_interruptible(&wait);
}

static u64 period(u64 quiet_ns)
{
	if (quiet_ns < QUIET_AFTER_NS)
		return BUSY_NS;
	return quiet_ns < IDLE_AFTER_NS ? QUIET_NS : IDLE_NS;
}

static void rest(u64 next, u64 quiet_ns)
{
	u64 now = nvsim_host_now(), ns = period(quiet_ns);
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
