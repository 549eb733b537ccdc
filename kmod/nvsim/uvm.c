// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/nvidia-uvm: its ioctls are plain numbers. Its address space is where the
 * channels of the client that was bound to it resolve.
 */
#include "rm.h"

#define UVM_MAX_ARGUMENT	9264

struct uvm_call {
	struct nvsim_uvm *uvm;
	u8 *arg;
};

struct uvm_row {
	u32 number;
	const char *name;
	u16 size;		/* 0: the branch's form of MAP_EXTERNAL_ALLOCATION */
	u16 status;		/* where its status is */
	u32 (*act)(struct uvm_call *call);	/* NULL: accepted */
};

static void bind(struct uvm_call *call, u32 handle)
{
	struct nvsim_client *client = nvsim_client_find(handle);

	if (client)
		client->uvm = call->uvm;
}

static u32 register_space(struct uvm_call *call)
{
	bind(call, get32(call->arg, 0x14));
	return NV_OK;
}

static u32 register_channel(struct uvm_call *call)
{
	bind(call, get32(call->arg, 0x14));
	return NV_OK;
}

static u32 register_gpu(struct uvm_call *call)
{
	u32 i;

	for (i = 0; i < nvsim.gpu_count; i++)
		if (!memcmp(call->arg, nvsim.gpus[i].uuid, 16))
			return nvsim_host_accessible(&nvsim.gpus[i]) ? NV_OK :
			       NV_ERR_INSUFFICIENT_PERMISSIONS;
	return NV_ERR_INVALID_DEVICE;
}

static u32 map_external(struct uvm_call *call)
{
	u32 at = nvsim.branch->uvm_map_client;
	struct nvsim_client *client = nvsim_client_find(get32(call->arg, at));
	struct nvsim_object *object;
	u64 bytes = get64(call->arg, 8), offset = get64(call->arg, 16);

	if (!client)
		return NV_ERR_INVALID_CLIENT;
	object = nvsim_object_find(client, get32(call->arg, at + 4));
	if (!object || !object->mem)
		return NV_ERR_OBJECT_NOT_FOUND;
	if (offset > object->mem->bytes || bytes > object->mem->bytes - offset)
		return NV_ERR_INVALID_ARGUMENT;
	if (nvsim_space_add(&call->uvm->space, get64(call->arg, 0), bytes, offset,
			    object->mem))
		return NV_ERR_INVALID_ADDRESS;
	return NV_OK;
}

static u32 free_range(struct uvm_call *call)
{
	struct nvsim_range *range;

	range = nvsim_space_find(&call->uvm->space, get64(call->arg, 0));
	if (range)
		nvsim_space_remove(&call->uvm->space, range->va, range->bytes);
	return NV_OK;
}

static u32 is_8_supported(struct uvm_call *call)
{
	put32(call->arg, 0, 1);
	return NV_OK;
}

static const struct uvm_row rows[] = {
	{ UVM_INITIALIZE, "INITIALIZE", 12, 8, NULL },
	{ UVM_DEINITIALIZE, "DEINITIALIZE", 0xffff, 0, NULL },
	{ 23, "CREATE_RANGE_GROUP", 16, 8, NULL },
	{ 24, "DESTROY_RANGE_GROUP", 16, 8, NULL },
	{ 25, "REGISTER_GPU_VASPACE", 32, 28, register_space },
	{ 26, "UNREGISTER_GPU_VASPACE", 20, 16, NULL },
	{ 27, "REGISTER_CHANNEL", 56, 48, register_channel },
	{ 28, "UNREGISTER_CHANNEL", 28, 24, NULL },
	{ 29, "ENABLE_PEER_ACCESS", 36, 32, NULL },
	{ 30, "DISABLE_PEER_ACCESS", 36, 32, NULL },
	{ 31, "SET_RANGE_GROUP", 32, 24, NULL },
	{ 33, "MAP_EXTERNAL_ALLOCATION", 0, 0, map_external },
	{ 34, "FREE", 24, 16, free_range },
	{ 37, "REGISTER_GPU", 40, 0xffff, register_gpu },
	{ 38, "UNREGISTER_GPU", 20, 16, NULL },
	{ 39, "PAGEABLE_MEM_ACCESS", 8, 4, NULL },
	{ 42, "SET_PREFERRED_LOCATION", 40, 0xffff, NULL },
	{ 43, "UNSET_PREFERRED_LOCATION", 24, 16, NULL },
	{ 44, "ENABLE_READ_DUPLICATION", 24, 16, NULL },
	{ 45, "DISABLE_READ_DUPLICATION", 24, 16, NULL },
	{ 46, "SET_ACCESSED_BY", 40, 32, NULL },
	{ 47, "UNSET_ACCESSED_BY", 40, 32, NULL },
	{ 51, "MIGRATE", 0xffff, 0, NULL },
	{ 53, "MIGRATE_RANGE_GROUP", 28, 24, NULL },
	{ 54, "ENABLE_SYSTEM_WIDE_ATOMICS", 20, 16, NULL },
	{ 55, "DISABLE_SYSTEM_WIDE_ATOMICS", 20, 16, NULL },
	{ 65, "MAP_DYNAMIC_PARALLELISM_REGION", 40, 32, NULL },
	{ 66, "UNMAP_EXTERNAL", 40, 0xffff, free_range },
	{ 68, "ALLOC_SEMAPHORE_POOL", 24, 0xffff, NULL },
	{ 71, "POPULATE_PAGEABLE", 0xffff, 0, NULL },
	{ 72, "VALIDATE_VA_RANGE", 24, 16, NULL },
	{ 73, "CREATE_EXTERNAL_RANGE", 24, 16, NULL },
	{ 75, "MM_INITIALIZE", 8, 4, NULL },
	{ 2047, "IS_8_SUPPORTED", 8, 4, is_8_supported },
	{ }
};

