// SPDX-License-Identifier: GPL-2.0-only
/* Methods of the host: binding, semaphores, interrupts. */
#include "engine.h"

#define HOST		0	/* subchannel that keeps the host's registers */
#define SEM_ADDR_LO	0x5c
#define SEM_ADDR_HI	0x60
#define SEM_PAYLOAD_LO	0x64
#define SEM_PAYLOAD_HI	0x68
#define SEM_64_BIT	BIT(24)
#define SEM_TIMESTAMP	BIT(25)
#define LEGACY_HI	0x10
#define LEGACY_LO	0x14
#define LEGACY_PAYLOAD	0x18
#define LEGACY_4_BYTES	BIT(24)

static enum nvsim_verdict set_object(struct nvsim_call *call)
{
	call->channel->class[call->subchannel] = call->value & 0xffff;
	return NVSIM_DONE;
}

static u64 address(struct nvsim_channel *channel, u32 high, u32 low)
{
	return (u64)(nvsim_register(channel, HOST, high) & 0xff) << 32 |
	       (nvsim_register(channel, HOST, low) & ~3u);
}

static void sem_write(struct nvsim_channel *channel, u64 va, u64 payload, u32 flags)
{
	if (flags & SEM_TIMESTAMP)
		nvsim_write64(channel, va + 8, channel->time_ns);
	if (flags & SEM_64_BIT) {
		nvsim_write64(channel, va, payload);
		return;
	}
	if (flags & SEM_TIMESTAMP)
		nvsim_write32(channel, va + 4, 0);
	nvsim_write32(channel, va, (u32)payload);
}

/* The host numbers reductions otherwise than the report semaphore does. */
static void sem_reduce(struct nvsim_channel *channel, u64 va, u32 memory, u32 flags)
{
	static const u8 operations[] = { 1, 2, 7, 5, 6, 0, 3, 4 };
	u32 payload = nvsim_register(channel, HOST, SEM_PAYLOAD_LO);

	nvsim_write32(channel, va,
		      nvsim_reduce(operations[flags >> 27 & 7], memory, payload));
}

static bool acquired(u32 operation, bool wide, u64 memory, u64 payload)
{
	switch (operation) {
	case 0: return memory == payload;
	case 2: return memory >= payload;
	case 3: return wide ? (s64)(memory - payload) >= 0 :
			      (s32)((u32)memory - (u32)payload) >= 0;
	case 4: return memory & payload;
	case 5: return (u32)~(memory | payload);
	}
	return true;
}

static enum nvsim_verdict passed(struct nvsim_channel *channel, bool ok)
{
	if (ok && channel->stalled)
		channel->time_ns = max(channel->time_ns, nvsim_host_now());
	channel->stalled = !ok;
	return ok ? NVSIM_DONE : NVSIM_WAIT;
}

static enum nvsim_verdict sem_execute(struct nvsim_call *call)
{
	struct nvsim_channel *channel = call->channel;
	u32 flags = call->value, operation = flags & 7, low;
	u64 va = address(channel, SEM_ADDR_HI, SEM_ADDR_LO), memory, payload;
	bool wide = flags & SEM_64_BIT;

	payload = nvsim_register(channel, HOST, SEM_PAYLOAD_LO);
	if (wide)
		payload |= (u64)nvsim_register(channel, HOST, SEM_PAYLOAD_HI) << 32;
	if (operation == 1) {
		if (channel->kernel.pending)
			return NVSIM_BUSY;
		sem_write(channel, va, payload, flags);
		return NVSIM_DONE;
	}
	if (!nvsim_read32(channel, va, &low))
		return NVSIM_WAIT;
	memory = low;
	if (wide && nvsim_read32(channel, va + 4, &low))
		memory |= (u64)low << 32;
	if (operation == 6) {
		sem_reduce(channel, va, (u32)memory, flags);
		return NVSIM_DONE;
	}
	return passed(channel, acquired(operation, wide, memory, payload));
}

static enum nvsim_verdict semaphore_d(struct nvsim_call *call)
{
	struct nvsim_channel *channel = call->channel;
	u64 va = address(channel, LEGACY_HI, LEGACY_LO);
	u32 payload = nvsim_register(channel, HOST, LEGACY_PAYLOAD), memory;

	if ((call->value & 31) == 2) {
		if (channel->kernel.pending)
			return NVSIM_BUSY;
		nvsim_release(channel, va, payload, !(call->value & LEGACY_4_BYTES));
		return NVSIM_DONE;
	}
	if (!nvsim_read32(channel, va, &memory))
		return NVSIM_WAIT;
	switch (call->value & 31) {
	case 1: return passed(channel, memory == payload);
	case 4: return passed(channel, (s32)(memory - payload) >= 0);
	case 8: return passed(channel, memory & payload);
	}
	return NVSIM_DONE;
}

static enum nvsim_verdict non_stall_interrupt(struct nvsim_call *call)
{
	nvsim_raise(call->channel->gpu, call->channel->client);
	return NVSIM_DONE;
}

static enum nvsim_verdict wait_for_idle(struct nvsim_call *call)
{
	return NVSIM_DONE;
}

const struct nvsim_method nvsim_methods_host[] = {
	{ NVSIM_HOST, false, 0x00, "SET_OBJECT", set_object },
	{ NVSIM_HOST, false, 0x1c, "SEMAPHORED", semaphore_d },
	{ NVSIM_HOST, true, 0x20, "NON_STALL_INTERRUPT", non_stall_interrupt },
	{ NVSIM_HOST, false, 0x6c, "SEM_EXECUTE", sem_execute },
	{ NVSIM_HOST, true, 0x78, "WFI", wait_for_idle },
	{ }
};
