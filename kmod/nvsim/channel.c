// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channels: their life, their errors, and when they have work. GP_PUT is latched
 * only when the doorbell rings (Volta and later) or polled (Pascal, which has no
 * doorbell).
 */
#include "engine.h"

#define MAX_ENTRIES	65536

static struct nvsim_mem *mem_of(struct nvsim_object *object, u32 handle)
{
	struct nvsim_object *memory = nvsim_object_find(object->client, handle);

	return memory && memory->mem ? nvsim_mem_get(memory->mem) : NULL;
}

/* Pascal: the channel itself has the page with GP_GET and GP_PUT. */
static u32 make_userd(struct nvsim_object *object)
{
	struct nvsim_channel *channel = object->channel;
	u32 status;

	status = nvsim_mem_new(object->gpu, object->class, 4096, NULL,
			       &object->mem);
	if (status)
		return status;
	channel->own_userd = true;
	channel->userd = nvsim_mem_get(object->mem);
	channel->userd_offset = channel->id * NV_USERD_SIZE & 4095;
	return NV_OK;
}

static u32 make_tsg(struct nvsim_object *object)
{
	struct nvsim_channel *channel = object->channel;
	struct nvsim_object *parent;

	parent = nvsim_object_find(object->client, object->parent);
	if (parent && parent->tsg) {
		channel->tsg = parent->tsg;
		return NV_OK;
	}
	channel->tsg = kzalloc(sizeof(*channel->tsg), GFP_KERNEL);
	if (!channel->tsg)
		return NV_ERR_NO_MEMORY;
	channel->own_tsg = true;
	nvsim_tsg_init(channel->tsg, object->gpu, object->client->task);
	channel->tsg->handle = object->handle;
	return NV_OK;
}

static void depend(struct nvsim_object *object, const u8 *params)
{
	static const u8 offsets[] = { NV_CHANNEL_CONTEXT_SHARE, NV_CHANNEL_VASPACE };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		u32 handle = get32(params, offsets[i]);
		struct nvsim_object *on = nvsim_object_find(object->client, handle);

		if (on && on != object)
			object->depends[i] = handle;
	}
}

/**
 * nvsim_channel_new() - Makes a channel of a GPFIFO object.
 * @object: the object
 * @params: NV_CHANNEL_ALLOC_PARAMS
 *
 * Context: lock held; the object's end frees what was made, also after a failure.
 * Return: RM status.
 */
u32 nvsim_channel_new(struct nvsim_object *object, const u8 *params)
{
	struct nvsim_channel *channel = kvzalloc(sizeof(*channel), GFP_KERNEL);
	u32 status;

	if (!channel)
		return NV_ERR_NO_MEMORY;
	INIT_LIST_HEAD(&channel->ready);
	INIT_LIST_HEAD(&channel->queued);
	object->channel = channel;
	channel->object = object;
	channel->client = object->client;
	channel->gpu = object->gpu;
	channel->id = nvsim.next_channel++;
	channel->gpfifo = get64(params, NV_CHANNEL_GPFIFO);
	channel->entries = get32(params, NV_CHANNEL_ENTRIES);
	channel->engine = get32(params, NV_CHANNEL_ENGINE);
	list_add_tail(&channel->node, &channel->gpu->channels);
	nvsim_host_kick();
	status = make_tsg(object);
	if (status)
		return status;
	if (!channel->entries || channel->entries > MAX_ENTRIES)
		return NV_ERR_INVALID_ARGUMENT;
	channel->notifier = mem_of(object, get32(params, NV_CHANNEL_ERROR));
	depend(object, params);
	if (!get32(params, NV_CHANNEL_USERD))
		return make_userd(object);
	channel->userd = mem_of(object, get32(params, NV_CHANNEL_USERD));
	channel->userd_offset = get64(params, NV_CHANNEL_USERD_OFFSET);
	return channel->userd ? NV_OK : NV_ERR_OBJECT_NOT_FOUND;
}

/**
 * nvsim_channel_free() - Ends a channel.
 * @channel: the channel
 *
 * Context: lock held.
 */
void nvsim_channel_free(struct nvsim_channel *channel)
{
	u32 i;

	if (channel->kernel.pending)
		nvsim_gr_dequeue(channel);
	list_del(&channel->node);
	list_del(&channel->ready);
	if (channel->own_tsg) {
		nvsim_tsg_exit(channel->tsg);
		kfree(channel->tsg);
	}
	if (channel->userd)
		nvsim_mem_put(channel->userd);
	if (channel->notifier)
		nvsim_mem_put(channel->notifier);
	for (i = 0; i < ARRAY_SIZE(channel->registers); i++)
		kvfree(channel->registers[i]);
	kvfree(channel);
}

