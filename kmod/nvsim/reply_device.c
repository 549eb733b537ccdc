// SPDX-License-Identifier: GPL-2.0-only
/* Controls of devices and subdevices: identity, memory, processes. */
#include "engine.h"

#define KIB		10
#define BAR1_KIB	(256u << 10)
#define MAX_PIDS	950
#define BUS_INFO_TYPE		0
#define BUS_INFO_TYPE_PCI_EXPRESS	3

static u32 name_string(struct nvsim_control *control)
{
	memset(control->params + 4, 0, control->size - 4);
	strscpy((char *)control->params + 4, control->gpu->card->product,
		control->size - 4);
	return NV_OK;
}

/* flags bit 1: 16 raw bytes; else text */
static u32 gid_info(struct nvsim_control *control)
{
	const u8 *uuid = control->gpu->uuid;
	u8 *params = control->params;
	char text[48];
	u32 bytes = 16;

	if (get32(params, 4) & 2) {
		memcpy(params + 12, uuid, bytes);
	} else {
		bytes = nvsim_uuid_text(text, sizeof(text), uuid) + 1;
		memcpy(params + 12, text, bytes);
	}
	put32(params, 8, bytes);
	return NV_OK;
}

/* KiB; totals by the branch's rule: nvidia-smi adds heap and tax before 510 */
static u32 fb_value(const struct nvsim_gpu *gpu, u32 index)
{
	u64 free = gpu->total - gpu->used;

	switch (index) {
	case 0x05:
	case 0x1d:
		return BAR1_KIB;
	case 0x07:
	case 0x08:
	case 0x09:
	case 0x20:
		return gpu->total >> KIB;
	case 0x0a:
		return BAR1_KIB;
	case 0x12:
	case 0x16:
		return free >> KIB;
	case 0x1b:
		return 4u << 20;	/* bytes of second-level cache */
	}
	return 0;
}

static u32 fb_info_v2(struct nvsim_control *control)
{
	u32 count = get32(control->params, 0), i;

	for (i = 0; i < count && 12 + 8 * i <= control->size; i++)
		put32(control->params, 8 + 8 * i,
		      fb_value(control->gpu, get32(control->params, 4 + 8 * i)));
	return NV_OK;
}

static u32 fb_info(struct nvsim_control *control)
{
	u8 *list = control->list[0];
	u32 i;

	for (i = 0; 8 * i + 8 <= control->list_bytes[0]; i++)
		put32(list, 8 * i + 4, fb_value(control->gpu, get32(list, 8 * i)));
	return NV_OK;
}

static u32 zero_values_v2(struct nvsim_control *control)
{
	u32 count = get32(control->params, 0), i;

	for (i = 0; i < count && 12 + 8 * i <= control->size; i++)
		put32(control->params, 8 + 8 * i, 0);
	return NV_OK;
}

/*
 * Where the card sits: only on PCI Express do libraries ask for its bus, whose
 * index moved with 460. Its domain and device are 0, as is what is not known.
 */
static u32 bus_value(const struct nvsim_gpu *gpu, u32 index)
{
	if (index == BUS_INFO_TYPE)
		return BUS_INFO_TYPE_PCI_EXPRESS;
	return index == (nvsim.branch->number < 460 ? 0x1d : 0xf) ? gpu->bus : 0;
}

static u32 bus_info_v2(struct nvsim_control *control)
{
	u32 count = get32(control->params, 0), i;

	for (i = 0; i < count && 12 + 8 * i <= control->size; i++)
		put32(control->params, 8 + 8 * i,
		      bus_value(control->gpu, get32(control->params, 4 + 8 * i)));
	return NV_OK;
}

static u32 bus_info(struct nvsim_control *control)
{
	u8 *list = control->list[0];
	u32 i;

	for (i = 0; 8 * i + 8 <= control->list_bytes[0]; i++)
		put32(list, 8 * i + 4, bus_value(control->gpu, get32(list, 8 * i)));
	return NV_OK;
}

