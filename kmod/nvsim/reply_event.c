// SPDX-License-Identifier: GPL-2.0-only
/* Controls of events, and of the list of errors that a library reads after one. */
#include "rm.h"

#define RECORD_GROUP_RM		1
#define RECORD_PROTOCOL_BUFFER	131
#define RECORD_HEADER		8	/* group, type, size: 1, 1, 2 bytes; length: 4 */
#define RECORD_ROOM		8192

/* Protocol buffers: field numbers of an error block, wire types */
#define BLOCK_DATA		1
#define MESSAGE_GENERIC		312
#define GENERIC_TYPE		5
#define GENERIC_TIME		7
#define GENERIC_GPU		8
#define GENERIC_NUMBER		9
#define GENERIC_SYSTEM_TIME	10
#define WIRE_NUMBER		0
#define WIRE_BYTES		2

/* Notifications of a subdevice come only once they are asked for. */
static u32 set_notification(struct nvsim_control *control)
{
	u32 index = get32(control->params, 0), action = get32(control->params, 4);
	struct nvsim_object *object;

	if (action > NV_EVENT_ACTION_REPEAT)
		return NV_ERR_INVALID_ARGUMENT;
	list_for_each_entry(object, &nvsim.events, event)
		if (object->client == control->client &&
		    object->parent == control->object->handle &&
		    (object->event_index & NV_EVENT_INDEX_MASK) == index)
			object->event_action = action;
	return NV_OK;
}

static u32 set_memory_notifies(struct nvsim_control *control)
{
	struct nvsim_object *memory;

	memory = nvsim_object_find(control->client, get32(control->params, 0));
	if (!memory || !memory->mem || memory->class != NV01_MEMORY_SYSTEM)
		return NV_ERR_OBJECT_NOT_FOUND;
	if (control->object->notifiers)
		nvsim_mem_put(control->object->notifiers);
	control->object->notifiers = nvsim_mem_get(memory->mem);
	return NV_OK;
}

static u32 kept_errors(void)
{
	return min_t(u32, nvsim.error_count, NVSIM_ERRORS);
}

static u32 error_count(struct nvsim_control *control)
{
	put32(control->params, 0, kept_errors());
	return NV_OK;
}

static u8 *put_number(u8 *to, u64 number)
{
	for (; number > 0x7f; number >>= 7)
		*to++ = (number & 0x7f) | 0x80;
	*to++ = number;
	return to;
}

static u8 *put_field(u8 *to, u32 field, u64 value)
{
	return put_number(put_number(to, field << 3 | WIRE_NUMBER), value);
}

/* A message inside a message; @bytes of it lie at @body. */
static u8 *put_message(u8 *to, u32 field, const u8 *body, u32 bytes)
{
	to = put_number(put_number(to, field << 3 | WIRE_BYTES), bytes);
	memcpy(to, body, bytes);
	return to + bytes;
}

static u32 put_block(u8 *to, const struct nvsim_error *error, u32 number)
{
	u8 generic[64], message[80];
	u8 *end = generic;

	end = put_field(end, GENERIC_TYPE, error->xid);
	end = put_field(end, GENERIC_TIME, error->time_ns);
	end = put_field(end, GENERIC_GPU, error->gpu);
	end = put_field(end, GENERIC_NUMBER, number);
	end = put_field(end, GENERIC_SYSTEM_TIME, error->time_ns);
	end = put_message(message, MESSAGE_GENERIC, generic, end - generic);
	return put_message(to, BLOCK_DATA, message, end - message) - to;
}

/* Which one at 0 (0 is the oldest), its bytes back at 8, where to at 16 */
static u32 get_error(struct nvsim_control *control)
{
	u32 kept = kept_errors(), which = get32(control->params, 0), bytes;
	u8 *record = control->list[0];

	put32(control->params, 8, 0);
	if (which >= kept || !record)
		return NV_OK;
	which += nvsim.error_count - kept;
	bytes = put_block(record + RECORD_HEADER,
			  &nvsim.errors[which % NVSIM_ERRORS], which);
	record[0] = RECORD_GROUP_RM;
	record[1] = RECORD_PROTOCOL_BUFFER;
	put16(record, 2, RECORD_HEADER);
	put32(record, 4, bytes);
	put32(control->params, 8, RECORD_HEADER + bytes);
	return NV_OK;
}

static const struct nvsim_list record_list[] = {
	{ .pointer = 16, .direction = 2, .fixed = RECORD_ROOM },
};

const struct nvsim_control_row nvsim_controls_event[] = {
	{ 0x20800301, "EVENT_SET_NOTIFICATION", 8, set_notification },
	{ 0x20800303, "EVENT_SET_MEMORY_NOTIFIES", 4, set_memory_notifies },
	{ 0x20802205, "RC_GET_ERROR_COUNT (418)", 4, error_count },
	{ 0x20802206, "RC_GET_ERROR (418)", 24, get_error, record_list, 1 },
	{ }
};
