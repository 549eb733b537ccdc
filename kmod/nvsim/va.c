// SPDX-License-Identifier: GPL-2.0-only
/* Address spaces: sorted ranges, the last hit remembered. */
#include "rm.h"

/* Index of the first range that ends behind @va. */
static u32 lower_bound(const struct nvsim_space *space, u64 va)
{
	u32 low = 0, high = space->count;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (space->ranges[middle].va + space->ranges[middle].bytes <= va)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/**
 * nvsim_space_find() - The range that holds an address.
 * @space: address space
 * @va: address
 *
 * Context: lock held.
 * Return: the range, or NULL.
 */
struct nvsim_range *nvsim_space_find(struct nvsim_space *space, u64 va)
{
	u32 i = space->last;

	if (i < space->count && va - space->ranges[i].va < space->ranges[i].bytes)
		return &space->ranges[i];
	i = lower_bound(space, va);
	if (i == space->count || va < space->ranges[i].va)
		return NULL;
	space->last = i;
	return &space->ranges[i];
}

static void remove_at(struct nvsim_space *space, u32 i)
{
	struct nvsim_mem *mem = space->ranges[i].mem;

	space->count--;
	memmove(&space->ranges[i], &space->ranges[i + 1],
		(space->count - i) * sizeof(*space->ranges));
	if (mem)
		nvsim_mem_put(mem);
}

static int make_room(struct nvsim_space *space)
{
	u32 room = space->room ? 2 * space->room : 64;
	struct nvsim_range *ranges;

	if (space->count < space->room)
		return 0;
	if (room > 1 << 18)
		return -ENOMEM;
	ranges = kvcalloc(room, sizeof(*ranges), GFP_KERNEL);
	if (!ranges)
		return -ENOMEM;
	if (space->count)
		memcpy(ranges, space->ranges, space->count * sizeof(*ranges));
	kvfree(space->ranges);
	space->ranges = ranges;
	space->room = room;
	return 0;
}

/**
 * nvsim_space_add() - Maps memory at an address; what was there goes.
 * @space: address space
 * @va: address
 * @bytes: length
 * @offset: where in the memory the range begins
 * @mem: memory, of which a reference is taken
 *
 * Context: lock held.
 * Return: 0, -EINVAL for an impossible range, -ENOMEM.
 */
int nvsim_space_add(struct nvsim_space *space, u64 va, u64 bytes, u64 offset,
		    struct nvsim_mem *mem)
{
	int error;
	u32 i;

	if (!bytes || va + bytes < va)
		return -EINVAL;
	nvsim_space_remove(space, va, bytes);
	error = make_room(space);
	if (error)
		return error;
	i = lower_bound(space, va);
	memmove(&space->ranges[i + 1], &space->ranges[i],
		(space->count - i) * sizeof(*space->ranges));
	space->ranges[i] = (struct nvsim_range){
		.va = va, .bytes = bytes, .offset = offset,
		.mem = nvsim_mem_get(mem),
	};
	space->count++;
	return 0;
}

/**
 * nvsim_space_remove() - Removes every range that meets an interval.
 * @space: address space
 * @va: first address
 * @bytes: length
 *
 * Context: lock held.
 */
void nvsim_space_remove(struct nvsim_space *space, u64 va, u64 bytes)
{
	u32 i = lower_bound(space, va);

	while (i < space->count && space->ranges[i].va < va + bytes)
		remove_at(space, i);
}

/**
 * nvsim_space_free() - Removes everything.
 * @space: address space
 *
 * Context: lock held.
 */
void nvsim_space_free(struct nvsim_space *space)
{
	while (space->count)
		remove_at(space, space->count - 1);
	kvfree(space->ranges);
	memset(space, 0, sizeof(*space));
}
