// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ioctls of /dev/nvidiactl and /dev/nvidia<N>: a table of number, exact size and
 * file. The argument is copied in once, answered in place and copied out once.
 */
#include "rm.h"

#define XFER_NUMBER	211
#define MAX_ARGUMENT	16384
#define IOC_NUMBER(command)	((command) & 0xff)
#define IOC_SIZE(command)	((command) >> 16 & 0x3fff)

enum where { CONTROL = 1, DEVICE = 2, EITHER = 3 };

struct escape {
	struct nvsim_file *file;
	u8 *arg;
	u32 size;
};

struct escape_row {
	u16 number;
	u8 where;
	const char *name;
	u16 size;		/* 0: any */
	u16 size_at;		/* or where in the branch the size is, plus 1 */
	int (*act)(struct escape *escape);
};

static struct nvsim_client *owned(struct escape *escape)
{
	struct nvsim_client *client;

	client = nvsim_client_find(get32(escape->arg, RM_CLIENT));
	return client && client->owner == escape->file ? client : NULL;
}

static int alloc_memory(struct escape *escape)
{
	return nvsim_alloc_memory(escape->file, escape->arg);
}

static int rm_alloc(struct escape *escape)
{
	if (escape->size != NVOS21_SIZE &&
	    escape->size != nvsim.branch->alloc_size)
		return -EINVAL;
	return nvsim_rm_alloc(escape->file, escape->arg, escape->size);
}

static u32 free_locked(struct escape *escape)
{
	struct nvsim_client *client;
	struct nvsim_object *object;
	u32 handle = get32(escape->arg, NVOS00_OLD);

	client = nvsim_client_find(get32(escape->arg, RM_CLIENT));
	if (!client)
		return NV_OK;
	if (client->owner != escape->file)
		return NV_ERR_INVALID_CLIENT;
	if (handle == client->handle) {
		nvsim_client_free(client);
		return NV_OK;
	}
	object = nvsim_object_find(client, handle);
	if (object)
		nvsim_object_free(object);
	return NV_OK;
}

static int rm_free(struct escape *escape)
{
	u32 status;

	nvsim_lock();
	status = free_locked(escape);
	nvsim_unlock();
	put32(escape->arg, NVOS00_STATUS, status);
	return 0;
}

static int rm_control(struct escape *escape)
{
	return nvsim_rm_control(escape->file, escape->arg);
}

static u32 dup_locked(struct escape *escape)
{
	struct nvsim_client *client = owned(escape), *from;
	u32 handle = get32(escape->arg, NVOS55_NEW), status;
	struct nvsim_object *source, *object;

	from = nvsim_client_find(get32(escape->arg, NVOS55_CLIENT_SOURCE));
	if (!client || !from)
		return NV_ERR_INVALID_CLIENT;
	source = nvsim_object_find(from, get32(escape->arg, NVOS55_OBJECT_SOURCE));
	if (!source)
		return NV_ERR_OBJECT_NOT_FOUND;
	if (!source->mem || source->channel)
		return NV_ERR_NOT_SUPPORTED;
	status = nvsim_object_new(client, get32(escape->arg, RM_OBJECT), &handle,
				  source->class, &object);
	if (status)
		return status;
	object->gpu = source->gpu;
	object->mem = nvsim_mem_get(source->mem);
	object->duplicate = true;
	put32(escape->arg, NVOS55_NEW, handle);
	return NV_OK;
}

static int rm_dup(struct escape *escape)
{
	u32 status;

	nvsim_lock();
	status = dup_locked(escape);
	nvsim_unlock();
	put32(escape->arg, NVOS55_STATUS, status);
	return 0;
}

static int rm_share(struct escape *escape)
{
	put32(escape->arg, NVOS57_STATUS, NV_OK);
	return 0;
}

static int vid_heap(struct escape *escape)
{
	nvsim_lock();
	nvsim_vid_heap(escape->file, escape->arg);
	nvsim_unlock();
	return 0;
}

static int access_registry(struct escape *escape)
{
	if (escape->size < 8)
		return -EINVAL;
	put32(escape->arg, escape->size - 8, NV_ERR_OBJECT_NOT_FOUND);
	put32(escape->arg, escape->size - 4, NV_ERR_OBJECT_NOT_FOUND);
	return 0;
}