static const struct uvm_row *row_find(u32 number)
{
	const struct uvm_row *row;

	for (row = rows; row->name; row++)
		if (row->number == number)
			return row;
	return NULL;
}

static u32 size_of(const struct uvm_row *row)
{
	bool old = nvsim.branch->number < 450;

	if (row->number == 37 && old)
		return 28;
	if (row->number == 66 && old)
		return 32;
	return row->size ? row->size : nvsim.branch->uvm_map_size;
}

/* Statuses that the tables of the branch place. */
static u32 status_of(const struct uvm_row *row)
{
	switch (row->number) {
	case 33:
		return nvsim.branch->uvm_map_client + nvsim.branch->uvm_map_status;
	case 37:
		return nvsim.branch->number < 450 ? 24 : 36;
	case 66:
		return nvsim.branch->uvm_unmap_status;
	}
	return row->status;
}

static long act(struct nvsim_uvm *uvm, const struct uvm_row *row, u64 argument)
{
	u32 size = size_of(row), status;
	struct uvm_call call = { .uvm = uvm };
	long result = 0;

	call.arg = kvzalloc(size, GFP_KERNEL);
	if (!call.arg)
		return -ENOMEM;
	if (nvsim_host_copy_in(call.arg, argument, size)) {
		kvfree(call.arg);
		return -EFAULT;
	}
	nvsim_lock();
	status = row->act ? row->act(&call) : NV_OK;
	nvsim_unlock();
	if (status_of(row) + 4 <= size)
		put32(call.arg, status_of(row), status);
	if (nvsim_host_copy_out(argument, call.arg, size))
		result = -EFAULT;
	kvfree(call.arg);
	return result;
}

/**
 * nvsim_uvm_ioctl() - An ioctl of the UVM file.
 * @uvm: the file's state
 * @command: its number
 * @argument: user address
 *
 * Context: lock not held.
 * Return: 0, -EFAULT, -ENOMEM; -EINVAL for numbers that are not known.
 */
long nvsim_uvm_ioctl(struct nvsim_uvm *uvm, u32 command, u64 argument)
{
	const struct uvm_row *row = row_find(command);

	if (!row) {
		nvsim_lock();
		nvsim_unknown("refused ioctl of UVM", command, 0);
		nvsim_unlock();
		return -EINVAL;
	}
	if (row->size == 0xffff)
		return 0;
	return act(uvm, row, argument);
}

/**
 * nvsim_uvm_open() - Makes a UVM file.
 * @uvm: zeroed
 *
 * Context: lock not held.
 */
void nvsim_uvm_open(struct nvsim_uvm *uvm)
{
	nvsim_lock();
	list_add_tail(&uvm->node, &nvsim.uvms);
	nvsim_unlock();
}

/**
 * nvsim_uvm_close() - Ends a UVM file with its address space.
 * @uvm: the file's state
 *
 * Context: lock not held.
 */
void nvsim_uvm_close(struct nvsim_uvm *uvm)
{
	struct nvsim_client *client;

	nvsim_lock();
	list_for_each_entry(client, &nvsim.clients, node)
		if (client->uvm == uvm)
			client->uvm = NULL;
	nvsim_space_free(&uvm->space);
	list_del(&uvm->node);
	nvsim_unlock();
}

/**
 * nvsim_uvm_mmap() - Memory that both sides see at its own address.
 * @uvm: the file's state
 * @va: address on both sides
 * @bytes: length
 * @backing: its bytes, taken over also after a failure
 *
 * Context: lock not held; may be called under mmap_lock.
 * Return: 0, -EINVAL, -ENOMEM.
 */
int nvsim_uvm_mmap(struct nvsim_uvm *uvm, u64 va, u64 bytes,
		   struct nvsim_backing *backing)
{
	struct nvsim_mem *mem;
	int error = -ENOMEM;

	nvsim_lock();
	if (nvsim_mem_new(NULL, NV01_MEMORY_SYSTEM, bytes, backing, &mem)) {
		nvsim_host_backing_put(backing);
	} else {
		error = nvsim_space_add(&uvm->space, va, bytes, 0, mem);
		nvsim_mem_put(mem);
	}
	nvsim_unlock();
	return error;
}

/**
 * nvsim_uvm_munmap() - The end of a mapping of the UVM file.
 * @uvm: the file's state
 * @va: address
 * @bytes: length
 *
 * Context: lock not held; may be called under mmap_lock.
 */
void nvsim_uvm_munmap(struct nvsim_uvm *uvm, u64 va, u64 bytes)
{
	nvsim_lock();
	nvsim_space_remove(&uvm->space, va, bytes);
	nvsim_unlock();
}
