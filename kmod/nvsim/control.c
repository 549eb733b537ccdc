// SPDX-License-Identifier: GPL-2.0-only
/*
 * RM_CONTROL: parameters, and the lists they point to, are copied in before the
 * lock is taken and copied out after it is given back. A control that no table
 * names is answered with OK and its parameters as they came, and logged once.
 */
#include "rm.h"

#define MAX_CONTROL	1048576
#define MAX_LIST	(64 << 10)
/* the driver's own books, also of a card that is gone: libcuda waits for it */
#define FIFO_DISABLE_CHANNELS	0x2080110b

static const struct nvsim_control_row *const tables[] = {
	nvsim_controls_system, nvsim_controls_device, nvsim_controls_engine,
	nvsim_controls_event, nvsim_controls_sensor,
};

static const struct nvsim_control_row *control_find(u32 command)
{
	const struct nvsim_control_row *row;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(tables); i++)
		for (row = tables[i]; row->command; row++)
			if (row->command == command)
				return row;
	return NULL;
}

static bool accepted(u32 command)
{
	const u32 *known;

	for (known = nvsim_controls_accepted; *known; known++)
		if (*known == command)
			return true;
	return false;
}

static u32 list_bytes(const struct nvsim_control *control,
		      const struct nvsim_list *list)
{
	u64 count;

	if (!get64(control->params, list->pointer))
		return 0;
	if (list->fixed)
		return list->fixed;
	count = get32(control->params, list->count);
	return min_t(u64, count * list->element, MAX_LIST);
}

static u32 lists_in(struct nvsim_control *control,
		    const struct nvsim_control_row *row)
{
	u32 i;

	for (i = 0; i < row->list_count; i++) {
		const struct nvsim_list *list = &row->lists[i];
		u32 bytes = list_bytes(control, list);

		if (!bytes)
			continue;
		control->list[i] = kvzalloc(bytes, GFP_KERNEL);
		if (!control->list[i])
			return NV_ERR_NO_MEMORY;
		control->list_bytes[i] = bytes;
		if ((list->direction & 1) &&
		    nvsim_host_copy_in(control->list[i],
				       get64(control->params, list->pointer),
				       bytes))
			return NV_ERR_INVALID_POINTER;
	}
	return NV_OK;
}

static u32 lists_out(struct nvsim_control *control, const u64 *pointers,
		     const struct nvsim_control_row *row)
{
	u32 i;

	for (i = 0; i < row->list_count; i++)
		if (control->list_bytes[i] && (row->lists[i].direction & 2) &&
		    nvsim_host_copy_out(pointers[i], control->list[i],
					control->list_bytes[i]))
			return NV_ERR_INVALID_POINTER;
	return NV_OK;
}

static u32 reply_locked(struct nvsim_control *control, const u8 *arg,
			const struct nvsim_control_row *row)
{
	u32 handle = get32(arg, RM_OBJECT);

	control->client = nvsim_client_find(get32(arg, RM_CLIENT));
	if (!control->client || control->client->owner != control->file)
		return NV_ERR_INVALID_CLIENT;
	control->object = nvsim_object_find(control->client, handle);
	if (!control->object && handle != control->client->handle)
		return NV_ERR_INVALID_OBJECT_HANDLE;
	control->gpu = control->object ? control->object->gpu : NULL;
	if (control->gpu && control->gpu->lost &&
	    control->command != FIFO_DISABLE_CHANNELS)
		return NV_ERR_GPU_IS_LOST;
	if (!row) {
		if (!accepted(control->command))
			nvsim_unknown("accepted control", control->command,
				      control->size);
		return NV_OK;
	}
	if (!row->reply || !control->params)
		return NV_OK;
	if (row->command >> 16 == 0x2080 && !control->gpu)
		return NV_ERR_INVALID_OBJECT_HANDLE;
	return row->reply(control);
}

static u32 reply(struct nvsim_control *control, const u8 *arg)
{
	const struct nvsim_control_row *row = control_find(control->command);
	u64 pointers[3] = { 0 };
	u32 status, i;

	if (row && row->reply && control->params && control->size < row->least)
		return NV_ERR_INVALID_PARAM_STRUCT;
	if (row && control->params) {
		for (i = 0; i < row->list_count; i++)
			pointers[i] = get64(control->params, row->lists[i].pointer);
		status = lists_in(control, row);
		if (status)
			return status;
	}
	nvsim_lock();
	status = reply_locked(control, arg, row);
	nvsim_unlock();
	if (row && !status)
		status = lists_out(control, pointers, row);
	return status;
}

static u32 params_in(struct nvsim_control *control, u64 from)
{
	if (!from || !control->size)
		return NV_OK;
	if (control->size > MAX_CONTROL)
		return NV_ERR_INVALID_ARGUMENT;
	control->params = kvzalloc(control->size, GFP_KERNEL);
	if (!control->params)
		return NV_ERR_NO_MEMORY;
	if (nvsim_host_copy_in(control->params, from, control->size))
		return NV_ERR_INVALID_POINTER;
	return NV_OK;
}

/**
 * nvsim_rm_control() - NV_ESC_RM_CONTROL.
 * @file: control file
 * @arg: NVOS54, answered in place
 *
 * Context: lock not held.
 * Return: 0.
 */
int nvsim_rm_control(struct nvsim_file *file, u8 *arg)
{
	u64 from = get64(arg, NVOS54_PARAMS);
	struct nvsim_control control = {
		.file = file,
		.command = get32(arg, NVOS54_COMMAND),
		.size = get32(arg, NVOS54_PARAMS_SIZE),
	};
	u32 status, i;

	status = params_in(&control, from);
	if (!status)
		status = reply(&control, arg);
	if (!status && control.params &&
	    nvsim_host_copy_out(from, control.params, control.size))
		status = NV_ERR_INVALID_POINTER;
	for (i = 0; i < ARRAY_SIZE(control.list); i++)
		kvfree(control.list[i]);
	kvfree(control.params);
	put32(arg, NVOS54_STATUS, status);
	return 0;
}
