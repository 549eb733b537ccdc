// SPDX-License-Identifier: GPL-2.0-only
/* The machine: branch, cards, memory. */
#include "engine.h"

struct nvsim_state nvsim;

static const struct nvsim_branch *branch_find(u32 number)
{
	const struct nvsim_branch *branch;

	for (branch = nvsim_branches; branch->number; branch++)
		if (branch->number == number)
			return branch;
	nvsim_host_log("branch=%u is not played; take 418, 450, 460, 470, 535, 550, 570 or 580\n",
		       number);
	return NULL;
}

static const struct nvsim_card *card_find(const char *name)
{
	const struct nvsim_card *card;

	for (card = nvsim_cards; card->name; card++)
		if (!strcmp(card->name, name))
			return card;
	nvsim_host_log("cards=%s is not played; take T4, V100, A10, A100, P4, P100 or H100\n",
		       name);
	return NULL;
}

static void gpu_init(struct nvsim_gpu *gpu, u32 minor, u32 mib)
{
	u32 i;

	gpu->minor = minor;
	gpu->bus = 0x1e + minor;
	gpu->id = gpu->bus << 8;
	gpu->total = (u64)(mib ? mib : gpu->card->memory_mib) << 20;
	for (i = 0; i < 16; i++)
		gpu->uuid[i] = i + 1;
	gpu->uuid[0] = gpu->card->device & 0xff;
	gpu->uuid[1] = gpu->card->device >> 8;
	gpu->uuid[15] = 0x10 + minor;
	INIT_LIST_HEAD(&gpu->channels);
	INIT_LIST_HEAD(&gpu->ready);
	INIT_LIST_HEAD(&gpu->stalled);
	INIT_LIST_HEAD(&gpu->doorbells);
	INIT_LIST_HEAD(&gpu->gr.tsgs);
	INIT_LIST_HEAD(&gpu->gr.ready);
}

/**
 * nvsim_setup() - Builds the machine that the driver finds.
 * @branch: driver branch
 * @version: full version; NULL or empty takes the branch's own
 * @cards: names of cards, one a GPU
 * @card_count: how many
 * @total_mib: memory of each GPU in MiB; 0 takes the card's own
 * @mib_count: how many of them; the last one repeats
 *
 * Context: before any file is open.
 * Return: 0, or -EINVAL with the reason in the log.
 */
int nvsim_setup(u32 branch, const char *version, const char *const *cards,
		u32 card_count, const u32 *total_mib, u32 mib_count)
{
	u32 i;

	memset(&nvsim, 0, sizeof(nvsim));
	INIT_LIST_HEAD(&nvsim.clients);
	INIT_LIST_HEAD(&nvsim.uvms);
	INIT_LIST_HEAD(&nvsim.files);
	INIT_LIST_HEAD(&nvsim.events);
	nvsim.next_client = 0xc1d00001;
	nvsim.next_channel = 1;
	nvsim.branch = branch_find(branch);
	if (!nvsim.branch)
		return -EINVAL;
	nvsim.version = version && *version ? version : nvsim.branch->version;
	if (card_count < 1 || card_count > NVSIM_MAX_GPUS) {
		nvsim_host_log("cards= names %u cards; from 1 to %u can be played\n",
			       card_count, NVSIM_MAX_GPUS);
		return -EINVAL;
	}
	for (i = 0; i < card_count; i++) {
		struct nvsim_gpu *gpu = &nvsim.gpus[i];
		u32 last = mib_count ? min(i, mib_count - 1) : 0;

		gpu->card = card_find(cards[i]);
		if (!gpu->card)
			return -EINVAL;
		gpu_init(gpu, i, mib_count ? total_mib[last] : 0);
	}
	nvsim.gpu_count = card_count;
	nvsim_methods_setup();
	return 0;
}

/**
 * nvsim_teardown() - Checks that nothing was left behind.
 *
 * Context: after the last file is closed.
 */
void nvsim_teardown(void)
{
	u32 i;

	for (i = 0; i < nvsim.gpu_count; i++)
		if (nvsim.gpus[i].used)
			nvsim_host_log("GPU %u: %llu bytes of memory were never freed\n",
				       i, nvsim.gpus[i].used);
}
