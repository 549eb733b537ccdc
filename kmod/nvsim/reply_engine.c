// SPDX-License-Identifier: GPL-2.0-only
/* Controls of the engines: graphics, channels, groups of channels. */
#include "engine.h"

#define SM_ENTRIES	512

/*
 * Indices of GR_INFO that libcuda reads; the rest answers 4. Only those of the
 * card itself are known to be right, the others are values it accepts.
 */
static u32 gr_value(const struct nvsim_card *card, u32 index)
{
	switch (index) {
	case 0x07: return 5;
	case 0x08: return 4;
	case 0x09: /* times 0x20, but for 6.1 */
		return card->sm == 0x601 ? card->sms : card->sms / 2;
	case 0x0c: return card->sm;
	case 0x0d: return card->warps;
	case 0x0e: return 32;
	case 0x13: return card->cores_per_sm;
	case 0x14: return 6;
	case 0x15: return 4;
	case 0x17: return 4;
	case 0x1b: return 8;
	case 0x1c: return 3;
	case 0x1d: return 2560;
	case 0x1e: return 2;
	case 0x20: return 2;
	case 0x24: return 1;
	case 0x2a: return 6;
	case 0x2c: return 64;
	case 0x2d: return 0;
	case 0x2e: return 64;
	}
	return 4;
}

static u32 gr_info(struct nvsim_control *control)
{
	u8 *list = control->list[0];
	u32 i;

	for (i = 0; 8 * i + 8 <= control->list_bytes[0]; i++)
		put32(list, 8 * i + 4,
		      gr_value(control->gpu->card, get32(list, 8 * i)));
	return NV_OK;
}

/* Entries of 8 bytes up to 470, of 12 later; then the two counts. */
static u32 sm_order(struct nvsim_control *control)
{
	u32 entry = control->size < SM_ENTRIES * 12 ? 8 : 12;
	u32 sms = control->gpu->card->sms, end = SM_ENTRIES * entry, i;

	if (control->size < end + 4)
		return NV_ERR_INVALID_PARAM_STRUCT;
	memset(control->params, 0, end + 4);
	for (i = 0; i < sms; i++) {
		u8 *sm = control->params + entry * i;

		put16(sm, 0, i / 8);
		put16(sm, 2, i / 2 % 4);
		put16(sm, 4, i % 2);
		put16(sm, 6, i / 2);
		if (entry == 12)
			put16(sm, 8, i / 8);
	}
	put16(control->params, end, sms);
	put16(control->params, end + 2, sms / 2);
	return NV_OK;
}

static u32 context_buffer_size(struct nvsim_control *control)
{
	put64(control->params, 8, 0x100000);
	return NV_OK;
}

static u32 engines(struct nvsim_control *control)
{
	static const u32 list[] = { 1, 9, 10, 11, 12, 0x13, 0x1b, 0x22 };
	u32 i;

	put32(control->params, 0, ARRAY_SIZE(list));
	for (i = 0; i < ARRAY_SIZE(list); i++)
		put32(control->params, 4 + 4 * i, list[i]);
	return NV_OK;
}

/* Four copy engines; the mask of those present is 64 bits from 550 on. */
static u32 copy_caps(struct nvsim_control *control)
{
	bool wide = control->size == 136;
	u32 i;

	memset(control->params, 0, control->size);
	for (i = 0; i < 4; i++) {
		control->params[2 * i] = i < 2 ? 0xef : 0xec;
		control->params[2 * i + 1] = 3;
	}
	if (wide)
		put64(control->params, 128, 0xf);
	else
		put32(control->params, 64, 0xf);
	return NV_OK;
}

static u32 engine_partners(struct nvsim_control *control)
{
	u32 i;

	if (control->size < 16 + 4 * 4)
		return NV_ERR_INVALID_PARAM_STRUCT;
	put32(control->params, 12, 4);
	for (i = 0; i < 4; i++)
		put32(control->params, 16 + 4 * i, 2 + i);
	return NV_OK;
}

static u32 gpc_mask(struct nvsim_control *control)
{
	put32(control->params, 0, 1);
	return NV_OK;
}

static u32 tpc_mask(struct nvsim_control *control)
{
	put32(control->params, 4, 0xfffff);
	return NV_OK;
}

static struct nvsim_channel *channel_of(const struct nvsim_control *control)
{
	return control->object ? control->object->channel : NULL;
}

static u32 work_token(struct nvsim_control *control)
{
	if (!channel_of(control))
		return NV_ERR_INVALID_OBJECT_HANDLE;
	put32(control->params, 0, channel_of(control)->id);
	return NV_OK;
}

/* libcuda uses the engine's class id as the data of SET_OBJECT. */
static u32 class_engine_id(struct nvsim_control *control)
{
	struct nvsim_object *object;

	object = nvsim_object_find(control->client, get32(control->params, 0));
	if (!object)
		return NV_ERR_OBJECT_NOT_FOUND;
	put32(control->params, 4, object->class);
	put32(control->params, 8, object->class);
	put32(control->params, 12,
	      generation(object->class) == NV_FAMILY_COPY ? 9 : 1);
	return NV_OK;
}

static u32 channel_ids(struct nvsim_control *control)
{
	u32 bytes = min(control->list_bytes[0], control->list_bytes[1]), i;

	for (i = 0; 4 * i + 4 <= bytes; i++) {
		struct nvsim_object *object;

		object = nvsim_object_find(control->client,
					   get32(control->list[0], 4 * i));
		put32(control->list[1], 4 * i,
		      object && object->channel ? object->channel->id : 0);
	}
	return NV_OK;
}

