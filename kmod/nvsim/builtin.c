// SPDX-License-Identifier: GPL-2.0-only
/*
 * libcuda fills and copies larger memory by kernels of its own. They are the only
 * ones whose effect is simulated, and they are recognised by the beginning of
 * their code, which builtin_table.c holds for every branch and architecture.
 */
#include "engine.h"

#define CODE_WORDS	32
#define PARAM_WORDS	6
#define FNV_START	0xcbf29ce484222325ull
#define FNV_PRIME	0x100000001b3ull

struct builtin {
	struct nvsim_channel *channel;
	const struct nvsim_launch *launch;
	u64 params[PARAM_WORDS];
};

static void fill(const struct builtin *builtin, u32 element)
{
	u64 to = builtin->params[0], pitch = builtin->params[3], row;
	u32 pattern = (u32)builtin->params[1];

	for (row = 0; row < builtin->launch->grid[1]; row++) {
		if (builtin->channel->dead)
			return;
		nvsim_fill(builtin->channel, to + row * pitch,
			   builtin->params[2] * element, &pattern, sizeof(pattern));
	}
}

static void copy(const struct builtin *builtin, u64 before, u64 bytes)
{
	nvsim_copy(builtin->channel, builtin->params[0] - before,
		   builtin->params[1] - before, bytes);
}

static void copy_unaligned(const struct builtin *builtin)
{
	const u64 *params = builtin->params;

	copy(builtin, params[2], params[2] + 4 * params[3] + params[4]);
}

static void copy_blocks(const struct builtin *builtin)
{
	const struct nvsim_launch *launch = builtin->launch;

	copy(builtin, 0, 16 * launch->grid[0] * launch->block[0]);
}

static void copy_ends(const struct builtin *builtin)
{
	const u64 *params = builtin->params;
	u64 behind = params[2] + params[3];

	copy(builtin, 0, params[2]);
	if (!builtin->channel->dead)
		nvsim_copy(builtin->channel, params[0] + behind, params[1] + behind,
			   params[4] - params[2]);
}

static void copy_lines(const struct builtin *builtin, u64 from, u64 pitch_to,
		       u64 pitch_from, u64 width, u64 height)
{
	u64 row;

	for (row = 0; row < height && !builtin->channel->dead; row++)
		nvsim_copy(builtin->channel, builtin->params[0] + row * pitch_to,
			   from + row * pitch_from, width);
}

static void copy_2d(const struct builtin *builtin)
{
	const u64 *params = builtin->params;

	copy_lines(builtin, params[1], params[4], params[5], params[2], params[3]);
}

static void copy_2d_unaligned(const struct builtin *builtin)
{
	const u64 *params = builtin->params;

	copy_lines(builtin, params[3], params[1], params[4], params[5] >> 32,
		   (u32)params[5]);
}

static void act(const struct builtin *builtin, enum nvsim_builtin_kind kind)
{
	switch (kind) {
	case NVSIM_FILL_BYTES:
		return fill(builtin, 1);
	case NVSIM_FILL_WORDS:
		return fill(builtin, 4);
	case NVSIM_COPY_BYTES:
		return copy(builtin, 0, builtin->params[2]);
	case NVSIM_COPY_WORDS:
		return copy(builtin, 0, 4 * builtin->params[2]);
	case NVSIM_COPY_UNALIGNED:
		return copy_unaligned(builtin);
	case NVSIM_COPY_BLOCKS:
		return copy_blocks(builtin);
	case NVSIM_COPY_ENDS:
		return copy_ends(builtin);
	case NVSIM_COPY_2D:
		return copy_2d(builtin);
	case NVSIM_COPY_2D_UNALIGNED:
		return copy_2d_unaligned(builtin);
	}
}

static const struct nvsim_builtin_row *find(u64 hash)
{
	u32 low = 0, high = nvsim_builtin_count;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (nvsim_builtins[middle].hash < hash)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < nvsim_builtin_count && nvsim_builtins[low].hash == hash)
		return &nvsim_builtins[low];
	return NULL;
}

static u64 hash_of(struct nvsim_channel *channel, u64 program)
{
	u64 code[CODE_WORDS], hash = FNV_START;
	u32 i;

	if (!nvsim_load(channel, code, program, sizeof(code)))
		return 0;
	for (i = 0; i < CODE_WORDS; i++)
		hash = (hash ^ code[i]) * FNV_PRIME;
	return hash;
}

static void log_launch(const struct builtin *builtin, u64 hash)
{
	const struct nvsim_launch *launch = builtin->launch;
	const u64 *params = builtin->params;

	nvsim_host_log("launch %llx grid %llu %llu block %llu", hash, launch->grid[0],
		       launch->grid[1], launch->block[0]);
	nvsim_host_log(" params %llx %llx %llx %llx %llx %llx\n", params[0], params[1],
		       params[2], params[3], params[4], params[5]);
}

/**
 * nvsim_builtin() - Does the work of a kernel that libcuda brings along.
 * @channel: the channel
 * @launch: its decoded QMD
 * @params: address of the kernel's parameters
 *
 * Context: lock held.
 * Return: true when the kernel is one of libcuda's.
 */
bool nvsim_builtin(struct nvsim_channel *channel,
		   const struct nvsim_launch *launch, u64 params)
{
	struct builtin builtin = { .channel = channel, .launch = launch };
	u64 hash = hash_of(channel, launch->program);
	const struct nvsim_builtin_row *row = find(hash);

	if (!row && !nvsim.learn)
		return false;
	nvsim_load(channel, builtin.params, params, sizeof(builtin.params));
	if (nvsim.learn)
		log_launch(&builtin, hash);
	if (row)
		act(&builtin, row->kind);
	return row;
}
