// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pushbuffers: a channel's ring of GPFIFO entries names pieces of memory, whose
 * words are headers and method data.
 */
#include "engine.h"

#define METHODS_A_TURN	(64 << 10)

enum mode { INCREASING = 1, CONSTANT = 3, IMMEDIATE = 4, ONE_INCREASING = 5, END = 7 };

static bool next_entry(struct nvsim_channel *channel)
{
	u32 low, high;

	if (channel->get == channel->put)
		return false;
	if (!nvsim_read32(channel, channel->gpfifo + 8ull * channel->get, &low) ||
	    !nvsim_read32(channel, channel->gpfifo + 8ull * channel->get + 4, &high))
		return false;
	channel->buffer = (u64)(high & 0xff) << 32 | (low & ~3u);
	channel->words = high >> 10 & 0x1fffff;
	channel->word = 0;
	channel->left = 0;
	channel->in_buffer = true;
	return true;
}

static void end_entry(struct nvsim_channel *channel)
{
	u32 *get = nvsim_userd_word(channel, NV_USERD_GP_GET);

	channel->in_buffer = false;
	channel->entries_done++;
	nvsim.progress++;
	channel->get = (channel->get + 1) % channel->entries;
	if (get)
		smp_store_release(get, channel->get);	/* after its effects */
}

static void header(struct nvsim_channel *channel, u32 word)
{
	channel->mode = word >> 29;
	channel->left = word >> 16 & 0x1fff;
	channel->subchannel = word >> 13 & 7;
	channel->method = (word & 0xfff) << 2;
	if (channel->mode == END)
		channel->word = channel->words;
	if (channel->mode != INCREASING && channel->mode != CONSTANT &&
	    channel->mode != ONE_INCREASING)
		channel->left = 0;
}

static void step_method(struct nvsim_channel *channel)
{
	channel->left--;
	if (channel->mode != CONSTANT)
		channel->method = (channel->method + 4) & 0x3fff;
	if (channel->mode == ONE_INCREASING)
		channel->mode = CONSTANT;
}

/* One word of pushbuffer; NVSIM_DONE moves on, else the word comes again. */
static enum nvsim_verdict one_word(struct nvsim_channel *channel, u32 word)
{
	enum nvsim_verdict verdict = NVSIM_DONE;

	if (channel->left) {
		verdict = nvsim_method(channel, channel->subchannel,
				       channel->method, word);
		if (verdict == NVSIM_DONE)
			step_method(channel);
	} else if (word >> 29 == IMMEDIATE) {
		verdict = nvsim_method(channel, word >> 13 & 7,
				       (word & 0xfff) << 2, word >> 16 & 0x1fff);
	} else {
		header(channel, word);
	}
	if (verdict == NVSIM_DONE)
		channel->word++;
	return verdict;
}

/* Words in one piece that can be taken together; how many were. */
static u32 many_words(struct nvsim_channel *channel, const u32 *words, u32 count)
{
	u32 taken = 0;

	count = min(count, channel->left);
	if (count && channel->mode == INCREASING)
		taken = nvsim_methods_store(channel, channel->subchannel,
					    channel->method, words, count);
	else if (count && channel->mode == CONSTANT)
		taken = nvsim_inline_words(channel, channel->subchannel,
					   channel->method, words, count);
	if (channel->mode == INCREASING)
		channel->method = (channel->method + 4 * taken) & 0x3fff;
	channel->left -= taken;
	channel->word += taken;
	return taken;
}

/* The next words of a buffer in one piece, or NULL after a fault. */
static const u32 *buffer_at(struct nvsim_channel *channel, u64 *left)
{
	u64 va = channel->buffer + 4ull * channel->word;
	const u32 *words = nvsim_at(channel, va, left);

	if (words && *left >= 4 && IS_ALIGNED((unsigned long)words, 4))
		return words;
	nvsim_fault(channel, va, "pushbuffer");
	return NULL;
}

static enum nvsim_verdict run_buffer(struct nvsim_channel *channel, u32 *budget)
{
	const u32 *words = NULL;
	u64 left = 0;

	while (channel->word < channel->words && *budget) {
		u32 most = min(channel->words - channel->word, *budget), taken;
		enum nvsim_verdict verdict;

		if (left < 4) {
			words = buffer_at(channel, &left);
			if (!words)
				return NVSIM_WAIT;
		}
		taken = many_words(channel, words, min_t(u64, most, left / 4));
		if (!taken) {
			verdict = one_word(channel, READ_ONCE(*words));
			if (verdict != NVSIM_DONE || channel->dead)
				return verdict;
			taken = 1;
		}
		words += taken;
		left -= 4ull * taken;
		*budget -= taken;
	}
	return NVSIM_DONE;
}

/* Where a channel goes when it cannot go on. */
static void park(struct nvsim_channel *channel, enum nvsim_verdict verdict)
{
	if (channel->dead || verdict == NVSIM_BUSY)
		list_del_init(&channel->ready);
	else if (verdict == NVSIM_WAIT)
		list_move_tail(&channel->ready, &channel->gpu->stalled);
}

/**
 * nvsim_channel_run() - Executes a channel until it cannot go on.
 * @channel: a channel on its card's ready list
 *
 * Context: lock held.
 * Return: true when it did something.
 */
bool nvsim_channel_run(struct nvsim_channel *channel)
{
	u32 budget = METHODS_A_TURN;
	u64 done = channel->entries_done;

	if (channel->disabled || channel->dead) {
		list_del_init(&channel->ready);
		return false;
	}
	while (budget) {
		enum nvsim_verdict verdict;

		if (!channel->in_buffer && !next_entry(channel)) {
			list_del_init(&channel->ready);
			break;
		}
		verdict = run_buffer(channel, &budget);
		if (verdict != NVSIM_DONE || channel->dead) {
			park(channel, verdict);
			break;
		}
		if (channel->word >= channel->words)
			end_entry(channel);
	}
	return budget != METHODS_A_TURN || done != channel->entries_done;
}