static int map_memory(struct escape *escape)
{
	put32(escape->arg, NVOS33_STATUS,
	      nvsim_map_memory(escape->file, escape->arg));
	return 0;
}

static int unmap_memory(struct escape *escape)
{
	put32(escape->arg, NVOS34_STATUS, NV_OK);
	return 0;
}

static u32 map_dma_locked(struct escape *escape)
{
	struct nvsim_client *client = owned(escape);
	struct nvsim_object *object;
	int error;

	if (!client)
		return NV_ERR_INVALID_CLIENT;
	object = nvsim_object_find(client, get32(escape->arg, NVOS46_MEMORY));
	if (!object || !object->mem)
		return NV_ERR_OBJECT_NOT_FOUND;
	error = nvsim_space_add(&client->space,
				get64(escape->arg, escape->size - 16),
				get64(escape->arg, NVOS46_LENGTH),
				get64(escape->arg, NVOS46_OFFSET), object->mem);
	return error ? NV_ERR_INVALID_ARGUMENT : NV_OK;
}

static int map_dma(struct escape *escape)
{
	u32 status;

	nvsim_lock();
	status = map_dma_locked(escape);
	nvsim_unlock();
	put32(escape->arg, escape->size - 8, status);
	return 0;
}

static int unmap_dma(struct escape *escape)
{
	struct nvsim_client *client;

	nvsim_lock();
	client = owned(escape);
	if (client)
		nvsim_space_remove(&client->space,
				   get64(escape->arg, NVOS47_DMA_OFFSET), 1);
	nvsim_unlock();
	put32(escape->arg, escape->size - 8,
	      client ? NV_OK : NV_ERR_INVALID_CLIENT);
	return 0;
}

static int event_data(struct escape *escape)
{
	put32(escape->arg, NVOS41_STATUS,
	      nvsim_event_data(escape->file, escape->arg));
	return 0;
}

static int update_mapping(struct escape *escape)
{
	put32(escape->arg, NVOS56_STATUS, NV_OK);
	return 0;
}

/* Entries of 72 bytes, or of 80 before 460. */
static int card_info(struct escape *escape)
{
	u32 entry = nvsim.branch->card_info_size, i;
	u32 shift = entry == 80 ? 4 : 0;	/* of what follows the PCI address */

	memset(escape->arg, 0, escape->size);
	for (i = 0; i < nvsim.gpu_count && entry * (i + 1) <= escape->size; i++) {
		const struct nvsim_gpu *gpu = &nvsim.gpus[i];
		u8 *card = escape->arg + entry * i;

		card[0] = 1;
		card[8] = gpu->bus;
		put16(card, 12, 0x10de);
		put16(card, 14, gpu->card->device);
		if (shift)
			card[16] = 1;
		put32(card, 16 + shift, gpu->id);
		put16(card, 20 + shift, 11);
		put64(card, 24 + 2 * shift, 0xfd000000 - i * 0x1000000ull);
		put64(card, 32 + 2 * shift, 0x1000000);
		put64(card, 40 + 2 * shift, 0xe0000000 - i * 0x10000000ull);
		put64(card, 48 + 2 * shift, 0x10000000);
		put32(card, 56 + 2 * shift, gpu->minor);
	}
	return 0;
}

static int register_fd(struct escape *escape)
{
	struct nvsim_file *control;
	int error = -EINVAL;

	if (!nvsim.branch->register_fd)
		return -EINVAL;
	control = nvsim_host_file_get((int)get32(escape->arg, 0), true);
	if (!control)
		return -EINVAL;
	nvsim_lock();
	if (!escape->file->control) {
		escape->file->control = control;
		error = 0;
	}
	nvsim_unlock();
	if (error)
		nvsim_host_file_put(control);
	return error;
}

