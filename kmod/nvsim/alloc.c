// SPDX-License-Identifier: GPL-2.0-only
/* RM_ALLOC: what each class makes. */
#include "engine.h"

#define MAX_PARAMS	512

struct alloc {
	struct nvsim_file *file;
	struct nvsim_client *client;
	struct nvsim_object *object;
	u8 *params;	/* NULL when the caller gave none */
};

static u32 make_device(struct alloc *alloc)
{
	u32 instance = alloc->params ? get32(alloc->params, 0) : 0;
	struct nvsim_gpu *gpu;

	if (instance >= nvsim.gpu_count)
		return NV_ERR_INVALID_ARGUMENT;
	gpu = &nvsim.gpus[instance];
	if (gpu->lost)
		return NV_ERR_GPU_IS_LOST;
	if (!nvsim_host_accessible(gpu))
		return NV_ERR_INSUFFICIENT_PERMISSIONS;
	alloc->object->gpu = gpu;
	return NV_OK;
}

static u32 make_usermode(struct alloc *alloc)
{
	struct nvsim_object *object = alloc->object;
	u32 status;
	u64 left;
	u8 *page;

	if (!object->gpu || object->class > 0xc7ff)
		return NV_ERR_INVALID_CLASS;
	status = nvsim_mem_new(object->gpu, object->class, NV_USERMODE_SIZE, NULL,
			       &object->mem);
	if (status)
		return status;
	page = nvsim_mem_at(object->mem, 0, &left);
	if (!page)
		return NV_ERR_NO_MEMORY;
	put32(page, NV_USERMODE_DOORBELL, ~0u);
	list_add_tail(&object->doorbell, &object->gpu->doorbells);
	return NV_OK;
}

static u32 make_tsg(struct alloc *alloc)
{
	struct nvsim_object *object = alloc->object;

	if (!object->gpu)
		return NV_ERR_INVALID_OBJECT_PARENT;
	object->tsg = kzalloc(sizeof(*object->tsg), GFP_KERNEL);
	if (!object->tsg)
		return NV_ERR_NO_MEMORY;
	nvsim_tsg_init(object->tsg, object->gpu, object->client->task);
	object->tsg->handle = object->handle;
	return NV_OK;
}

static u32 make_channel(struct alloc *alloc)
{
	if (!alloc->params || !alloc->object->gpu)
		return NV_ERR_INVALID_PARAM_STRUCT;
	return nvsim_channel_new(alloc->object, alloc->params);
}

static u32 make_event(struct alloc *alloc)
{
	const struct nvsim_branch *branch = nvsim.branch;
	struct nvsim_object *object = alloc->object;
	struct nvsim_file *file;
	u32 key;

	if (!alloc->params)
		return NV_ERR_INVALID_PARAM_STRUCT;
	object->event_index = get32(alloc->params, branch->event_index);
	key = get32(alloc->params, branch->event_data);
	list_for_each_entry(file, &nvsim.files, node)
		if (file->event_client == object->client->handle &&
		    file->event_key == key)
			object->event_file = file;
	list_add_tail(&object->event, &nvsim.events);
	return NV_OK;
}

static u32 make_memory(struct alloc *alloc)
{
	struct nvsim_object *object = alloc->object;
	u32 status;

	if (!alloc->params)
		return NV_ERR_INVALID_PARAM_STRUCT;
	status = nvsim_mem_new(object->gpu, object->class,
			       get64(alloc->params, NV_MEMORY_SIZE), NULL,
			       &object->mem);
	if (status)
		return status;
	put64(alloc->params, NV_MEMORY_SIZE, object->mem->bytes);
	put64(alloc->params, NV_MEMORY_LIMIT, object->mem->bytes - 1);
	return NV_OK;
}

static u32 make_virtual(struct alloc *alloc)
{
	if (alloc->params)
		put64(alloc->params, NV_MEMORY_LIMIT,
		      get64(alloc->params, NV_MEMORY_SIZE) - 1);
	return NV_OK;
}

static u32 make_nothing(struct alloc *alloc)
{
	return NV_OK;
}

/* The classes of work are known by what their channels carry. */
static u32 make_other(struct alloc *alloc)
{
	u32 class = alloc->object->class;

	if (generation(class) != NV_FAMILY_COMPUTE && generation(class) != NV_FAMILY_COPY)
		nvsim_unknown("accepted class", class, 0);
	return NV_OK;
}

static u32 refuse(struct alloc *alloc)
{
	return NV_ERR_INVALID_CLASS;
}

/* Parameters in bytes; 0: the caller's are neither read nor written. */
struct class_row {
	u32 class;
	const char *name;
	u16 params;
	u32 (*make)(struct alloc *alloc);
};

