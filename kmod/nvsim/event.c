// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events: device files that poll readable once after each interrupt. A file at
 * rest must not be readable, or libcuda's watcher spins and resets channels.
 */
#include "rm.h"

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
	raise(gpu, client, EVENT_INDEX_NONSTALL);
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

/**
 * nvsim_file_take_event() - Consumes the event that a file waits for.
 * @file: device file
 *
 * Context: lock not held.
 * Return: true when there was one.
 */
bool nvsim_file_take_event(struct nvsim_file *file)
{
	bool pending;

	nvsim_lock();
	pending = file->event_pending;
	file->event_pending = false;
	nvsim_unlock();
	return pending;
}
