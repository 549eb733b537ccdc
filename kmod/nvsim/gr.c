// SPDX-License-Identifier: GPL-2.0-only
/*
 * The graphics engine: one a card, lent to one group of channels (TSG) at a
 * time. A group keeps it for its time slice while others wait, longer when none
 * does; within a group kernels run in the order of their launch. Kernels are
 * preempted at the end of a slice and continue later, as on hardware.
 *
 * Time is virtual: the engine catches up to "now" event by event, so a late
 * thread of the host delays nobody's clock. All functions: lock held.
 */
#include "engine.h"

#define DEFAULT_TIMESLICE_NS	2048000ull
#define LEAST_TIMESLICE_NS	50000ull
#define WINDOW_NS		250000000u	/* of which utilisation is told */

void nvsim_tsg_init(struct nvsim_tsg *tsg, struct nvsim_gpu *gpu, void *task)
{
	memset(tsg, 0, sizeof(*tsg));
	INIT_LIST_HEAD(&tsg->ready);
	INIT_LIST_HEAD(&tsg->queue);
	tsg->gpu = gpu;
	tsg->task = task;
	tsg->timeslice_ns = DEFAULT_TIMESLICE_NS;
	list_add_tail(&tsg->node, &gpu->gr.tsgs);
}

void nvsim_tsg_exit(struct nvsim_tsg *tsg)
{
	if (tsg->gpu->gr.owner == tsg)
		tsg->gpu->gr.owner = NULL;
	list_del(&tsg->ready);
	list_del(&tsg->node);
}

/**
 * nvsim_gr_enqueue() - A channel's kernel waits for the engine.
 * @channel: channel with kernel.ready_ns and kernel.left_ns set
 */
void nvsim_gr_enqueue(struct nvsim_channel *channel)
{
	struct nvsim_tsg *tsg = channel->tsg;

	channel->kernel.pending = true;
	list_add_tail(&channel->queued, &tsg->queue);
	if (list_empty(&tsg->ready))
		list_add_tail(&tsg->ready, &tsg->gpu->gr.ready);
}

/**
 * nvsim_gr_dequeue() - A channel has no kernel any more.
 * @channel: the channel
 */
void nvsim_gr_dequeue(struct nvsim_channel *channel)
{
	channel->kernel.pending = false;
	list_del_init(&channel->queued);
	if (list_empty(&channel->tsg->queue))
		list_del_init(&channel->tsg->ready);
}

static struct nvsim_channel *head(const struct nvsim_tsg *tsg)
{
	struct nvsim_channel *channel;

	if (tsg->disabled)
		return NULL;
	list_for_each_entry(channel, &tsg->queue, queued)
		if (!channel->disabled)
			return channel;
	return NULL;
}

static bool has_work(const struct nvsim_tsg *tsg, u64 time)
{
	const struct nvsim_channel *channel = head(tsg);

	return channel && channel->kernel.ready_ns <= time;
}

/* The group with work that comes next in the round, else the earliest one. */
static struct nvsim_tsg *next_tsg(struct nvsim_gr *gr)
{
	struct nvsim_tsg *tsg, *earliest = NULL;

	list_for_each_entry(tsg, &gr->ready, ready) {
		if (tsg == gr->owner || !head(tsg))
			continue;
		if (has_work(tsg, gr->time_ns))
			return tsg;
		if (!earliest || head(tsg)->kernel.ready_ns <
		    head(earliest)->kernel.ready_ns)
			earliest = tsg;
	}
	if (gr->owner && has_work(gr->owner, gr->time_ns))
		return gr->owner;
	if (gr->owner && head(gr->owner) &&
	    (!earliest || head(gr->owner)->kernel.ready_ns <=
	     head(earliest)->kernel.ready_ns))
		return gr->owner;
	return earliest;
}

static struct nvsim_tsg *pick(struct nvsim_gr *gr)
{
	struct nvsim_tsg *tsg = gr->owner;

	if (tsg && has_work(tsg, gr->time_ns) && gr->time_ns < gr->slice_end_ns)
		return tsg;
	if (tsg && !list_empty(&tsg->ready))
		list_move_tail(&tsg->ready, &gr->ready);
	tsg = next_tsg(gr);
	if (!tsg)
		return NULL;
	gr->time_ns = max(gr->time_ns, head(tsg)->kernel.ready_ns);
	gr->owner = tsg;
	gr->slice_end_ns = gr->time_ns + max(tsg->timeslice_ns, LEAST_TIMESLICE_NS);
	return tsg;
}

static void enter_window(struct nvsim_gr *gr, u64 window)
{
	if (window == gr->window)
		return;
	gr->before_ns = window == gr->window + 1 ? gr->window_ns : 0;
	gr->window = window;
	gr->window_ns = 0;
}

static void spend(struct nvsim_gr *gr, struct nvsim_channel *channel, u64 ns)
{
	channel->kernel.left_ns -= ns;
	channel->busy_ns += ns;
	channel->tsg->busy_ns += ns;
	gr->busy_ns += ns;
	gr->time_ns += ns;
	enter_window(gr, div_u64(gr->time_ns, WINDOW_NS));
	gr->window_ns += ns;
}

/**
 * nvsim_gr_advance() - Lends the engine until a kernel ends or time is up.
 * @gr: the engine
 * @now: real time in ns
 *
 * Return: the channel whose kernel ended, its time set to the end; or NULL.
 */
struct nvsim_channel *nvsim_gr_advance(struct nvsim_gr *gr, u64 now)
{
	struct nvsim_tsg *tsg;

	while ((tsg = pick(gr)) && gr->time_ns <= now) {
		struct nvsim_channel *channel = head(tsg);
		u64 end = min3(gr->time_ns + channel->kernel.left_ns,
			       max(gr->slice_end_ns, gr->time_ns), now);

		spend(gr, channel, end - gr->time_ns);
		if (!channel->kernel.left_ns) {
			nvsim_gr_dequeue(channel);
			channel->time_ns = gr->time_ns;
			return channel;
		}
		if (gr->time_ns >= now)
			break;
	}
	return NULL;
}

/**
 * nvsim_gr_next() - When the engine has something to do by itself.
 * @gr: the engine
 *
 * Return: nanoseconds, ~0 when no kernel waits.
 */
u64 nvsim_gr_next(const struct nvsim_gr *gr)
{
	const struct nvsim_tsg *tsg;
	u64 next = ~0ull;

	list_for_each_entry(tsg, &gr->ready, ready)
		if (head(tsg))
			next = min(next, gr->time_ns + head(tsg)->kernel.left_ns);
	return next;
}

/**
 * nvsim_gr_load() - How busy the engine was in the last whole window.
 * @gr: the engine
 * @now: real time in ns
 *
 * Return: percent.
 */
u32 nvsim_gr_load(const struct nvsim_gr *gr, u64 now)
{
	u64 window = div_u64(now, WINDOW_NS), busy = 0;

	if (gr->window == window)
		busy = gr->before_ns;
	else if (gr->window + 1 == window)
		busy = gr->window_ns;
	return min_t(u64, div_u64(busy * 100, WINDOW_NS), 100);
}
