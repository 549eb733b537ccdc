// SPDX-License-Identifier: GPL-2.0-only
/* Controls of the client: version, GPUs by id, address spaces, exports. */
#include "engine.h"

#define STRINGS		3

static u32 build_version(struct nvsim_control *control)
{
	static const char title[] = "NVIDIA UNIX Driver";
	const char *texts[STRINGS] = { nvsim.version, "r000_00", title };
	u32 i;

	for (i = 0; i < STRINGS; i++)
		if (control->list_bytes[i])
			strscpy((char *)control->list[i], texts[i],
				control->list_bytes[i]);
	if (get32(control->params, 0) < 64)
		put32(control->params, 0, 64);
	put32(control->params, 32, 1);
	put32(control->params, 36, 1);
	return NV_OK;
}

static u32 gpu_ids(struct nvsim_control *control)
{
	u32 i;

	memset(control->params, 0xff, control->size);
	for (i = 0; i < nvsim.gpu_count; i++)
		put32(control->params, 4 * i, nvsim.gpus[i].id);
	return NV_OK;
}

static struct nvsim_gpu *gpu_by_id(u32 id)
{
	u32 i;

	for (i = 0; i < nvsim.gpu_count; i++)
		if (nvsim.gpus[i].id == id)
			return &nvsim.gpus[i];
	return NULL;
}

static u32 id_info(struct nvsim_control *control)
{
	const struct nvsim_gpu *gpu = gpu_by_id(get32(control->params, 0));
	u8 *info = control->params;

	if (!gpu)
		return NV_ERR_INVALID_ARGUMENT;
	put32(info, 4, 0);
	put32(info, 8, gpu->minor);
	put32(info, 12, 0);
	if (control->list_bytes[0])
		strscpy((char *)control->list[0], gpu->card->product,
			control->list_bytes[0]);
	put32(info, 24, 0);
	put32(info, 28, gpu->id);
	put32(info, 32, gpu->minor);
	put32(info, 36, ~0u);
	return NV_OK;
}

static u32 id_info_v2(struct nvsim_control *control)
{
	const struct nvsim_gpu *gpu = gpu_by_id(get32(control->params, 0));
	u8 *info = control->params;

	if (!gpu)
		return NV_ERR_INVALID_ARGUMENT;
	put32(info, 4, 0);
	put32(info, 8, gpu->minor);
	put32(info, 12, 0);
	put32(info, 16, 0);
	put32(info, 20, gpu->id);
	put32(info, 24, gpu->minor);
	put32(info, 28, ~0u);
	return NV_OK;
}

static u32 pci_info(struct nvsim_control *control)
{
	const struct nvsim_gpu *gpu = gpu_by_id(get32(control->params, 0));

	if (!gpu)
		return NV_ERR_INVALID_ARGUMENT;
	put32(control->params, 4, 0);
	put16(control->params, 8, gpu->bus);
	put16(control->params, 10, 0);
	return NV_OK;
}

/* 1: host memory, 2: frame buffer, 3: registers */
static u32 address_space(const struct nvsim_object *object)
{
	if (!object)
		return 1;
	if (object->channel || generation(object->class) == NV_FAMILY_USERMODE)
		return 3;
	return object->class == NV01_MEMORY_LOCAL_USER ||
	       object->class == 0xf3 ? 2 : 1;
}

static u32 address_space_type(struct nvsim_control *control)
{
	struct nvsim_object *object;

	if (control->size < 12)	/* 418 has another control of this number */
		return NV_OK;
	object = nvsim_object_find(control->client, get32(control->params, 0));
	put32(control->params, 8, address_space(object));
	return NV_OK;
}

static u32 export_object(struct nvsim_control *control)
{
	struct nvsim_object *object;
	struct nvsim_file *target;

	if (get32(control->params, 0) != 1)
		return NV_ERR_INVALID_ARGUMENT;
	object = nvsim_object_find(control->client, get32(control->params, 12));
	if (!object || !object->mem || object->channel)
		return NV_ERR_OBJECT_NOT_FOUND;
	target = nvsim_host_file_get((int)get32(control->params,
						nvsim.branch->export_fd), true);
	if (!target)
		return NV_ERR_INVALID_ARGUMENT;
	if (target->exported || target->map) {
		nvsim_host_file_put(target);
		return NV_ERR_STATE_IN_USE;
	}
	target->exported = nvsim_mem_get(object->mem);
	nvsim_host_file_put(target);
	return NV_OK;
}

static u32 import_object(struct nvsim_control *control)
{
	struct nvsim_file *source;
	struct nvsim_object *object = NULL;
	u32 handle = get32(control->params, 16), status = NV_ERR_INVALID_ARGUMENT;

	source = nvsim_host_file_get((int)get32(control->params, 0), true);
	if (!source)
		return status;
	if (source->exported)
		status = nvsim_object_new(control->client,
					  get32(control->params, 12), &handle,
					  source->exported->class, &object);
	if (object) {
		object->gpu = source->exported->gpu;
		object->mem = nvsim_mem_get(source->exported);
		object->duplicate = true;
		put32(control->params, 16, handle);
	}
	nvsim_host_file_put(source);
	return status;
}

static const struct nvsim_list version_lists[] = {
	{ .pointer = 8, .count = 0, .element = 1, .direction = 2 },
	{ .pointer = 16, .count = 0, .element = 1, .direction = 2 },
	{ .pointer = 24, .count = 0, .element = 1, .direction = 2 },
};

static const struct nvsim_list name_list[] = {
	{ .pointer = 16, .direction = 2, .fixed = 64 },
};

const struct nvsim_control_row nvsim_controls_system[] = {
	{ 0x00000101, "SYSTEM_GET_BUILD_VERSION", 40, build_version, version_lists, 3 },
	{ 0x00000201, "GPU_GET_ATTACHED_IDS", 128, gpu_ids },
	{ 0x00000202, "GPU_GET_ID_INFO", 40, id_info, name_list, 1 },
	{ 0x00000205, "GPU_GET_ID_INFO_V2", 32, id_info_v2 },
	{ 0x00000214, "GPU_GET_PROBED_IDS", 128, gpu_ids },
	{ 0x0000021b, "GPU_GET_PCI_INFO", 12, pci_info },
	{ 0x00000d01, "CLIENT_GET_ADDR_SPACE_TYPE", 1, address_space_type },
	{ 0x00001001, "CLIENT_GET_ADDR_SPACE_TYPE (418)", 12, address_space_type },
	{ 0x00003d05, "OS_UNIX_EXPORT_OBJECT_TO_FD", 24, export_object },
	{ 0x00003d06, "OS_UNIX_IMPORT_OBJECT_FROM_FD", 20, import_object },
	{ }
};