/**
 * nvsim_channel_ready() - Lets the engine look at a channel.
 * @channel: the channel
 *
 * Context: lock held.
 */
void nvsim_channel_ready(struct nvsim_channel *channel)
{
	if (!channel->dead)
		list_move_tail(&channel->ready, &channel->gpu->ready);
}

static void notify_error(struct nvsim_channel *channel, u32 xid)
{
	u64 left;
	u8 *notifier;

	if (!channel->notifier)
		return;
	notifier = nvsim_mem_at(channel->notifier, 0, &left);
	if (!notifier || left < NV_NOTIFICATION_BYTES ||
	    !IS_ALIGNED((unsigned long)notifier, NV_NOTIFICATION_BYTES))
		return;
	put64(notifier, 0, nvsim_host_now());
	put32(notifier, NV_NOTIFICATION_INFO32, xid);
	put16(notifier, NV_NOTIFICATION_INFO16, 1);
	/* the status tells that the rest is there */
	smp_store_release((u16 *)(notifier + NV_NOTIFICATION_STATUS), 0xffff);
}

/**
 * nvsim_channel_kill() - Ends a channel's work for good and tells its owner.
 * @channel: the channel
 * @xid: error code for its notifier
 *
 * Context: lock held.
 */
void nvsim_channel_kill(struct nvsim_channel *channel, u32 xid)
{
	if (channel->dead)
		return;
	channel->dead = true;
	if (channel->kernel.pending)
		nvsim_gr_dequeue(channel);
	list_del_init(&channel->ready);
	notify_error(channel, xid);
	nvsim_host_log("GPU %u: Xid %u, pid %u, channel %u\n", channel->gpu->minor,
		       xid, nvsim_host_task_global(channel->client->task),
		       channel->id);
	nvsim_raise_error(channel->gpu, channel->client);
}

/**
 * nvsim_channel_fail() - A channel dies of an error of its own.
 * @channel: the channel
 * @xid: error code
 *
 * Context: lock held.
 */
void nvsim_channel_fail(struct nvsim_channel *channel, u32 xid)
{
	if (channel->dead)
		return;
	nvsim_channel_kill(channel, xid);
	nvsim_raise_xid(channel->gpu, xid);
}

/**
 * nvsim_userd_word() - A word of a channel's GP_GET and GP_PUT.
 * @channel: the channel
 * @offset: which
 *
 * Context: lock held.
 * Return: the word, or NULL when its memory is gone or lies badly.
 */
u32 *nvsim_userd_word(struct nvsim_channel *channel, u32 offset)
{
	u64 left = 0;
	u32 *word;

	word = nvsim_mem_at(channel->userd, channel->userd_offset + offset, &left);
	return left < sizeof(*word) || !IS_ALIGNED((unsigned long)word, sizeof(*word)) ?
	       NULL : word;
}

static void latch(struct nvsim_channel *channel)
{
	u32 *put = nvsim_userd_word(channel, NV_USERD_GP_PUT);
	u32 value;

	if (!put || channel->dead)
		return;
	value = READ_ONCE(*put) % channel->entries;
	if (value == channel->put)
		return;
	if (channel->get == channel->put && !channel->in_buffer &&
	    !channel->kernel.pending)
		channel->time_ns = max(channel->time_ns, nvsim_host_now());
	channel->put = value;
	nvsim.progress++;
	nvsim_channel_ready(channel);
}

static void latch_client(struct nvsim_gpu *gpu, const struct nvsim_client *client)
{
	struct nvsim_channel *channel;

	list_for_each_entry(channel, &gpu->channels, node)
		if (channel->client == client)
			latch(channel);
}

/**
 * nvsim_doorbell_poll() - Sees which clients rang, and latches their rings.
 * @gpu: card
 *
 * The token is not trusted: two channels that ring at once overwrite each
 * other's, so every channel of the page's client is looked at.
 *
 * Context: lock held.
 */
void nvsim_doorbell_poll(struct nvsim_gpu *gpu)
{
	struct nvsim_channel *channel;
	struct nvsim_object *object;
	u64 left;

	list_for_each_entry(object, &gpu->doorbells, doorbell) {
		u32 *bell = nvsim_mem_at(object->mem, NV_USERMODE_DOORBELL, &left);

		if (bell && xchg(bell, ~0u) != ~0u)
			latch_client(gpu, object->client);
	}
	list_for_each_entry(channel, &gpu->channels, node)
		if (channel->own_userd)
			latch(channel);
}
