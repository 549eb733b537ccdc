// SPDX-License-Identifier: GPL-2.0-only
/* Memory as a channel sees it: every address goes through one resolver. */
#include "engine.h"

#define FILL_CHUNK	720ull	/* whole periods: 1, 2, 3, 4, 6, 8, 9, 12, 16 divide it */

static struct nvsim_range *resolve(struct nvsim_channel *channel, u64 va)
{
	struct nvsim_client *client = channel->client;
	struct nvsim_range *range = NULL;

	if (client->uvm)
		range = nvsim_space_find(&client->uvm->space, va);
	if (!range)
		range = nvsim_space_find(&client->space, va);
	return range;
}

/**
 * nvsim_at() - Where a GPU address lies.
 * @channel: whose address space
 * @va: address
 * @left: how many bytes follow in one piece; may be NULL
 *
 * Context: lock held; the pointer is good until it is given back.
 * Return: pointer, or NULL for an address that nothing is mapped at.
 */
void *nvsim_at(struct nvsim_channel *channel, u64 va, u64 *left)
{
	struct nvsim_range *range = resolve(channel, va);
	u64 into, here = 0;
	void *at;

	if (!range || !range->mem)
		return NULL;
	into = va - range->va;
	at = nvsim_mem_at(range->mem, range->offset + into, &here);
	if (here > range->bytes - into)
		here = range->bytes - into;
	if (left)
		*left = here;
	return at;
}

/**
 * nvsim_fault() - A channel touched an address that nothing is mapped at.
 * @channel: the channel, which dies with Xid 31
 * @va: address
 * @what: which access
 *
 * Context: lock held.
 */
void nvsim_fault(struct nvsim_channel *channel, u64 va, const char *what)
{
	nvsim.faults++;
	nvsim_host_log("channel %u: nothing is mapped at %llx (%s)\n",
		       channel->id, va, what);
	nvsim_channel_fail(channel, 31);
}

/*
 * A mapping may begin anywhere in a page: a word that is not aligned there may
 * lie across its end, and is a fault.
 */
static void *word_at(struct nvsim_channel *channel, u64 va, u64 bytes)
{
	u64 left = 0;
	void *at = nvsim_at(channel, va & ~(bytes - 1), &left);

	return left < bytes || !IS_ALIGNED((unsigned long)at, bytes) ? NULL : at;
}

bool nvsim_read32(struct nvsim_channel *channel, u64 va, u32 *value)
{
	u32 *at = word_at(channel, va, sizeof(*at));

	if (!at) {
		nvsim_fault(channel, va, "read");
		return false;
	}
	*value = READ_ONCE(*at);
	return true;
}

void nvsim_write32(struct nvsim_channel *channel, u64 va, u32 value)
{
	u32 *at = word_at(channel, va, sizeof(*at));

	if (at)
		smp_store_release(at, value);	/* what it announces comes first */
	else
		nvsim_fault(channel, va, "write");
}

void nvsim_write64(struct nvsim_channel *channel, u64 va, u64 value)
{
	u64 *at = word_at(channel, va, sizeof(*at));

	if (at)
		smp_store_release(at, value);	/* what it announces comes first */
	else
		nvsim_fault(channel, va, "write");
}

/**
 * nvsim_release() - Writes a semaphore: a word, or a word with a time behind it.
 * @channel: the channel; its time is the timestamp
 * @va: address
 * @payload: value, of which the low word counts
 * @timestamp: write {payload, 0, nanoseconds}
 *
 * Context: lock held.
 */
void nvsim_release(struct nvsim_channel *channel, u64 va, u64 payload,
		   bool timestamp)
{
	if (timestamp) {
		nvsim_write64(channel, va + 8, channel->time_ns);
		nvsim_write32(channel, va + 4, 0);
	}
	nvsim_write32(channel, va, (u32)payload);
}

/**
 * nvsim_reduce() - One atomic operation of a report semaphore.
 * @operation: 0 add, 1 min, 2 max, 3 inc, 4 dec, 5 and, 6 or, 7 xor
 * @memory: what is there
 * @value: the operand
 *
 * Return: the new value.
 */
