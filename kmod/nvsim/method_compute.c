// SPDX-License-Identifier: GPL-2.0-only
/* Methods of the compute class: inline copies, launches, report semaphores. */
#include "engine.h"

#define INLINE_DATA		0x1b4
#define QMD_WORDS		64
#define LAST_QMD_WORD		(0x320 + 4 * (QMD_WORDS - 1))
#define REPORT_REDUCE		BIT(3)
#define REPORT_AWAKEN		BIT(20)
#define REPORT_ONE_WORD		BIT(28)

static u32 value(const struct nvsim_call *call, u32 method)
{
	return nvsim_register(call->channel, call->subchannel, method);
}

static u64 pair(const struct nvsim_call *call, u32 method)
{
	return (u64)value(call, method) << 32 | value(call, method + 4);
}

static enum nvsim_verdict inline_start(struct nvsim_call *call)
{
	struct nvsim_channel *channel = call->channel;
	u64 bytes = (u64)value(call, 0x180) * value(call, 0x184);

	channel->inline_va = pair(call, 0x188);
	channel->inline_left = min_t(u64, bytes, 1 << 20);
	channel->inline_at = 0;
	return NVSIM_DONE;
}

static void inline_end(const struct nvsim_call *call)
{
	u32 flags = value(call, 0x1b0);

	if ((flags >> 4 & 3) == 2)
		nvsim_release(call->channel, pair(call, 0x1dc), value(call, 0x1e4),
			      !(flags >> 12 & 1));
}

static enum nvsim_verdict inline_data(struct nvsim_call *call)
{
	struct nvsim_channel *channel = call->channel;
	u32 line = value(call, 0x180), at = channel->inline_at;
	u32 bytes = min(channel->inline_left, 4u);
	u64 va, left = 0;
	void *to;

	if (!bytes || !line)
		return NVSIM_DONE;
	va = channel->inline_va + (u64)(at / line) * value(call, 0x190) + at % line;
	to = nvsim_at(channel, va, &left);
	if (!to || left < bytes) {
		nvsim_fault(channel, va, "inline data");
		return NVSIM_DONE;
	}
	memcpy(to, &call->value, bytes);
	channel->inline_at += bytes;
	channel->inline_left -= bytes;
	if (!channel->inline_left)
		inline_end(call);
	return NVSIM_DONE;
}

/**
 * nvsim_inline_words() - Inline data in one piece, all but its end.
 * @channel: the channel
 * @subchannel: 0 to 7
 * @method: what the words are written to
 * @words: the data
 * @count: how many
 *
 * Context: lock held.
 * Return: how many were taken; 0 when each must come by itself.
 */
u32 nvsim_inline_words(struct nvsim_channel *channel, u8 subchannel, u32 method,
		       const u32 *words, u32 count)
{
	u32 line, into, bytes = channel->inline_left;
	u64 left = 0;
	u8 *to;

	if (method != INLINE_DATA || bytes <= sizeof(*words) ||
	    generation(channel->class[subchannel]) != NV_FAMILY_COMPUTE)
		return 0;
	line = nvsim_register(channel, subchannel, 0x180);
	if (!line)
		return 0;
	into = channel->inline_at % line;
	to = nvsim_at(channel, channel->inline_va + into +
		      (u64)(channel->inline_at / line) *
		      nvsim_register(channel, subchannel, 0x190), &left);
	if (!to)
		return 0;
	/* the last word ends the copy, which is inline_data's */
	bytes = min3(bytes - 1, line - into, count * (u32)sizeof(*words));
	bytes = min_t(u64, bytes, left) & ~3u;
	memcpy(to, words, bytes);
	channel->inline_at += bytes;
	channel->inline_left -= bytes;
	return bytes / sizeof(*words);
}

static enum nvsim_verdict inline_qmd(struct nvsim_call *call)
{
	u64 va = ((u64)value(call, 0x318) << 32 | value(call, 0x31c)) << 8;
	const u32 *qmd = call->channel->registers[call->subchannel] + 0x320 / 4;

	if (!nvsim_store(call->channel, va, qmd, QMD_WORDS * sizeof(*qmd)))
		return NVSIM_DONE;
	return nvsim_launch(call, qmd);
}

static enum nvsim_verdict launch_sent(struct nvsim_call *call)
{
	u64 va = (u64)value(call, 0x2b4) << 8;
	u32 qmd[QMD_WORDS];

	if (nvsim_load(call->channel, qmd, va, sizeof(qmd)))
		return nvsim_launch(call, qmd);
	nvsim_fault(call->channel, va, "QMD");
	return NVSIM_DONE;
}

static enum nvsim_verdict signaling_pcas_b(struct nvsim_call *call)
{
	return call->value & 2 ? launch_sent(call) : NVSIM_DONE;
}

static enum nvsim_verdict signaling_pcas2_b(struct nvsim_call *call)
{
	return (call->value & 15) >= 2 ? launch_sent(call) : NVSIM_DONE;
}

static void report_write(struct nvsim_call *call)
{
	u64 va = pair(call, 0x1b00);
	u32 payload = value(call, 0x1b08), memory;

	if (!(call->value & REPORT_REDUCE))
		nvsim_release(call->channel, va, payload,
			      !(call->value & REPORT_ONE_WORD));
	else if (nvsim_read32(call->channel, va, &memory))
		nvsim_write32(call->channel, va,
			      nvsim_reduce(call->value >> 9 & 7, memory, payload));
}

static enum nvsim_verdict report_semaphore(struct nvsim_call *call)
{
	if (!(call->value & 3))
		report_write(call);
	if ((call->value & REPORT_AWAKEN) || (call->value & 3) == 3)
		nvsim_raise(call->channel->gpu, call->channel->client);
	return NVSIM_DONE;
}

static enum nvsim_verdict wait_for_idle(struct nvsim_call *call)
{
	return NVSIM_DONE;
}

const struct nvsim_method nvsim_methods_compute[] = {
	{ NVSIM_COMPUTE, true, 0x110, "WAIT_FOR_IDLE", wait_for_idle },
	{ NVSIM_COMPUTE, true, 0x1b0, "LAUNCH_DMA", inline_start },
	{ NVSIM_COMPUTE, false, 0x1b4, "LOAD_INLINE_DATA", inline_data },
	{ NVSIM_COMPUTE, true, 0x2bc, "SEND_SIGNALING_PCAS_B", signaling_pcas_b },
	{ NVSIM_COMPUTE, true, 0x2c0, "SEND_SIGNALING_PCAS2_B", signaling_pcas2_b },
	{ NVSIM_COMPUTE, true, LAST_QMD_WORD, "LOAD_INLINE_QMD_DATA(63)", inline_qmd },
	{ NVSIM_COMPUTE, true, 0x1b0c, "REPORT_SEMAPHORE_D", report_semaphore },
	{ }
};