static u32 bus_pci_info(struct nvsim_control *control)
{
	const struct nvsim_card *card = control->gpu->card;

	put32(control->params, 0, card->device << 16 | 0x10de);
	put32(control->params, 4, card->subsystem << 16 | 0x10de);
	put32(control->params, 8, 0xa1);
	put32(control->params, 12, card->device);
	return NV_OK;
}

/* Adds a client's process unless it is hidden from the caller or already there. */
static u32 add_pid(u8 *table, u32 count, u32 pid)
{
	u32 i;

	for (i = 0; i < count; i++)
		if (get32(table, 4 * i) == pid)
			return count;
	if (pid && count < MAX_PIDS)
		put32(table, 4 * count++, pid);
	return count;
}

static bool has_class(const struct nvsim_client *client,
		      const struct nvsim_gpu *gpu, u32 class)
{
	struct nvsim_object *object;

	list_for_each_entry(object, &client->objects, node)
		if (object->gpu == gpu && object->class == class)
			return true;
	return false;
}

static u32 get_pids(struct nvsim_control *control)
{
	u32 class = get32(control->params, 4), count = 0;
	struct nvsim_client *client;

	if (control->size < 12 + 4 * MAX_PIDS || !control->gpu)
		return NV_ERR_INVALID_PARAM_STRUCT;
	list_for_each_entry(client, &nvsim.clients, node)
		if (has_class(client, control->gpu, class))
			count = add_pid(control->params + 12, count,
					nvsim_host_task_number(client->task));
	put32(control->params, 8, count);
	return NV_OK;
}

static u64 memory_of_pid(const struct nvsim_gpu *gpu, u32 pid, bool duplicate)
{
	struct nvsim_client *client;
	u64 bytes = 0;

	list_for_each_entry(client, &nvsim.clients, node)
		if (nvsim_host_task_number(client->task) == pid)
			bytes += nvsim_memory_of(client, gpu, duplicate);
	return bytes;
}

static u32 get_pid_info(struct nvsim_control *control)
{
	u32 stride = nvsim.branch->pid_stride, i;
	u32 count = get32(control->params, 0);

	if (!control->gpu)
		return NV_ERR_INVALID_OBJECT_HANDLE;
	for (i = 0; i < count && 8 + stride * (i + 1) <= control->size; i++) {
		u8 *entry = control->params + 8 + stride * i;

		put32(entry, 8, NV_OK);
		put64(entry, 16, memory_of_pid(control->gpu, get32(entry, 0),
					       false));
		put64(entry, 32, memory_of_pid(control->gpu, get32(entry, 0),
					       true));
	}
	return NV_OK;
}

static u32 class_list(struct nvsim_control *control, u8 *list, u32 room)
{
	const struct nvsim_card *card = control->gpu->card;
	const u32 classes[] = {
		card->compute, card->graphics, card->gpfifo,
		card->usermode ? card->usermode_base : KEPLER_CHANNEL_GROUP_A,
		card->copy, KEPLER_CHANNEL_GROUP_A, FERMI_CONTEXT_SHARE_A,
		card->usermode ? card->usermode : 0xa140,
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(classes) && i < room; i++)
		put32(list, 4 * i, classes[i]);
	return ARRAY_SIZE(classes);
}

static u32 device_classes(struct nvsim_control *control)
{
	if (!control->gpu)
		return NV_ERR_INVALID_OBJECT_HANDLE;
	put32(control->params, 0,
	      class_list(control, control->list[0], control->list_bytes[0] / 4));
	return NV_OK;
}

static u32 device_classes_v2(struct nvsim_control *control)
{
	if (!control->gpu)
		return NV_ERR_INVALID_OBJECT_HANDLE;
	put32(control->params, 0,
	      class_list(control, control->params + 4, (control->size - 4) / 4));
	return NV_OK;
}

static u32 one(struct nvsim_control *control)
{
	put32(control->params, 0, 1);
	return NV_OK;
}

static u32 arch_info(struct nvsim_control *control)
{
	put32(control->params, 0, control->gpu->card->arch);
	put32(control->params, 4, control->gpu->card->impl);
	put32(control->params, 8, 0xa1);
	return NV_OK;
}