static const struct class_row classes[] = {
	{ NV01_EVENT, "NV01_EVENT", 32, make_event },
	{ NV01_EVENT_KERNEL_CALLBACK, "NV01_EVENT_KERNEL_CALLBACK", 32, make_event },
	{ NV01_EVENT_OS_EVENT, "NV01_EVENT_OS_EVENT", 32, make_event },
	{ NV01_MEMORY_SYSTEM, "NV01_MEMORY_SYSTEM", 120, make_memory },
	{ NV01_MEMORY_LOCAL_USER, "NV01_MEMORY_LOCAL_USER", 120, make_memory },
	{ NV01_MEMORY_LOCAL_PRIVILEGED, "NV01_MEMORY_LOCAL_PRIVILEGED", 0, refuse },
	{ NV50_MEMORY_VIRTUAL, "NV50_MEMORY_VIRTUAL", 120, make_virtual },
	{ NV01_MEMORY_VIRTUAL, "NV01_MEMORY_VIRTUAL", 0, make_nothing },
	{ 0x0073, "NV04_DISPLAY_COMMON", 0, make_nothing },
	{ NV01_DEVICE_0, "NV01_DEVICE_0", 56, make_device },
	{ RM_USER_SHARED_DATA, "RM_USER_SHARED_DATA", 0, refuse },
	{ NV20_SUBDEVICE_0, "NV20_SUBDEVICE_0", 0, make_nothing },
	{ 0x2081, "NV2081_BINAPI", 0, make_nothing },
	{ 0x208f, "NV20_SUBDEVICE_DIAG", 0, make_nothing },
	{ 0x83de, "GT200_DEBUGGER", 0, make_nothing },
	{ KEPLER_CHANNEL_GROUP_A, "KEPLER_CHANNEL_GROUP_A", 0, make_tsg },
	{ FERMI_CONTEXT_SHARE_A, "FERMI_CONTEXT_SHARE_A", 0, make_nothing },
	{ FERMI_VASPACE_A, "FERMI_VASPACE_A", 0, make_nothing },
	{ 0xcb33, "NV_CONFIDENTIAL_COMPUTE", 0, make_nothing },
	{ }
};

static const struct class_row generations[] = {
	{ NV_FAMILY_USERMODE, "USERMODE", 0, make_usermode },
	{ NV_FAMILY_GPFIFO, "CHANNEL_GPFIFO", 304, make_channel },
	{ }
};

static const struct class_row other = { 0, "other", 0, make_other };

static const struct class_row *class_find(u32 class)
{
	const struct class_row *row;

	for (row = classes; row->name; row++)
		if (row->class == class)
			return row;
	for (row = generations; row->name; row++)
		if (row->class == generation(class))
			return row;
	return &other;
}

static bool is_root(u32 class)
{
	return class == NV01_ROOT || class == NV01_ROOT_NON_PRIV ||
	       class == NV01_ROOT_CLIENT;
}

static bool is_event(u32 class)
{
	return class == NV01_EVENT || class == NV01_EVENT_OS_EVENT;
}

static bool may_use(struct nvsim_file *file, struct nvsim_client *client, u32 class)
{
	if (client->owner == file)
		return true;
	/* before REGISTER_FD existed, nothing tied a device file to its client */
	return file->gpu && is_event(class) &&
	       (file->control == client->owner || !nvsim.branch->register_fd);
}

static u32 alloc_object(struct nvsim_file *file, u8 *arg, u8 *params)
{
	u32 class = get32(arg, NVOS21_CLASS), handle = get32(arg, NVOS21_NEW);
	struct alloc making = { .file = file, .params = params };
	u32 status;

	making.client = nvsim_client_find(get32(arg, RM_CLIENT));
	if (!making.client || !may_use(file, making.client, class))
		return NV_ERR_INVALID_CLIENT;
	status = nvsim_object_new(making.client, get32(arg, RM_OBJECT), &handle,
				  class, &making.object);
	if (status)
		return status;
	status = making.object->gpu && making.object->gpu->lost ?
		 NV_ERR_GPU_IS_LOST : class_find(class)->make(&making);
	if (status) {
		nvsim_object_free(making.object);
		return status;
	}
	put32(arg, NVOS21_NEW, handle);
	return NV_OK;
}

static int alloc_root(struct nvsim_file *file, u8 *arg, u32 *status)
{
	void *task = nvsim_host_task_get();
	u32 handle = get32(arg, NVOS21_NEW);
	u64 params = get64(arg, NVOS21_PARAMS);

	nvsim_lock();
	*status = nvsim_client_new(file, &handle, task);
	nvsim_unlock();
	if (*status) {
		nvsim_host_task_put(task);
		return 0;
	}
	put32(arg, NVOS21_NEW, handle);
	if (params && nvsim_host_copy_out(params, &handle, sizeof(handle)))
		*status = NV_ERR_INVALID_POINTER;
	return 0;
}

