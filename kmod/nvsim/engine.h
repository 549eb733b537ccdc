/* SPDX-License-Identifier: GPL-2.0-only */
/* The engine's inside: channels, methods, launches, the graphics engine. */
#ifndef NVSIM_ENGINE_H
#define NVSIM_ENGINE_H

#include "rm.h"

enum nvsim_engine_kind {
	NVSIM_HOST,		/* methods below 0x100, on every subchannel */
	NVSIM_COMPUTE,
	NVSIM_COPY,
	NVSIM_ENGINE_KINDS,
};

enum nvsim_verdict {
	NVSIM_DONE,
	NVSIM_BUSY,		/* again when the channel's kernel has ended */
	NVSIM_WAIT,		/* again after a while: a semaphore */
};

struct nvsim_call {
	struct nvsim_channel *channel;
	u8 subchannel;
	u32 value;
};

struct nvsim_method {
	u8 kind;		/* enum nvsim_engine_kind */
	bool after_kernel;	/* waits for the channel's kernel first */
	u16 method;
	const char *name;
	enum nvsim_verdict (*act)(struct nvsim_call *call);
};

extern const struct nvsim_method nvsim_methods_host[];
extern const struct nvsim_method nvsim_methods_compute[];
extern const struct nvsim_method nvsim_methods_copy[];

/* channel.c */
u32 nvsim_channel_new(struct nvsim_object *object, const u8 *params);
void nvsim_channel_free(struct nvsim_channel *channel);
void nvsim_channel_ready(struct nvsim_channel *channel);
void nvsim_channel_fail(struct nvsim_channel *channel, u32 xid);
void nvsim_channel_kill(struct nvsim_channel *channel, u32 xid);
void nvsim_doorbell_poll(struct nvsim_gpu *gpu);
u32 *nvsim_userd_word(struct nvsim_channel *channel, u32 offset);

/* pushbuffer.c */
bool nvsim_channel_run(struct nvsim_channel *channel);

/* method.c */
void nvsim_methods_setup(void);
enum nvsim_verdict nvsim_method(struct nvsim_channel *channel, u8 subchannel,
				u32 method, u32 value);
u32 nvsim_methods_store(struct nvsim_channel *channel, u8 subchannel, u32 method,
			const u32 *words, u32 count);
u32 nvsim_inline_words(struct nvsim_channel *channel, u8 subchannel, u32 method,
		       const u32 *words, u32 count);

/* access.c: memory as a channel sees it */
void *nvsim_at(struct nvsim_channel *channel, u64 va, u64 *left);
void nvsim_fault(struct nvsim_channel *channel, u64 va, const char *what);
bool nvsim_read32(struct nvsim_channel *channel, u64 va, u32 *value);
void nvsim_write32(struct nvsim_channel *channel, u64 va, u32 value);
void nvsim_write64(struct nvsim_channel *channel, u64 va, u64 value);
void nvsim_release(struct nvsim_channel *channel, u64 va, u64 payload,
		   bool timestamp);
u32 nvsim_reduce(u32 operation, u32 memory, u32 value);
bool nvsim_load(struct nvsim_channel *channel, void *to, u64 from, u64 bytes);
bool nvsim_store(struct nvsim_channel *channel, u64 to, const void *from,
		 u64 bytes);
void nvsim_copy(struct nvsim_channel *channel, u64 to, u64 from, u64 bytes);
void nvsim_fill(struct nvsim_channel *channel, u64 to, u64 bytes,
		const void *pattern, u32 period);
u32 nvsim_register(struct nvsim_channel *channel, u8 subchannel, u32 method);

/* launch.c, builtin.c */
struct nvsim_launch {
	const u32 *qmd;		/* 64 words */
	u8 version;
	u64 grid[3], block[3];
	u64 bank, program;
	bool bank_valid;
};

enum nvsim_verdict nvsim_launch(const struct nvsim_call *call, const u32 *qmd);
enum nvsim_builtin_kind {
	NVSIM_FILL_BYTES,	/* to, pattern, count, pitch; rows in grid.y */
	NVSIM_FILL_WORDS,
	NVSIM_COPY_BYTES,	/* to, from, count */
	NVSIM_COPY_WORDS,
	NVSIM_COPY_UNALIGNED,	/* to, from, bytes before, words, bytes behind */
	NVSIM_COPY_BLOCKS,	/* to, from; 16 bytes a thread */
	NVSIM_COPY_ENDS,	/* to, from, bytes before, hole, bytes outside it */
	NVSIM_COPY_2D,		/* to, from, width, height, pitch to, from */
	NVSIM_COPY_2D_UNALIGNED, /* to, pitch, -, from, pitch, height | width << 32 */
};

struct nvsim_builtin_row {
	u64 hash;
	u8 kind;
};

extern const struct nvsim_builtin_row nvsim_builtins[];
extern const u32 nvsim_builtin_count;
bool nvsim_builtin(struct nvsim_channel *channel,
		   const struct nvsim_launch *launch, u64 params);

/* gr.c */
void nvsim_tsg_init(struct nvsim_tsg *tsg, struct nvsim_gpu *gpu, void *task);
void nvsim_tsg_exit(struct nvsim_tsg *tsg);
void nvsim_gr_enqueue(struct nvsim_channel *channel);
void nvsim_gr_dequeue(struct nvsim_channel *channel);
/* Runs to the next end of a kernel, or to now; the channel whose kernel ended. */
struct nvsim_channel *nvsim_gr_advance(struct nvsim_gr *gr, u64 now);
u64 nvsim_gr_next(const struct nvsim_gr *gr);
u32 nvsim_gr_load(const struct nvsim_gr *gr, u64 now);

#endif
