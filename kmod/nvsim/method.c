// SPDX-License-Identifier: GPL-2.0-only
/*
 * Methods: a table of those that act, indexed once. Every other method is only
 * remembered in the channel's register file.
 */
#include "engine.h"

#define METHODS		4096
#define REGISTER_BYTES	(METHODS * sizeof(u32))
#define HOST_METHODS	0x100

static const struct nvsim_method *acting[NVSIM_ENGINE_KINDS][METHODS];

static const struct nvsim_method *const tables[] = {
	nvsim_methods_host, nvsim_methods_compute, nvsim_methods_copy,
};

/**
 * nvsim_methods_setup() - Builds the index of acting methods.
 *
 * Context: before any channel exists.
 */
void nvsim_methods_setup(void)
{
	const struct nvsim_method *method;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(tables); i++)
		for (method = tables[i]; method->name; method++)
			acting[method->kind][method->method >> 2] = method;
}

static u32 *registers_of(struct nvsim_channel *channel, u8 subchannel)
{
	u32 **registers = &channel->registers[subchannel];

	if (!*registers)
		*registers = kvzalloc(REGISTER_BYTES, GFP_KERNEL);
	return *registers;
}

/* The acting methods of what is bound to a subchannel; NULL: nothing acts. */
static const struct nvsim_method **index_of(const struct nvsim_channel *channel,
					    u8 subchannel)
{
	switch (generation(channel->class[subchannel])) {
	case NV_FAMILY_COMPUTE:
		return acting[NVSIM_COMPUTE];
	case NV_FAMILY_COPY:
		return acting[NVSIM_COPY];
	}
	return NULL;
}

static const struct nvsim_method *find(const struct nvsim_channel *channel,
				       u8 subchannel, u32 method)
{
	const struct nvsim_method **index = index_of(channel, subchannel);

	return index ? index[method >> 2] : NULL;
}

/**
 * nvsim_methods_store() - Remembers methods in a row that do not act.
 * @channel: the channel
 * @subchannel: 0 to 7
 * @method: byte address of the first
 * @words: their data
 * @count: how many
 *
 * Context: lock held.
 * Return: how many of them there are before one that acts.
 */
u32 nvsim_methods_store(struct nvsim_channel *channel, u8 subchannel, u32 method,
			const u32 *words, u32 count)
{
	const struct nvsim_method **index = index_of(channel, subchannel);
	u32 *registers, first = method >> 2, i;

	if (method < HOST_METHODS)
		return 0;
	registers = registers_of(channel, subchannel);
	if (!registers)
		return 0;
	for (i = 0; i < count && first + i < METHODS; i++) {
		if (index && index[first + i])
			break;
		registers[first + i] = READ_ONCE(words[i]);
	}
	return i;
}

/**
 * nvsim_method() - Executes one method.
 * @channel: the channel
 * @subchannel: 0 to 7
 * @method: byte address, below 0x4000
 * @value: its data
 *
 * Host methods live in the registers of subchannel 0 whichever they came by.
 *
 * Context: lock held.
 * Return: NVSIM_DONE, or why the same method must come again.
 */
enum nvsim_verdict nvsim_method(struct nvsim_channel *channel, u8 subchannel,
				u32 method, u32 value)
{
	bool host = method < HOST_METHODS;
	struct nvsim_call call = {
		.channel = channel, .subchannel = subchannel, .value = value,
	};
	const struct nvsim_method *row;
	u32 *registers = registers_of(channel, host ? 0 : subchannel);

	if (!registers)
		return NVSIM_WAIT;
	registers[method >> 2] = value;
	row = host ? acting[NVSIM_HOST][method >> 2] :
	      find(channel, subchannel, method);
	if (!row)
		return NVSIM_DONE;
	if (row->after_kernel && channel->kernel.pending)
		return NVSIM_BUSY;
	return row->act(&call);
}