static u32 status_offset(u32 size)
{
	return size == NVOS21_SIZE ? nvsim.branch->alloc32_status :
	       nvsim.branch->alloc_status;
}

/**
 * nvsim_rm_alloc() - NV_ESC_RM_ALLOC in its 32-byte and its longer form.
 * @file: control file; for events also a device file
 * @arg: NVOS21 or NVOS64, answered in place
 * @size: which of them
 *
 * Context: lock not held.
 * Return: 0, or -EINVAL for a file that may not allocate this class.
 */
int nvsim_rm_alloc(struct nvsim_file *file, u8 *arg, u32 size)
{
	const struct class_row *row = class_find(get32(arg, NVOS21_CLASS));
	u64 from = get64(arg, NVOS21_PARAMS);
	u8 params[MAX_PARAMS];
	u32 status = NV_OK;
	bool given = row->params && from;

	if (file->gpu && !is_event(get32(arg, NVOS21_CLASS)))
		return -EINVAL;
	if (is_root(get32(arg, NVOS21_CLASS))) {
		int error = alloc_root(file, arg, &status);

		put32(arg, status_offset(size), status);
		return error;
	}
	if (given && nvsim_host_copy_in(params, from, row->params)) {
		put32(arg, status_offset(size), NV_ERR_INVALID_POINTER);
		return 0;
	}
	nvsim_lock();
	status = alloc_object(file, arg, given ? params : NULL);
	nvsim_unlock();
	if (given && !status && nvsim_host_copy_out(from, params, row->params))
		status = NV_ERR_INVALID_POINTER;
	put32(arg, status_offset(size), status);
	return 0;
}

static u32 legacy_heap(struct nvsim_client *client, u8 *arg)
{
	struct nvsim_object *device;

	device = nvsim_object_find(client, get32(arg, RM_OBJECT));
	if (!device || !device->gpu)
		return NV_ERR_INVALID_OBJECT_PARENT;
	put64(arg, NVOS02_LIMIT, device->gpu->total - 1);
	return NV_OK;
}

static u32 adopt(u8 *arg, struct nvsim_backing **pinned, struct nvsim_file *target)
{
	struct nvsim_client *client = nvsim_client_find(get32(arg, RM_CLIENT));
	u32 handle = get32(arg, NVOS02_NEW), class = get32(arg, NVOS02_CLASS);
	struct nvsim_object *object;
	u32 status;

	if (!client)
		return NV_ERR_INVALID_CLIENT;
	if (class == NV01_MEMORY_LOCAL_USER)
		return legacy_heap(client, arg);
	if (class != NV01_MEMORY_SYSTEM_OS_DESC && class != NV01_MEMORY_SYSTEM)
		return NV_ERR_INVALID_CLASS;
	if (class == NV01_MEMORY_SYSTEM_OS_DESC && !*pinned)
		return NV_ERR_INVALID_ADDRESS;
	status = nvsim_object_new(client, get32(arg, RM_OBJECT), &handle, class,
				  &object);
	if (status)
		return status;
	status = nvsim_mem_new(object->gpu, class, get64(arg, NVOS02_LIMIT) + 1,
			       *pinned, &object->mem);
	if (status) {
		nvsim_object_free(object);
		return status;
	}
	*pinned = NULL;
	put32(arg, NVOS02_NEW, handle);
	if (target && !(get32(arg, NVOS02_FLAGS) & NVOS02_FLAGS_NO_MAPPING))
		return nvsim_map_context(target, object, 0,
					 get64(arg, NVOS02_LIMIT) + 1);
	return NV_OK;
}

/**
 * nvsim_alloc_memory() - NV_ESC_RM_ALLOC_MEMORY: memory of the host for the GPU.
 * @file: device file
 * @arg: NVOS02, answered in place
 *
 * Context: lock not held.
 * Return: 0.
 */
int nvsim_alloc_memory(struct nvsim_file *file, u8 *arg)
{
	struct nvsim_backing *pinned = NULL;
	struct nvsim_file *target = NULL;
	u32 status;

	if (get32(arg, NVOS02_CLASS) == NV01_MEMORY_SYSTEM)
		target = nvsim_map_target((int)get32(arg, NVOS02_FD));
	if (get32(arg, NVOS02_CLASS) == NV01_MEMORY_SYSTEM_OS_DESC)
		pinned = nvsim_host_backing_pin(get64(arg, NVOS02_MEMORY),
						get64(arg, NVOS02_LIMIT) + 1);
	nvsim_lock();
	status = adopt(arg, &pinned, target);
	nvsim_unlock();
	if (target)
		nvsim_host_file_put(target);
	if (pinned)
		nvsim_host_backing_put(pinned);
	put32(arg, NVOS02_STATUS, status);
	return 0;
}