/* Clocks: which domains there are; their values stay 0. */
static u32 clock_domains(struct nvsim_control *control)
{
	put32(control->params, 0, 0x03fc007f);
	put32(control->params, 4, 0);
	return NV_OK;
}

static u32 clock_versions(struct nvsim_control *control)
{
	put32(control->params, 4, 0xd);
	return NV_OK;
}

static void public_domains(u8 *entries, u32 count, u32 bytes)
{
	u32 i;

	for (i = 0; i < count && 16 * i + 16 <= bytes; i++) {
		u8 *entry = entries + 16 * i;

		put32(entry, 4, get32(entry, 0) == 4 ? 0x10 : 1);
		put32(entry, 8, 1);
		put32(entry, 12, 100);
	}
}

static u32 clock_public(struct nvsim_control *control)
{
	public_domains(control->params + 8, get32(control->params, 4),
		       control->size - 8);
	return NV_OK;
}

static u32 clock_public_list(struct nvsim_control *control)
{
	public_domains(control->list[0], get32(control->params, 4),
		       control->list_bytes[0]);
	return NV_OK;
}

static u32 bus_ownership(struct nvsim_control *control)
{
	put32(control->params, 0, 5);
	return NV_OK;
}

static const struct nvsim_list value_list[] = {
	{ .pointer = 8, .count = 0, .element = 8, .direction = 3 },
};

static const struct nvsim_list class_list_out[] = {
	{ .pointer = 8, .count = 0, .element = 4, .direction = 2 },
};

static const struct nvsim_list domain_list[] = {
	{ .pointer = 8, .count = 4, .element = 16, .direction = 3 },
};

const struct nvsim_control_row nvsim_controls_device[] = {
	{ 0x00800201, "GPU_GET_CLASSLIST", 16, device_classes, class_list_out, 1 },
	{ 0x00800202, "GPU_GET_PIDS (before 450)", 12, get_pids },
	{ 0x00800203, "GPU_GET_PID_INFO (before 450)", 8, get_pid_info },
	{ 0x00800280, "GPU_GET_NUM_SUBDEVICES", 4, one },
	{ 0x00800292, "GPU_GET_CLASSLIST_V2", 8, device_classes_v2 },
	{ 0x20800102, "GPU_GET_INFO_V2", 4, zero_values_v2 },
	{ 0x20800110, "GPU_GET_NAME_STRING", 68, name_string },
	{ 0x20800111, "GPU_GET_SHORT_NAME_STRING", 64, name_string },
	{ 0x2080014a, "GPU_GET_GID_INFO", 64, gid_info },
	{ 0x2080018d, "GPU_GET_PIDS", 12, get_pids },
	{ 0x2080018e, "GPU_GET_PID_INFO", 8, get_pid_info },
	{ 0x20801301, "FB_GET_INFO", 16, fb_info, value_list, 1 },
	{ 0x20801303, "FB_GET_INFO_V2", 4, fb_info_v2 },
	{ 0x20801701, "MC_GET_ARCH_INFO", 12, arch_info },
	{ 0x20801801, "BUS_GET_PCI_INFO", 16, bus_pci_info },
	{ 0x20801802, "BUS_GET_INFO", 16, bus_info, value_list, 1 },
	{ 0x20801823, "BUS_GET_INFO_V2", 4, bus_info_v2 },
	{ 0x20801001, "CLK_GET_DOMAINS", 8, clock_domains },
	{ 0x20801009, "CLK_GET_VERSION", 8, clock_versions },
	{ 0x2080100a, "CLK_GET_PUBLIC_DOMAIN_INFO", 16, clock_public_list, domain_list, 1 },
	{ 0x20802209, "RC_GET_OWNERSHIP", 4, bus_ownership },
	{ 0x20809001, "CLK_GET_DOMAINS (GSS)", 8, clock_domains },
	{ 0x20809009, "CLK_GET_VERSION (GSS)", 8, clock_versions },
	{ 0x20809064, "CLK_GET_PUBLIC_DOMAIN_INFO (GSS)", 8, clock_public },
	{ }
};
