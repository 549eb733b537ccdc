// SPDX-License-Identifier: GPL-2.0-only
/*
 * libcuda fills and copies larger memory by kernels of its own. They are the only
 * ones whose effect is simulated.
 */
#include "engine.h"

static void fill(struct nvsim_channel *channel, const struct nvsim_launch *launch,
		 const u8 *params)
{
	u64 count = get64(params, 16), pitch = get64(params, 24), row;
	u64 threads = launch->grid[0] * launch->block[0];
	u32 pattern = get32(params, 8), element = count < 8 * threads ? 4 : 1;

	for (row = 0; row < launch->grid[1] && !channel->dead; row++)
		nvsim_fill(channel, get64(params, 0) + row * pitch,
			   count * element, &pattern, sizeof(pattern));
}

bool nvsim_builtin(struct nvsim_channel *channel,
		   const struct nvsim_launch *launch, u64 params)
{
	u64 left = 0, threads = launch->grid[0] * launch->block[0], to, from, count;
	u8 *at = nvsim_at(channel, params, &left);

	if (!at || left < 32)
		return false;
	to = get64(at, 0);
	from = get64(at, 8);
	count = get64(at, 16);
	if (!nvsim_at(channel, to, NULL))
		return false;
	{
		u8 *code = nvsim_at(channel, launch->program, &left);
		u64 h = 1469598103934665603ull;
		u32 i;

		for (i = 0; code && i < 256; i++)
			h = (h ^ code[i]) * 1099511628211ull;
		nvsim_host_log("builtin? v%u prog %llx code %llx h %llx grid %llu,%llu block %llu params %llx %llx %llx %llx\n",
			launch->version, launch->program, (u64)(code != 0), h, launch->grid[0], launch->grid[1], launch->block[0], to, from, count, get64(at, 24));
	}
	if (!(from >> 32) && count && count < 32 * threads) {
		fill(channel, launch, at);
		return true;
	}
	if (from >> 32 && nvsim_at(channel, from, NULL)) {
		nvsim_copy(channel, to, from, launch->block[0] == 256 && count > threads ? threads * 16 : count);
		return true;
	}
	return false;
}