/* The file is a key: the event object that names it wakes this very file. */
static int alloc_os_event(struct escape *escape)
{
	bool old = escape->size == 20;
	u32 key = get32(escape->arg, old ? 12 : 8);

	nvsim_lock();
	escape->file->event_client = get32(escape->arg, 0);
	escape->file->event_key = key;
	nvsim_unlock();
	if (old)
		put32(escape->arg, 8, key);
	put32(escape->arg, old ? 16 : 12, NV_OK);
	return 0;
}

static int free_os_event(struct escape *escape)
{
	nvsim_lock();
	escape->file->event_client = 0;
	nvsim_unlock();
	put32(escape->arg, 12, NV_OK);
	return 0;
}

static int status_code(struct escape *escape)
{
	put32(escape->arg, escape->size - 4, NV_OK);
	return 0;
}

static int check_version(struct escape *escape)
{
	put32(escape->arg, 4, 1);
	strscpy((char *)escape->arg + 8, nvsim.version, 64);
	return 0;
}

static int accept(struct escape *escape)
{
	return 0;
}

static int sys_params(struct escape *escape)
{
	put64(escape->arg, 0, 128 << 20);
	return 0;
}

static int numa_info(struct escape *escape)
{
	memset(escape->arg, 0, escape->size);
	put32(escape->arg, 0, ~0u);
	return 0;
}

static int wait_open_complete(struct escape *escape)
{
	memset(escape->arg, 0, escape->size);
	return 0;
}

#define OF_BRANCH(field)	(offsetof(struct nvsim_branch, field) + 1)

static const struct escape_row escapes[] = {
	{ 0x27, DEVICE, "RM_ALLOC_MEMORY", 56, 0, alloc_memory },
	{ 0x29, CONTROL, "RM_FREE", 16, 0, rm_free },
	{ 0x2a, CONTROL, "RM_CONTROL", 32, 0, rm_control },
	{ 0x2b, EITHER, "RM_ALLOC", 0, 0, rm_alloc },
	{ 0x34, CONTROL, "RM_DUP_OBJECT", 28, 0, rm_dup },
	{ 0x35, CONTROL, "RM_SHARE", 24, 0, rm_share },
	{ 0x4a, CONTROL, "RM_VID_HEAP_CONTROL", 0, OF_BRANCH(heap_size), vid_heap },
	{ 0x4d, CONTROL, "RM_ACCESS_REGISTRY", 0, 0, access_registry },
	{ 0x4e, CONTROL, "RM_MAP_MEMORY", 56, 0, map_memory },
	{ 0x4f, CONTROL, "RM_UNMAP_MEMORY", 32, 0, unmap_memory },
	{ 0x52, EITHER, "RM_GET_EVENT_DATA", 16, 0, event_data },
	{ 0x57, CONTROL, "RM_MAP_MEMORY_DMA", 0, OF_BRANCH(map_dma_size), map_dma },
	{ 0x58, CONTROL, "RM_UNMAP_MEMORY_DMA", 0, OF_BRANCH(unmap_dma_size), unmap_dma },
	{ 0x5e, CONTROL, "RM_UPDATE_DEVICE_MAPPING_INFO", 40, 0, update_mapping },
	{ 200, CONTROL, "CARD_INFO", 0, 0, card_info },
	{ 201, DEVICE, "REGISTER_FD", 4, 0, register_fd },
	{ 202, CONTROL, "ENV_INFO", 4, 0, accept },
	{ 206, EITHER, "ALLOC_OS_EVENT", 0, OF_BRANCH(os_event_size), alloc_os_event },
	{ 207, EITHER, "FREE_OS_EVENT", 16, 0, free_os_event },
	{ 209, DEVICE, "STATUS_CODE", 12, 0, status_code },
	{ 210, CONTROL, "CHECK_VERSION_STR", 72, 0, check_version },
	{ 212, CONTROL, "ATTACH_GPUS_TO_FD", 0, 0, accept },
	{ 214, CONTROL, "SYS_PARAMS", 8, 0, sys_params },
	{ 215, DEVICE, "NUMA_INFO", 0, OF_BRANCH(numa_info_size), numa_info },
	{ 218, EITHER, "WAIT_OPEN_COMPLETE", 8, 0, wait_open_complete },
	{ }
};

