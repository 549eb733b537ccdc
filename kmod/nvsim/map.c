// SPDX-License-Identifier: GPL-2.0-only
/* MAP_MEMORY: one mapping context a file, taken by the file's next mmap. */
#include "engine.h"

/* Where the engine's registers of a Pascal channel lie within its page. */
static u64 linear_address(const struct nvsim_object *object)
{
	if (object->channel)
		return (u64)object->channel->id * NV_USERD_SIZE;
	return 0;
}

/**
 * nvsim_map_context() - What the next mapping of a file shows.
 * @target: the file
 * @object: memory, or a channel
 * @offset: first byte of it
 * @bytes: length
 *
 * Context: lock held.
 * Return: RM status.
 */
u32 nvsim_map_context(struct nvsim_file *target, struct nvsim_object *object,
		      u64 offset, u64 bytes)
{
	if (target->map)
		return NV_ERR_STATE_IN_USE;
	if (target->exported || !bytes)
		return NV_ERR_INVALID_ARGUMENT;
	if (target->gpu && object->gpu && target->gpu != object->gpu)
		return NV_ERR_INVALID_ARGUMENT;
	if (!object->channel &&
	    (offset >= object->mem->bytes || bytes > object->mem->bytes - offset))
		return NV_ERR_INVALID_ARGUMENT;
	target->map = nvsim_mem_get(object->mem);
	target->map_offset = object->channel ? 0 : offset;
	target->map_bytes = (bytes + 4095) & ~4095ull;
	return NV_OK;
}

static u32 map(struct nvsim_file *file, u8 *arg, struct nvsim_file *target)
{
	struct nvsim_client *client = nvsim_client_find(get32(arg, RM_CLIENT));
	struct nvsim_object *object;
	u32 status;

	if (!client || client->owner != file)
		return NV_ERR_INVALID_CLIENT;
	object = nvsim_object_find(client, get32(arg, NVOS33_MEMORY));
	if (!object || !object->mem)
		return NV_ERR_OBJECT_NOT_FOUND;
	if (!target)
		return NV_ERR_INVALID_ARGUMENT;
	status = nvsim_map_context(target, object, get64(arg, NVOS33_OFFSET),
				   get64(arg, NVOS33_LENGTH));
	if (!status)
		put64(arg, NVOS33_LINEAR, linear_address(object));
	return status;
}

/**
 * nvsim_map_target() - A file of the caller that can be mapped.
 * @fd: its number
 *
 * Context: lock not held.
 * Return: the file with a reference, or NULL.
 */
struct nvsim_file *nvsim_map_target(int fd)
{
	struct nvsim_file *target = nvsim_host_file_get(fd, false);

	return target ? target : nvsim_host_file_get(fd, true);
}

/**
 * nvsim_map_memory() - NV_ESC_RM_MAP_MEMORY.
 * @file: control file
 * @arg: NVOS33 and a file number, answered in place
 *
 * Context: lock not held.
 * Return: RM status.
 */
u32 nvsim_map_memory(struct nvsim_file *file, u8 *arg)
{
	struct nvsim_file *target = nvsim_map_target((int)get32(arg, NVOS33_FD));
	u32 status;

	nvsim_lock();
	status = map(file, arg, target);
	nvsim_unlock();
	if (target)
		nvsim_host_file_put(target);
	return status;
}

/**
 * nvsim_file_mmap() - The mapping context of a file, once.
 * @file: any NVIDIA file
 * @bytes: length of the mapping
 * @offset: where in the backing it begins
 *
 * Context: lock not held; may be called under mmap_lock.
 * Return: backing with a reference, or NULL when there is none of this length.
 */
struct nvsim_backing *nvsim_file_mmap(struct nvsim_file *file, u64 bytes,
				      u64 *offset)
{
	struct nvsim_backing *backing = NULL;

	nvsim_lock();
	if (file->map && !file->map_used &&
	    file->map_bytes == ((bytes + 4095) & ~4095ull)) {
		backing = nvsim_mem_backing(file->map);
		if (backing) {
			nvsim_host_backing_get(backing);
			file->map_used = true;
			*offset = file->map_offset;
		}
	}
	nvsim_unlock();
	return backing;
}
