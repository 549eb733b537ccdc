// SPDX-License-Identifier: GPL-2.0-only
/* Methods of the copy engine: pitch copies, fills by remapping, semaphores. */
#include "engine.h"

#define LAUNCH_MULTI_LINE	BIT(9)
#define LAUNCH_REMAP		BIT(10)
#define LAUNCH_REDUCE		BIT(19)

struct job {
	struct nvsim_channel *channel;
	u8 subchannel;
	u64 from, to;
	s64 pitch_from, pitch_to;
	u32 length, lines;
};

static u32 value(const struct job *job, u32 method)
{
	return nvsim_register(job->channel, job->subchannel, method);
}

static u64 pair(const struct job *job, u32 method)
{
	return (u64)value(job, method) << 32 | value(job, method + 4);
}

static struct job job_of(struct nvsim_call *call)
{
	struct job job = {
		.channel = call->channel, .subchannel = call->subchannel,
	};

	job.from = pair(&job, 0x400);
	job.to = pair(&job, 0x408);
	job.pitch_from = (s32)value(&job, 0x410);
	job.pitch_to = (s32)value(&job, 0x414);
	job.length = value(&job, 0x418);
	job.lines = call->value & LAUNCH_MULTI_LINE ? value(&job, 0x41c) : 1;
	return job;
}

static void copy_lines(const struct job *job, u64 bytes)
{
	u32 line;

	for (line = 0; line < job->lines && !job->channel->dead; line++)
		nvsim_copy(job->channel, job->to + line * job->pitch_to,
			   job->from + line * job->pitch_from, bytes);
}

static void fill_lines(const struct job *job, u32 remap, u32 size, u32 components)
{
	const u32 constants[2] = { value(job, 0x700), value(job, 0x704) };
	u8 pattern[16];
	u32 i, line;

	for (i = 0; i < components; i++)
		memcpy(pattern + i * size, &constants[(remap >> 4 * i & 7) == 5], size);
	for (line = 0; line < job->lines && !job->channel->dead; line++)
		nvsim_fill(job->channel, job->to + line * job->pitch_to,
			   (u64)job->length * size * components, pattern,
			   size * components);
}

/* Components 0 to 3 come from the source, 4 and 5 are constants A and B. */
static void remapped(const struct job *job)
{
	u32 remap = value(job, 0x708), i;
	u32 size = (remap >> 16 & 3) + 1, components = (remap >> 24 & 3) + 1;
	bool from_source = false;

	for (i = 0; i < components; i++)
		from_source |= (remap >> 4 * i & 7) < 4;
	if (from_source)
		copy_lines(job, (u64)job->length * size * components);
	else
		fill_lines(job, remap, size, components);
}

static void semaphore(const struct job *job, u32 flags)
{
	static const u8 operations[] = { 1, 2, 7, 5, 6, 0, 3, 4 };
	u64 va = pair(job, 0x240);
	u32 payload = value(job, 0x248), memory;

	if (!(flags & LAUNCH_REDUCE)) {
		nvsim_release(job->channel, va, payload, (flags >> 3 & 3) == 2);
		return;
	}
	if (nvsim_read32(job->channel, va, &memory))
		nvsim_write32(job->channel, va,
			      nvsim_reduce(operations[flags >> 14 & 7], memory,
					   payload));
}

static enum nvsim_verdict launch_dma(struct nvsim_call *call)
{
	struct job job = job_of(call);
	u32 flags = call->value;

	if ((flags & 3) && (flags & LAUNCH_REMAP))
		remapped(&job);
	else if (flags & 3)
		copy_lines(&job, job.length);
	if (flags >> 3 & 3)
		semaphore(&job, flags);
	if (flags >> 5 & 3)
		nvsim_raise(job.channel->gpu, job.channel->client);
	return NVSIM_DONE;
}

const struct nvsim_method nvsim_methods_copy[] = {
	{ NVSIM_COPY, true, 0x300, "LAUNCH_DMA", launch_dma },
	{ }
};
