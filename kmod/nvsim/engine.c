// SPDX-License-Identifier: GPL-2.0-only
/* One turn of the engine over all cards; errors that are wanted. */
#include "engine.h"

#define XID_FALLEN_OFF_BUS	79

#define ROUNDS_A_TURN	4096
#define RETRY_NS	50000ull	/* a semaphore may be written by the processor */

static void finish(struct nvsim_channel *channel)
{
	struct nvsim_kernel *kernel = &channel->kernel;
	u32 i, memory;

	nvsim.progress++;
	for (i = 0; i < kernel->releases && !channel->dead; i++) {
		struct nvsim_release *release = &kernel->release[i];

		if (!release->reduce)
			nvsim_release(channel, release->va, release->payload,
				      release->words == 4);
		else if (nvsim_read32(channel, release->va, &memory))
			nvsim_write32(channel, release->va,
				      nvsim_reduce(release->reduce & 7, memory,
						   (u32)release->payload));
	}
	nvsim_channel_ready(channel);
}

/* One look at every ready channel; true when one of them did something. */
static bool run_channels(struct nvsim_gpu *gpu)
{
	struct nvsim_channel *channel, *next;
	LIST_HEAD(batch);
	bool progress = false;

	list_splice_init(&gpu->ready, &batch);
	while (!list_empty(&batch)) {
		channel = list_first_entry(&batch, struct nvsim_channel, ready);
		list_move_tail(&channel->ready, &gpu->ready);
		progress |= nvsim_channel_run(channel);
	}
	if (progress)
		list_for_each_entry_safe(channel, next, &gpu->stalled, ready)
			nvsim_channel_ready(channel);
	return progress;
}

static u64 run_gpu(struct nvsim_gpu *gpu)
{
	struct nvsim_channel *channel;
	u32 rounds = ROUNDS_A_TURN;
	bool progress;
	u64 now;

	nvsim_doorbell_poll(gpu);
	list_splice_tail_init(&gpu->stalled, &gpu->ready);
	now = nvsim_host_now();
	do {
		progress = run_channels(gpu);
		channel = nvsim_gr_advance(&gpu->gr, now);
		if (!channel) {	/* looking at the clock takes longer than a short kernel */
			now = nvsim_host_now();
			channel = nvsim_gr_advance(&gpu->gr, now);
		}
		if (channel)
			finish(channel);
	} while ((progress || channel) && --rounds);
	if (!rounds)
		return 0;
	if (!list_empty(&gpu->stalled))
		return min(nvsim_gr_next(&gpu->gr), now + RETRY_NS);
	return nvsim_gr_next(&gpu->gr);
}

/**
 * nvsim_engine_run() - Runs what can run on every card.
 *
 * Context: lock held.
 * Return: ns at which there is more to do without a doorbell, 0 at once, ~0 never.
 */
u64 nvsim_engine_run(void)
{
	u64 next = ~0ull;
	u32 i;

	for (i = 0; i < nvsim.gpu_count; i++)
		next = min(next, run_gpu(&nvsim.gpus[i]));
	return next;
}

/**
 * nvsim_engine_open() - Whether any channel exists.
 *
 * Context: lock held.
 */
bool nvsim_engine_open(void)
{
	u32 i;

	for (i = 0; i < nvsim.gpu_count; i++)
		if (!list_empty(&nvsim.gpus[i].channels))
			return true;
	return false;
}

/**
 * nvsim_engine_rung() - Whether work reaches every channel by a doorbell.
 *
 * Context: lock held.
 */
bool nvsim_engine_rung(void)
{
	struct nvsim_channel *channel;
	u32 i;

	for (i = 0; i < nvsim.gpu_count; i++)
		list_for_each_entry(channel, &nvsim.gpus[i].channels, node)
			if (channel->own_userd && !channel->dead)
				return false;
	return true;
}

static u32 kill_channels(struct nvsim_gpu *gpu, u32 xid, u32 pid)
{
	struct nvsim_channel *channel;
	u32 count = 0;

	list_for_each_entry(channel, &gpu->channels, node) {
		u32 owner = nvsim_host_task_global(channel->client->task);

		if (channel->dead || (pid && owner != pid))
			continue;
		nvsim_channel_kill(channel, xid);
		count++;
	}
	return count;
}

/**
 * nvsim_inject() - An Xid: channels die, and whoever watches the card is told.
 * @gpu: card
 * @xid: code
 * @pid: whose channels, as the first namespace numbers them; 0 = everybody's
 *
 * Context: lock not held.
 * Return: false when there is no such card, or the process has no channel on it.
 */
bool nvsim_inject(u32 gpu, u32 xid, u32 pid)
{
	bool happened;

	if (gpu >= nvsim.gpu_count)
		return false;
	nvsim_lock();
	if (xid == XID_FALLEN_OFF_BUS)
		pid = 0;	/* nobody keeps a card that is gone */
	happened = kill_channels(&nvsim.gpus[gpu], xid, pid) || !pid;
	if (happened)
		nvsim_raise_xid(&nvsim.gpus[gpu], xid);
	if (xid == XID_FALLEN_OFF_BUS)
		nvsim.gpus[gpu].lost = true;
	nvsim_unlock();
	return happened;
}

/**
 * nvsim_restore() - A card that fell off the bus is back, as after a reset.
 * @gpu: card
 *
 * Context: lock not held.
 * Return: false when there is no such card.
 */
bool nvsim_restore(u32 gpu)
{
	if (gpu >= nvsim.gpu_count)
		return false;
	nvsim_lock();
	nvsim.gpus[gpu].lost = false;
	nvsim_unlock();
	return true;
}
