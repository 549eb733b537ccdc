// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that a kernel worker makes, because the driver looks for a file in its
 * caller's table of descriptors. The worker's table is the kernel's own, which
 * no container can see: planting a file in the program's lets a thread that
 * duplicates descriptors steal it. The address space is the caller's.
 */
#include <linux/completion.h>
#include <linux/cred.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/kthread.h>
#include <linux/workqueue.h>
#include "cgpu.h"

/*
 * struct on_worker - one call
 * @work: what is queued
 * @done: completed when the driver has answered
 * @call: the call
 * @page: its arguments
 * @owner: who may store results, set to the worker
 * @arg: the arguments' address in @mm
 * @mm: the caller's address space
 * @cred: the caller's
 * @ret: the driver's answer
 */
struct on_worker {
	struct work_struct work;
	struct completion done;
	struct cgpu_call *call;
	void *page;
	struct task_struct **owner;
	void __user *arg;
	struct mm_struct *mm;
	const struct cred *cred;
	long ret;
};

static struct workqueue_struct *workers;

static void run_on_worker(struct work_struct *work)
{
	struct on_worker *w = container_of(work, struct on_worker, work);
	struct cgpu_call *call = w->call;
	const struct cred *old;
	int fd = get_unused_fd_flags(O_CLOEXEC);

	w->ret = fd;
	if (fd < 0)
		goto out;
	fd_install(fd, get_file(call->genuine));
	if (call->fd_at)
		*(s32 *)(w->page + call->fd_at) = fd;
	WRITE_ONCE(*w->owner, current);
	kthread_use_mm(w->mm);
	old = override_creds(w->cred);
	w->ret = cgpu_forward(call->f, call->cmd, w->arg);
	revert_creds(old);
	kthread_unuse_mm(w->mm);
	close_fd(fd);
out:
	complete(&w->done);
}

/**
 * cgpu_call_on_worker() - a call whose caller has call->genuine open
 * @call: the call
 * @page: its arguments, which get the descriptor's number at call->fd_at
 * @owner: gets the task that makes the call
 * @arg: where the caller sees @page
 *
 * Context: process; may sleep.
 * Return: the driver's answer, or an errno.
 */
long cgpu_call_on_worker(struct cgpu_call *call, void *page,
			 struct task_struct **owner, void __user *arg)
{
	struct on_worker w = {
		.call = call, .page = page, .owner = owner, .arg = arg,
		.mm = current->mm, .cred = current_cred(),
	};

	INIT_WORK_ONSTACK(&w.work, run_on_worker);
	init_completion(&w.done);
	queue_work(workers, &w.work);
	wait_for_completion(&w.done);
	destroy_work_on_stack(&w.work);
	return w.ret;
}

/**
 * cgpu_workers_init() - start the workers
 *
 * Context: module load.
 * Return: 0 or -ENOMEM.
 */
int cgpu_workers_init(void)
{
	workers = alloc_workqueue("cgpu", WQ_UNBOUND, 0);
	return workers ? 0 : -ENOMEM;
}

/**
 * cgpu_workers_exit() - end the workers
 *
 * Context: module unload; no file is open.
 */
void cgpu_workers_exit(void)
{
	destroy_workqueue(workers);
}
