// SPDX-License-Identifier: GPL-2.0-only
/*
 * Launches: a QMD (queue meta data, 64 words in memory) says how large a grid is,
 * where its parameters lie and which semaphores it releases at its end. The bit
 * positions are of the public class headers, by the major version of the QMD.
 */
#include "engine.h"

#define MAX_DURATION_NS		100000000000ull
#define CODE_REGION_HI		0x1608
#define CODE_REGION_LO		0x160c
#define QMD_PROGRAM_OFFSET	8	/* word */

struct bits {
	u16 high, low;
};

struct release_layout {
	u8 count;
	u16 enable, enable_step;
	u16 base, step;		/* address low at base, the rest behind it */
	u8 address_high;	/* how many bits */
	u8 payload;		/* distance of the payload from base */
	bool beside_enable;	/* where the next bits are relative to, else base */
	struct bits size;	/* one word or four */
	u8 one_word;		/* value of size that means one word */
	struct bits reduce;	/* enable bit, and lowest bit of the operation */
};

struct qmd_layout {
	u8 version;
	struct bits grid[3], block[3];
	struct bits bank_low, bank_high;
	u8 bank_shift;
	u16 bank_valid;
	struct bits program_low, program_high;
	struct release_layout release;
};

static const struct qmd_layout layouts[] = {
	{
		.version = 2,
		.grid = { { 415, 384 }, { 431, 416 }, { 463, 448 } },
		.block = { { 607, 592 }, { 623, 608 }, { 639, 624 } },
		.bank_low = { 1055, 1024 }, .bank_high = { 1072, 1056 },
		.bank_valid = 640,
		.program_low = { 1567, 1536 }, .program_high = { 1584, 1568 },
		.release = {
			.count = 2, .enable = 138, .enable_step = 1,
			.base = 736, .step = 96, .address_high = 8, .payload = 64,
			.size = { 63, 63 }, .one_word = 1, .reduce = { 58, 52 },
		},
	}, {
		.version = 3,
		.grid = { { 415, 384 }, { 431, 416 }, { 463, 448 } },
		.block = { { 607, 592 }, { 623, 608 }, { 639, 624 } },
		.bank_low = { 1055, 1024 }, .bank_high = { 1072, 1056 },
		.bank_valid = 640,
		.program_low = { 1567, 1536 }, .program_high = { 1584, 1568 },
		.release = {
			.count = 2, .enable = 823, .enable_step = 128,
			.base = 768, .step = 128, .address_high = 8, .payload = 64,
			.size = { 63, 62 }, .one_word = 1, .reduce = { 58, 52 },
		},
	}, {
		.version = 4,
		.grid = { { 1055, 1024 }, { 1071, 1056 }, { 1103, 1088 } },
		.block = { { 1167, 1152 }, { 1183, 1168 }, { 1199, 1184 } },
		.bank_low = { 1567, 1536 }, .bank_high = { 1586, 1568 },
		.bank_shift = 6, .bank_valid = 416,
		.program_low = { 1247, 1216 }, .program_high = { 1264, 1248 },
		.release = {
			.count = 3, .enable = 320, .enable_step = 16,
			.base = 640, .step = 128, .address_high = 25, .payload = 64,
			.beside_enable = true, .size = { 2, 1 }, .one_word = 1,
			.reduce = { 4, 5 },
		},
	},
};

/* At most 32 bits, which may lie across two words. */
static u64 take(const u32 *qmd, u32 high, u32 low)
{
	u32 word = low / 32;
	u64 window = qmd[word];

	if (high / 32 != word)
		window |= (u64)qmd[word + 1] << 32;
	return window >> low % 32 & (BIT_ULL(high - low + 1) - 1);
}

static u64 field(const u32 *qmd, struct bits bits)
{
	return take(qmd, bits.high, bits.low);
}

static const struct qmd_layout *layout_of(const u32 *qmd)
{
	u32 version = take(qmd, 583, 580), i;

	for (i = 0; i < ARRAY_SIZE(layouts); i++)
		if (layouts[i].version == version)
			return &layouts[i];
	return NULL;
}

