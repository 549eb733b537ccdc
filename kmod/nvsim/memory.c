// SPDX-License-Identifier: GPL-2.0-only
/* Memory objects: what is charged to the frame buffer, and what backs them. */
#include "rm.h"

#define PAGE_BYTES	4096ull
#define HEAP_GRAIN	(64ull << 10)
#define HEAP_GRAIN_BIG	(2ull << 20)

static u64 round_up_to(u64 bytes, u64 grain)
{
	return (bytes + grain - 1) & ~(grain - 1);
}

/* The driver hands out big pages for big requests. */
static u64 heap_bytes(u64 bytes)
{
	return round_up_to(bytes, bytes >= HEAP_GRAIN_BIG ? HEAP_GRAIN_BIG :
				  HEAP_GRAIN);
}

static bool is_frame_buffer(u32 class)
{
	return class == NV01_MEMORY_LOCAL_USER ||
	       class == NV01_MEMORY_LOCAL_PRIVILEGED;
}

/**
 * nvsim_mem_new() - A piece of memory with one reference.
 * @gpu: card; NULL only for memory of the host
 * @class: RM class, decides whether the frame buffer is charged
 * @bytes: size
 * @backing: its bytes, taken over; NULL makes them at the first use
 * @made: the memory
 *
 * Context: lock held.
 * Return: RM status; NV_ERR_NO_MEMORY when the frame buffer has no room.
 */
u32 nvsim_mem_new(struct nvsim_gpu *gpu, u32 class, u64 bytes,
		  struct nvsim_backing *backing, struct nvsim_mem **made)
{
	struct nvsim_mem *mem;

	*made = NULL;
	if (!bytes || bytes > 1ull << 47)
		return NV_ERR_INVALID_ARGUMENT;
	bytes = is_frame_buffer(class) ? heap_bytes(bytes) :
		round_up_to(bytes, PAGE_BYTES);
	if (is_frame_buffer(class) &&
	    (!gpu || bytes > gpu->total || gpu->used > gpu->total - bytes))
		return NV_ERR_NO_MEMORY;
	mem = kzalloc(sizeof(*mem), GFP_KERNEL);
	if (!mem)
		return NV_ERR_NO_MEMORY;
	mem->refs = 1;
	mem->class = class;
	mem->bytes = bytes;
	mem->gpu = gpu;
	mem->backing = backing;
	if (is_frame_buffer(class)) {
		mem->charged = bytes;
		gpu->used += bytes;
	}
	*made = mem;
	return NV_OK;
}

/**
 * nvsim_mem_get() - Takes a reference.
 * @mem: memory, or NULL
 *
 * Context: lock held.
 * Return: @mem.
 */
struct nvsim_mem *nvsim_mem_get(struct nvsim_mem *mem)
{
	if (mem)
		mem->refs++;
	return mem;
}

/**
 * nvsim_mem_put() - Gives a reference back; the last one gives the memory back.
 * @mem: memory
 *
 * Context: lock held.
 */
void nvsim_mem_put(struct nvsim_mem *mem)
{
	if (--mem->refs)
		return;
	if (mem->charged)
		mem->gpu->used -= mem->charged;
	if (mem->backing)
		nvsim_host_backing_put(mem->backing);
	kfree(mem);
}

/**
 * nvsim_mem_backing() - The bytes of a memory, made at the first use.
 * @mem: memory
 *
 * Context: lock held.
 * Return: the backing (no reference is taken), or NULL.
 */
struct nvsim_backing *nvsim_mem_backing(struct nvsim_mem *mem)
{
	enum nvsim_backing_kind kind;

	kind = generation(mem->class) == NV_FAMILY_USERMODE ? NVSIM_CONTIGUOUS :
	       NVSIM_SPARSE;
	if (!mem->backing)
		mem->backing = nvsim_host_backing_new(mem->bytes, kind);
	return mem->backing;
}

/**
 * nvsim_mem_at() - Where a byte of a memory lies.
 * @mem: memory
 * @offset: byte
 * @left: how many bytes follow in one piece
 *
 * Context: lock held.
 * Return: pointer, or NULL behind the end.
 */
void *nvsim_mem_at(struct nvsim_mem *mem, u64 offset, u64 *left)
{
	struct nvsim_backing *backing;
	void *at;

	if (offset >= mem->bytes)
		return NULL;
	backing = nvsim_mem_backing(mem);
	if (!backing)
		return NULL;
	at = nvsim_host_backing_at(backing, offset, left);
	if (at && *left > mem->bytes - offset)
		*left = mem->bytes - offset;
	return at;
}