static const struct escape_row *escape_find(u32 number)
{
	const struct escape_row *row;

	for (row = escapes; row->name; row++)
		if (row->number == number)
			return row;
	return NULL;
}

static bool size_is_right(const struct escape_row *row, u32 size)
{
	const u8 *branch = (const u8 *)nvsim.branch;
	u32 want = row->size;

	if (row->size_at)
		want = get16(branch, row->size_at - 1);
	return want ? size == want : size >= 4;
}

/* The row of a number; NULL when it, its size or the file is wrong. */
static const struct escape_row *row_of(const struct nvsim_file *file, u32 number,
				       u32 size)
{
	const struct escape_row *row = escape_find(number);

	if (!row) {
		nvsim_lock();
		nvsim_unknown("refused ioctl", number, size);
		nvsim_unlock();
		return NULL;
	}
	if (!(row->where & (file->gpu ? DEVICE : CONTROL)) ||
	    !size_is_right(row, size))
		return NULL;
	return row;
}

static long run(struct nvsim_file *file, u32 number, u32 size, u64 argument)
{
	const struct escape_row *row = row_of(file, number, size);
	struct escape escape = { .file = file, .size = size };
	long result;

	if (!row)
		return -EINVAL;
	escape.arg = kvzalloc(size, GFP_KERNEL);
	if (!escape.arg)
		return -ENOMEM;
	result = nvsim_host_copy_in(escape.arg, argument, size);
	if (!result) {
		result = row->act(&escape);
		if (nvsim_host_copy_out(argument, escape.arg, size))
			result = -EFAULT;
	}
	kvfree(escape.arg);
	return result;
}

/**
 * nvsim_ioctl() - An ioctl of a control or device file.
 * @file: the file
 * @command: command word; only its number and size count
 * @argument: user address
 *
 * Context: lock not held.
 * Return: 0 or a negative errno; RM's own status is in the argument.
 */
long nvsim_ioctl(struct nvsim_file *file, u32 command, u64 argument)
{
	u32 number = IOC_NUMBER(command), size = IOC_SIZE(command);
	u8 xfer[16];

	nvsim.ioctls++;
	if (number != XFER_NUMBER)
		return run(file, number, size, argument);
	if (size != sizeof(xfer))
		return -EINVAL;
	if (nvsim_host_copy_in(xfer, argument, sizeof(xfer)))
		return -EFAULT;
	if (get32(xfer, 4) > MAX_ARGUMENT)
		return -EINVAL;
	return run(file, get32(xfer, 0), get32(xfer, 4), get64(xfer, 8));
}

/**
 * nvsim_file_open() - Makes a file of the control node or of a card.
 * @file: zeroed, embedded in the host's own
 * @minor: 255 or the card's number
 *
 * Context: lock not held.
 * Return: 0, or -ENXIO when there is no such card.
 */
int nvsim_file_open(struct nvsim_file *file, u32 minor)
{
	if (minor != NVSIM_CONTROL_MINOR && minor >= nvsim.gpu_count)
		return -ENXIO;
	file->minor = minor;
	file->gpu = minor == NVSIM_CONTROL_MINOR ? NULL : &nvsim.gpus[minor];
	nvsim_lock();
	list_add_tail(&file->node, &nvsim.files);
	nvsim_unlock();
	return 0;
}

static void forget_events(const struct nvsim_file *file)
{
	struct nvsim_object *object;

	list_for_each_entry(object, &nvsim.events, event)
		if (object->event_file == file)
			object->event_file = NULL;
}

/**
 * nvsim_file_close() - Ends a file: a control file takes its clients along.
 * @file: the file
 *
 * Context: lock not held.
 */
void nvsim_file_close(struct nvsim_file *file)
{
	struct nvsim_client *client, *next;

	nvsim_lock();
	list_for_each_entry_safe(client, next, &nvsim.clients, node)
		if (client->owner == file)
			nvsim_client_free(client);
	forget_events(file);
	list_del(&file->node);
	if (file->map)
		nvsim_mem_put(file->map);
	if (file->exported)
		nvsim_mem_put(file->exported);
	nvsim_unlock();
	if (file->control)
		nvsim_host_file_put(file->control);
}