static struct nvsim_tsg *tsg_of(const struct nvsim_control *control)
{
	return control->object ? control->object->tsg : NULL;
}

static u32 set_timeslice(struct nvsim_control *control)
{
	u64 us = get64(control->params, 0);

	if (!tsg_of(control) || us > 10000000)
		return NV_ERR_INVALID_ARGUMENT;
	tsg_of(control)->timeslice_ns = us * 1000;
	return NV_OK;
}

static u32 get_timeslice(struct nvsim_control *control)
{
	if (!tsg_of(control))
		return NV_ERR_INVALID_ARGUMENT;
	put64(control->params, 0, div_u64(tsg_of(control)->timeslice_ns, 1000));
	return NV_OK;
}

static u32 group_schedule(struct nvsim_control *control)
{
	if (!tsg_of(control))
		return NV_ERR_INVALID_ARGUMENT;
	tsg_of(control)->disabled = !control->params[0];
	nvsim_host_kick();
	return NV_OK;
}

static u32 channel_schedule(struct nvsim_control *control)
{
	if (!channel_of(control))
		return NV_ERR_INVALID_ARGUMENT;
	channel_of(control)->disabled = !control->params[0];
	nvsim_channel_ready(channel_of(control));
	nvsim_host_kick();
	return NV_OK;
}

static u32 preempt(struct nvsim_control *control)
{
	struct nvsim_tsg *tsg = tsg_of(control);

	if (!tsg)
		return NV_ERR_INVALID_ARGUMENT;
	if (tsg->gpu->gr.owner == tsg)
		tsg->gpu->gr.slice_end_ns = 0;
	return NV_OK;
}

/* bDisable at 0, count at 4, clients at 24, channels at 280 */
static u32 disable_channels(struct nvsim_control *control)
{
	bool disable = control->params[0];
	u32 count = get32(control->params, 4), i;

	for (i = 0; i < count && i < 64; i++) {
		struct nvsim_client *client;
		struct nvsim_object *object;

		client = nvsim_client_find(get32(control->params, 24 + 4 * i));
		if (!client || client->owner != control->file)
			return NV_ERR_INVALID_CLIENT;
		object = nvsim_object_find(client, get32(control->params, 280 + 4 * i));
		if (object && object->tsg)
			object->tsg->disabled = disable;
		if (!object || !object->channel)
			continue;
		object->channel->disabled = disable;
		nvsim_channel_ready(object->channel);
	}
	nvsim_host_kick();
	return NV_OK;
}

static u32 zeroes(struct nvsim_control *control)
{
	memset(control->params, 0, control->size);
	return NV_OK;
}

static const struct nvsim_list gr_list[] = {
	{ .pointer = 8, .count = 0, .element = 8, .direction = 3 },
};

static const struct nvsim_list id_lists[] = {
	{ .pointer = 8, .count = 0, .element = 4, .direction = 1 },
	{ .pointer = 16, .count = 0, .element = 4, .direction = 3 },
};

const struct nvsim_control_row nvsim_controls_engine[] = {
	{ 0x0080170d, "FIFO_GET_CHANNELLIST", 24, channel_ids, id_lists, 2 },
	{ 0x20800137, "GPU_GET_GPC_MASK (418)", 4, gpc_mask },
	{ 0x20800138, "GPU_GET_TPC_MASK (418)", 8, tpc_mask },
	{ 0x20800147, "GPU_GET_ENGINE_PARTNERLIST (418)", 144, engine_partners },
	{ 0x20800170, "GPU_GET_ENGINES_V2", 4 + 4 * 8, engines },
	{ 0x2080110b, "FIFO_DISABLE_CHANNELS", 536, disable_channels },
	{ 0x20801201, "GR_GET_INFO", 16, gr_info, gr_list, 1 },
	{ 0x20801218, "GR_GET_CTX_BUFFER_SIZE", 16, context_buffer_size },
	{ 0x2080121b, "GR_GET_GLOBAL_SM_ORDER", 4120, sm_order },
	{ 0x20802a0a, "CE_GET_ALL_CAPS", 68, copy_caps },
	{ 0x906f0101, "GET_CLASS_ENGINEID", 16, class_engine_id },
	{ 0xa06c0101, "GROUP_GPFIFO_SCHEDULE", 2, group_schedule },
	{ 0xa06c0103, "GROUP_SET_TIMESLICE", 8, set_timeslice },
	{ 0xa06c0104, "GROUP_GET_TIMESLICE", 8, get_timeslice },
	{ 0xa06c0105, "GROUP_PREEMPT", 8, preempt },
	{ 0xa06f0101, "GET_CLASS_ENGINEID", 16, class_engine_id },
	{ 0xa06f0103, "GPFIFO_SCHEDULE", 2, channel_schedule },
	{ 0xc06f0101, "GET_CLASS_ENGINEID", 16, class_engine_id },
	{ 0xc36f0101, "GET_CLASS_ENGINEID", 16, class_engine_id },
	{ 0xc36f0108, "GPFIFO_GET_WORK_SUBMIT_TOKEN", 4, work_token },
	{ 0xcb330101, "CONF_COMPUTE_SYSTEM_GET_CAPABILITIES", 1, zeroes },
	{ }
};