u32 nvsim_reduce(u32 operation, u32 memory, u32 value)
{
	switch (operation) {
	case 0:
		return memory + value;
	case 1:
		return min(memory, value);
	case 2:
		return max(memory, value);
	case 3:
		return memory >= value ? 0 : memory + 1;
	case 4:
		return memory == 0 || memory > value ? value : memory - 1;
	case 5:
		return memory & value;
	case 6:
		return memory | value;
	}
	return memory ^ value;
}

/**
 * nvsim_load() - Reads memory.
 * @channel: whose address space
 * @to: where to
 * @from: address
 * @bytes: how many
 *
 * Context: lock held.
 * Return: false when something of it is not mapped; no fault is raised.
 */
bool nvsim_load(struct nvsim_channel *channel, void *to, u64 from, u64 bytes)
{
	u64 done, part, left = 0;

	for (done = 0; done < bytes; done += part) {
		const void *at = nvsim_at(channel, from + done, &left);

		if (!at)
			return false;
		part = min(bytes - done, left);
		memcpy((u8 *)to + done, at, part);
	}
	return true;
}

/**
 * nvsim_store() - Writes memory; what is not mapped is a fault.
 * @channel: whose address space
 * @to: address
 * @from: what
 * @bytes: how many
 *
 * Context: lock held.
 * Return: false after a fault.
 */
bool nvsim_store(struct nvsim_channel *channel, u64 to, const void *from, u64 bytes)
{
	u64 done, part, left = 0;

	for (done = 0; done < bytes; done += part) {
		void *at = nvsim_at(channel, to + done, &left);

		if (!at) {
			nvsim_fault(channel, to + done, "store");
			return false;
		}
		part = min(bytes - done, left);
		memcpy(at, (const u8 *)from + done, part);
	}
	return true;
}

/**
 * nvsim_copy() - Copies within an address space.
 * @channel: whose
 * @to: address
 * @from: address
 * @bytes: how many
 *
 * Context: lock held.
 */
void nvsim_copy(struct nvsim_channel *channel, u64 to, u64 from, u64 bytes)
{
	while (bytes && !channel->dead) {
		u64 room = 0, there = 0, part;
		void *target = nvsim_at(channel, to, &room);
		void *source = nvsim_at(channel, from, &there);

		if (!target || !source) {
			nvsim_fault(channel, target ? from : to, "copy");
			return;
		}
		part = min3(bytes, room, there);
		memmove(target, source, part);
		to += part;
		from += part;
		bytes -= part;
	}
}

/**
 * nvsim_fill() - Repeats a pattern.
 * @channel: whose address space
 * @to: address
 * @bytes: how many
 * @pattern: what
 * @period: its length, at most 16 bytes
 *
 * Context: lock held.
 */
void nvsim_fill(struct nvsim_channel *channel, u64 to, u64 bytes,
		const void *pattern, u32 period)
{
	const u8 *from = pattern;
	u64 done = 0;

	while (done < bytes && !channel->dead) {
		u64 room = 0, part, i;
		u8 *target = nvsim_at(channel, to + done, &room);

		if (!target) {
			nvsim_fault(channel, to + done, "fill");
			return;
		}
		part = min(bytes - done, room);
		for (i = 0; i < part && i < FILL_CHUNK; i++)
			target[i] = from[(u32)(done + i) % period];
		for (i = FILL_CHUNK; i < part; i += FILL_CHUNK)
			memcpy(target + i, target, min(part - i, FILL_CHUNK));
		done += part;
	}
}

/**
 * nvsim_register() - What was last written to a method.
 * @channel: the channel
 * @subchannel: 0 to 7
 * @method: byte address
 *
 * Context: lock held.
 * Return: the value, 0 when there was none.
 */
u32 nvsim_register(struct nvsim_channel *channel, u8 subchannel, u32 method)
{
	u32 *registers = channel->registers[subchannel];

	return registers ? registers[method >> 2] : 0;
}