/**
 * nvsim_memory_alloc() - A memory object.
 * @client: whose
 * @parent: handle of the device it is on
 * @handle: wanted handle, 0 chooses
 * @class: RM class; virtual ones reserve addresses only
 * @bytes: wanted size; the real one comes back
 * @limit: the last byte comes back
 *
 * Context: lock held.
 * Return: RM status.
 */
u32 nvsim_memory_alloc(struct nvsim_client *client, u32 parent, u32 *handle,
		       u32 class, u64 *bytes, u64 *limit)
{
	struct nvsim_object *object;
	u32 status;

	status = nvsim_object_new(client, parent, handle, class, &object);
	if (status)
		return status;
	if (class == NV50_MEMORY_VIRTUAL || class == NV01_MEMORY_VIRTUAL) {
		*limit = *bytes - 1;
		return NV_OK;
	}
	status = nvsim_mem_new(object->gpu, class, *bytes, NULL, &object->mem);
	if (status) {
		nvsim_object_free(object);
		return status;
	}
	*bytes = object->mem->bytes;
	*limit = *bytes - 1;
	return NV_OK;
}

/**
 * nvsim_memory_of() - Frame buffer that a client's handles hold on a card.
 * @client: the client
 * @gpu: the card
 * @duplicate: of memory that another object made, or of its own
 *
 * Context: lock held.
 * Return: bytes.
 */
u64 nvsim_memory_of(const struct nvsim_client *client,
		    const struct nvsim_gpu *gpu, bool duplicate)
{
	struct nvsim_object *object;
	u64 bytes = 0;

	list_for_each_entry(object, &client->objects, node)
		if (object->mem && object->mem->gpu == gpu &&
		    object->duplicate == duplicate)
			bytes += object->mem->charged;
	return bytes;
}

static u32 heap_class(const u8 *arg, u32 shift)
{
	if (get32(arg, NVOS32_FLAGS) & NVOS32_FLAGS_VIRTUAL)
		return NV50_MEMORY_VIRTUAL;
	if (get32(arg, NVOS32_ATTR + shift) >> 25 & 3)
		return NV01_MEMORY_SYSTEM;
	return NV01_MEMORY_LOCAL_USER;
}

static u32 heap_alloc(struct nvsim_client *client, u8 *arg, u32 shift)
{
	u64 bytes = get64(arg, NVOS32_SIZE + shift), limit = 0;
	u32 handle = get32(arg, NVOS32_MEMORY), status;

	status = nvsim_memory_alloc(client, get32(arg, RM_OBJECT), &handle,
				    heap_class(arg, shift), &bytes, &limit);
	if (status)
		return status;
	put32(arg, NVOS32_MEMORY, handle);
	put64(arg, NVOS32_SIZE + shift, bytes);
	put64(arg, NVOS32_LIMIT + shift, limit);
	return NV_OK;
}

static u32 heap_free(struct nvsim_client *client, const u8 *arg)
{
	struct nvsim_object *object;

	object = nvsim_object_find(client, get32(arg, NVOS32_MEMORY));
	if (object)
		nvsim_object_free(object);
	return NV_OK;
}

static u32 heap_info(struct nvsim_client *client, u8 *arg)
{
	struct nvsim_object *device;

	device = nvsim_object_find(client, get32(arg, RM_OBJECT));
	if (!device || !device->gpu)
		return NV_ERR_INVALID_DEVICE;
	put64(arg, NVOS32_TOTAL, device->gpu->total);
	put64(arg, NVOS32_FREE, device->gpu->total - device->gpu->used);
	return NV_OK;
}

static u32 heap_call(struct nvsim_file *file, u8 *arg)
{
	struct nvsim_client *client = nvsim_client_find(get32(arg, RM_CLIENT));

	if (!client || client->owner != file)
		return NV_ERR_INVALID_CLIENT;
	put64(arg, NVOS32_TOTAL, 0);
	put64(arg, NVOS32_FREE, 0);
	switch (get32(arg, NVOS32_FUNCTION)) {
	case NVOS32_FUNCTION_ALLOC_SIZE:
		return heap_alloc(client, arg, nvsim.branch->heap_shift);
	case NVOS32_FUNCTION_FREE:
		return heap_free(client, arg);
	case NVOS32_FUNCTION_INFO:
		return heap_info(client, arg);
	}
	return NV_ERR_NOT_SUPPORTED;
}

/**
 * nvsim_vid_heap() - NV_ESC_RM_VID_HEAP_CONTROL.
 * @file: control file
 * @arg: NVOS32 of the branch's size, answered in place
 *
 * Context: lock held.
 */
void nvsim_vid_heap(struct nvsim_file *file, u8 *arg)
{
	put32(arg, NVOS32_STATUS, heap_call(file, arg));
}
