// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine's thread. Doorbells are stores to a page and wake nobody, so while
 * there is work it looks for them, and less often the longer there was none.
 * After two seconds it takes the pages away and sleeps: the next store faults,
 * which wakes it. Where that cannot be (Pascal's channels, whose GP_PUT lies in
 * their own memory, and files whose faults go to a module above this one) it
 * goes on looking, seldom. Without channels it sleeps.
 */
#include "module.h"

#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>

#define RUNNING_NS	((u64)(2 * NSEC_PER_MSEC))
#define HUSH_NS		((u64)(2 * NSEC_PER_SEC))

struct pace {
	u64 until_ns;	/* without work for less than this: */
	u64 rest_ns;
};

static const struct pace paces[] = {
	{ 5 * NSEC_PER_MSEC, 50 * NSEC_PER_USEC },
	{ 200 * NSEC_PER_MSEC, 500 * NSEC_PER_USEC },
	{ HUSH_NS, 2 * NSEC_PER_MSEC },
	{ U64_MAX, 20 * NSEC_PER_MSEC },
};

#define PROMPT_NS	((u64)(20 * NSEC_PER_USEC))
#define PROMPT_PART	8000	/* of the quiet time: what it may be late */

static bool prompt;
module_param(prompt, bool, 0644);
MODULE_PARM_DESC(prompt, "the engine goes before programs and hears doorbells within 20 us, or an 8000th of the quiet before");

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
	if (READ_ONCE(prompt))
		return clamp(div_u64(quiet_ns, PROMPT_PART), PROMPT_NS, pace->rest_ns);
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

struct watch {
	u64 next;		/* when the engine has more to do */
	u64 progress, since;	/* how far it is, and since when */
};

/* Lock held. */
static void look(struct watch *watch)
{
	watch->next = nvsim_engine_run();
	if (nvsim.progress != watch->progress)
		watch->since = nvsim_host_now();
	watch->progress = nvsim.progress;
}

static bool quiet(const struct watch *watch)
{
	return watch->next == ~0ull && nvsim_host_now() - watch->since >= HUSH_NS;
}

/* Whether nothing happens before somebody kicks. Lock held. */
static bool may_sleep(struct watch *watch)
{
	if (!nvsim_engine_open())
		return true;
	if (!quiet(watch) || !nvsim_engine_rung() || !nvsim_chrdev_hush())
		return false;
	look(watch);	/* what rang before its page was taken away */
	return quiet(watch);
}

/* Else it waits for the processor behind the programs that wait for it. */
static void take_precedence(bool *taken)
{
	bool wanted = READ_ONCE(prompt);

	if (wanted == *taken)
		return;
	if (wanted)
		sched_set_fifo_low(current);
	else
		sched_set_normal(current, 0);
	*taken = wanted;
}

static int engine(void *unused)
{
	struct watch watch = { .since = nvsim_host_now() };
	bool sleep, taken = false;

	while (!kthread_should_stop()) {
		take_precedence(&taken);
		WRITE_ONCE(kicked, false);
		nvsim_lock();
		look(&watch);
		sleep = may_sleep(&watch);
		nvsim_unlock();
		if (!sleep) {
			rest(watch.next, nvsim_host_now() - watch.since);
			continue;
		}
		wait_event_interruptible(wait, READ_ONCE(kicked) ||
					 kthread_should_stop());
		watch.since = nvsim_host_now();
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
