// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events: device files that poll readable once after each interrupt, or until
 * what an event tells was fetched. A file at rest must not be readable, or
 * libcuda's watcher spins and resets channels.
 */
#include "rm.h"

#define NO_PARTITION	0xf	/* the whole card, not a MIG partition */

static void raise(struct nvsim_gpu *gpu, struct nvsim_client *client, u32 mask)
{
	struct nvsim_object *object;

	list_for_each_entry(object, &nvsim.events, event) {
		struct nvsim_file *file = object->event_file;

		if (!file || (client && object->client != client) ||
		    (object->gpu && object->gpu != gpu))
			continue;
		if (mask && !(object->event_index & mask))
			continue;
		file->event_pending = true;
		nvsim_host_file_wake(file);
	}
}

/**
 * nvsim_raise() - A non-stalling interrupt: the files that wait for one wake.
 * @gpu: card
 * @client: whose channel raised it
 *
 * Context: lock held.
 */
void nvsim_raise(struct nvsim_gpu *gpu, struct nvsim_client *client)
{
	raise(gpu, client, NV01_EVENT_NONSTALL_INTR);
}

/**
 * nvsim_raise_error() - A channel died: every file of its client wakes.
 * @gpu: card
 * @client: whose channel died
 *
 * Context: lock held.
 */
void nvsim_raise_error(struct nvsim_gpu *gpu, struct nvsim_client *client)
{
	raise(gpu, client, 0);
}

static bool wants(const struct nvsim_object *object,
		  const struct nvsim_gpu *gpu, u32 index)
{
	return object->event_file && object->gpu == gpu &&
	       object->event_action != NV_EVENT_ACTION_DISABLE &&
	       (object->event_index & NV_EVENT_INDEX_MASK) == index;
}

/* A file that nobody reads keeps its oldest notices, as the newest tell no more. */
static void post(struct nvsim_object *object, u32 index, u32 info32)
{
	struct nvsim_file *file = object->event_file;
	u32 slot = (file->notice_first + file->notice_count) % NVSIM_NOTICES;

	if (object->event_index & NV01_EVENT_WITHOUT_EVENT_DATA) {
		file->event_pending = true;
	} else if (file->notice_count < NVSIM_NOTICES) {
		file->notices[slot] = (struct nvsim_notice){
			.object = object->handle, .index = index,
			.info32 = info32, .info16 = NO_PARTITION,
		};
		file->notice_count++;
	}
	if (object->event_action == NV_EVENT_ACTION_SINGLE)
		object->event_action = NV_EVENT_ACTION_DISABLE;
	nvsim_host_file_wake(file);
}

/* Before 450 a library reads what happened from memory that it shares. */
static void write_notifier(const struct nvsim_object *subdevice, u32 index,
			   u32 info32)
{
	u64 left = 0;
	u8 *notifier = nvsim_mem_at(subdevice->notifiers,
				    index * NV_NOTIFICATION_BYTES, &left);

	if (!notifier || left < NV_NOTIFICATION_BYTES)
		return;
	put64(notifier, 0, nvsim_host_now());
	put32(notifier, NV_NOTIFICATION_INFO32, info32);
	put16(notifier, NV_NOTIFICATION_INFO16, NO_PARTITION);
	/* the status tells that the rest is there */
	smp_store_release((u16 *)(notifier + NV_NOTIFICATION_STATUS), 0);
}

/* The list of errors that 418's library asks for what an event was about. */
static void remember(const struct nvsim_gpu *gpu, u32 xid)
{
	nvsim.errors[nvsim.error_count++ % NVSIM_ERRORS] = (struct nvsim_error){
		.gpu = gpu->id, .xid = xid, .time_ns = nvsim_host_now(),
	};
}

/**
 * nvsim_raise_xid() - Tells everybody who watches a card of an error.
 * @gpu: card
 * @xid: code
 *
 * Context: lock held.
 */
void nvsim_raise_xid(struct nvsim_gpu *gpu, u32 xid)
{
	u32 index = nvsim.branch->error_index;
	struct nvsim_object *object, *subdevice;

	remember(gpu, xid);
	list_for_each_entry(object, &nvsim.events, event) {
		if (!wants(object, gpu, index))
			continue;
		subdevice = nvsim_object_find(object->client, object->parent);
		if (subdevice && subdevice->notifiers)
			write_notifier(subdevice, index, xid);
		post(object, index, xid);
	}
}

/* Takes the oldest notice of a file. */
static bool take(struct nvsim_file *file, struct nvsim_notice *notice, u32 *more)
{
	if (!file->notice_count)
		return false;
	*notice = file->notices[file->notice_first];
	file->notice_first = (file->notice_first + 1) % NVSIM_NOTICES;
	*more = --file->notice_count;
	return true;
}

/**
 * nvsim_event_data() - NV_ESC_RM_GET_EVENT_DATA.
 * @file: file that an event was tied to
 * @arg: NVOS41, answered in place
 *
 * Context: lock not held.
 * Return: RM status.
 */
u32 nvsim_event_data(struct nvsim_file *file, u8 *arg)
{
	u8 event[NV_UNIX_EVENT_BYTES] = { 0 };
	struct nvsim_notice notice;
	u32 more = 0;
	bool taken;

	nvsim_lock();
	taken = take(file, &notice, &more);
	nvsim_unlock();
	if (!taken)
		return NV_ERR_GENERIC;
	put32(event, NV_UNIX_EVENT_OBJECT, notice.object);
	put32(event, NV_UNIX_EVENT_INDEX, notice.index);
	put32(event, NV_UNIX_EVENT_INFO32, notice.info32);
	put16(event, NV_UNIX_EVENT_INFO16, notice.info16);
	if (nvsim_host_copy_out(get64(arg, NVOS41_EVENT), event, sizeof(event)))
		return NV_ERR_INVALID_POINTER;
	put32(arg, NVOS41_MORE, more);
	return NV_OK;
}

/**
 * nvsim_file_take_event() - Whether polling sees a file readable.
 * @file: device file
 *
 * An event without data is consumed by being seen, one with data by being
 * fetched.
 *
 * Context: lock not held.
 * Return: true when there is something.
 */
bool nvsim_file_take_event(struct nvsim_file *file)
{
	bool readable;

	nvsim_lock();
	readable = file->event_pending || file->notice_count;
	file->event_pending = false;
	nvsim_unlock();
	return readable;
}