static void read_release(struct nvsim_kernel *kernel, const u32 *qmd,
			 const struct release_layout *layout, u32 index)
{
	u32 base = layout->base + index * layout->step;
	u32 enable = layout->enable + index * layout->enable_step;
	u32 flags = layout->beside_enable ? enable : base;
	u32 reduce = flags + layout->reduce.high, operation = flags + layout->reduce.low;
	struct nvsim_release *release = &kernel->release[kernel->releases];

	if (!take(qmd, enable, enable))
		return;
	release->va = take(qmd, base + 31 + layout->address_high, base + 32) << 32 |
		      take(qmd, base + 31, base);
	release->payload = take(qmd, base + layout->payload + 31,
				base + layout->payload);
	release->words = take(qmd, flags + layout->size.high,
			      flags + layout->size.low) == layout->one_word ? 1 : 4;
	release->reduce = take(qmd, reduce, reduce) ?
			  8 | take(qmd, operation + 2, operation) : 0;
	kernel->releases++;
}

static void decode(struct nvsim_launch *launch, const struct qmd_layout *layout)
{
	const u32 *qmd = launch->qmd;
	u32 i;

	launch->version = layout->version;
	for (i = 0; i < 3; i++) {
		launch->grid[i] = field(qmd, layout->grid[i]);
		launch->block[i] = field(qmd, layout->block[i]);
	}
	launch->bank = (field(qmd, layout->bank_high) << 32 |
			field(qmd, layout->bank_low)) << layout->bank_shift;
	launch->bank_valid = take(qmd, layout->bank_valid, layout->bank_valid);
	launch->program = field(qmd, layout->program_high) << 32 |
			  field(qmd, layout->program_low);
}

/* Before Volta a program is an offset into the channel's code region. */
static u64 program_of(const struct nvsim_call *call, const struct nvsim_launch *launch)
{
	u64 region;

	if (call->channel->gpu->card->sm >= 0x700)
		return launch->program;
	region = (u64)nvsim_register(call->channel, call->subchannel, CODE_REGION_HI) << 32 |
		 nvsim_register(call->channel, call->subchannel, CODE_REGION_LO);
	return region + launch->qmd[QMD_PROGRAM_OFFSET];
}

/* Where a kernel's parameters begin in its first constant bank. */
static u32 params_offset(const struct nvsim_card *card)
{
	if (card->sm >= 0x900)
		return 0x210;
	return card->sm >= 0x700 ? 0x160 : 0x140;
}

/*
 * A test kernel tells its duration by its first parameter: a number that is no
 * mapped address. Every other kernel takes the machine's kernel_ns.
 */
static u64 duration(struct nvsim_channel *channel, u64 params)
{
	u64 left, first = 0;
	void *at = nvsim_at(channel, params, &left);

	if (!at || left < sizeof(first))
		return nvsim.kernel_ns;
	first = get64(at, 0);
	if (!first || first > MAX_DURATION_NS || nvsim_at(channel, first, NULL))
		return nvsim.kernel_ns;
	return first;
}

static void start(const struct nvsim_call *call, const struct qmd_layout *layout,
		  const struct nvsim_launch *launch)
{
	struct nvsim_channel *channel = call->channel;
	struct nvsim_kernel *kernel = &channel->kernel;
	u64 params = launch->bank + params_offset(channel->gpu->card);
	u32 i;

	memset(kernel, 0, sizeof(*kernel));
	for (i = 0; i < layout->release.count; i++)
		read_release(kernel, launch->qmd, &layout->release, i);
	if (launch->bank_valid && !nvsim_builtin(channel, launch, params))
		kernel->left_ns = duration(channel, params);
	kernel->ready_ns = channel->time_ns;
	channel->launches++;
	if (!channel->dead)
		nvsim_gr_enqueue(channel);
}

/**
 * nvsim_launch() - Starts a kernel.
 * @call: the method that launches; its channel has no pending kernel
 * @qmd: the 64 words of its QMD
 *
 * Context: lock held.
 * Return: NVSIM_DONE.
 */
enum nvsim_verdict nvsim_launch(const struct nvsim_call *call, const u32 *qmd)
{
	struct nvsim_launch launch = { .qmd = qmd };
	const struct qmd_layout *layout = layout_of(qmd);

	if (!layout) {
		nvsim_host_log("channel %u: QMD version %llu is not known\n",
			       call->channel->id, take(qmd, 583, 580));
		nvsim_channel_fail(call->channel, 13);
		return NVSIM_DONE;
	}
	decode(&launch, layout);
	launch.program = program_of(call, &launch);
	start(call, layout, &launch);
	return NVSIM_DONE;
}
