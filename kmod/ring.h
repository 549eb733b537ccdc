/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How far a channel is: how many entries of its ring the program has written,
 * and how many the GPU has finished.
 *
 * That the GPU has fetched an entry (GP_GET) does not mean that its kernels
 * have ended: they may run on for seconds. So the measure is the program's own.
 * The driver's library ends each entry of a compute channel with the release
 * of a semaphore, the next number at always the same address, and waits on
 * that address before it uses the entry's memory again. The GPU writes it when
 * all work before it is done. Rings, entries and semaphores lie where the
 * program sees them at the addresses that the GPU uses.
 *
 * A program that writes its rings in another way is seen as idle: it can hide
 * what it leaves behind, never open a gate.
 */
#ifndef CGPU_RING_H
#define CGPU_RING_H

#include <linux/types.h>

#define CGPU_PUSH_WAITS		4

/**
 * struct cgpu_wait - a semaphore that the entry waits for
 * @va: its address
 * @payload: the value
 * @kind: how memory and value must compare
 * @wide: 64 bits
 */
struct cgpu_wait {
	u64 va;
	u64 payload;
	enum { CGPU_EQUAL, CGPU_REACHED, CGPU_AFTER, CGPU_ANY_BIT, CGPU_NO_BIT } kind;
	bool wide;
};

/**
 * struct cgpu_push - what a piece of pushbuffer does, as far as it matters here
 * @mode: how the methods of the current header count on
 * @subchannel: which engine they are for
 * @left: data words that the header still has
 * @method: where the next one goes
 * @host: registers of the host's semaphores
 * @report: registers of the compute engine's
 * @copy: registers of the copy engine's
 * @released: the compute engine released an address
 * @va: the last one
 * @payload: its value
 * @timed: the time follows it
 * @copied: the copy engine released an address
 * @copy_va: the last one
 * @copy_payload: its value
 * @wait: semaphores that it waits for
 * @waits: how many
 */
struct cgpu_push {
	u8 mode;
	u8 subchannel;
	u32 left;
	u32 method;
	u32 host[32];
	u32 report[4];
	u32 copy[3];
	bool released;
	u64 va;
	u32 payload;
	bool timed;
	bool copied;
	u64 copy_va;
	u32 copy_payload;
	struct cgpu_wait wait[CGPU_PUSH_WAITS];
	u32 waits;
};

/**
 * struct cgpu_memory - a program's memory
 * @read: copies from it; false if that is not possible
 * @context: of the caller
 */
struct cgpu_memory {
	bool (*read)(void *context, u64 va, void *to, u32 bytes);
	void *context;
};

/**
 * struct cgpu_ring - one channel's ring
 * @base: address of the entries
 * @entries: how many
 * @progress: where the number of finished entries stands, 0 = not known yet
 * @first: number of the entry in slot 0, when @progress was found
 * @put: number of the last entry that was written
 * @timed: the GPU writes beside it when the last entry was finished
 * @done: number of the last entry that was finished
 * @stamp: when, by the GPU's clock; 0 = not known
 * @idle: what slot 0 held when it showed no progress
 */
struct cgpu_ring {
	u64 base;
	u32 entries;
	u64 progress;
	u32 first;
	u32 put;
	bool timed;
	u32 done;
	u64 stamp;
	u64 idle;
};

void cgpu_push_words(struct cgpu_push *p, const u32 *words, u32 count);
void cgpu_ring_look(struct cgpu_ring *r, const struct cgpu_memory *m);
bool cgpu_ring_is_blocked(const struct cgpu_ring *r, const struct cgpu_memory *m);
u32 cgpu_ring_left(const struct cgpu_ring *r, u32 until);

#endif
