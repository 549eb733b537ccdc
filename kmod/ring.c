// SPDX-License-Identifier: GPL-2.0-only
/* How far a channel is. See ring.h. */
#include "ring.h"

#ifdef __KERNEL__
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/string.h>
#else
#include "tests/shim/host.h"
#endif

/* Pushbuffers and their methods. [O] class/clc46f.h, clc5c0.h, clc5b5.h */
#define INCREASING		1
#define CONSTANT		3
#define IMMEDIATE		4
#define ONE_INCREASING		5
#define HOST_METHODS		0x80
#define LEGACY_HI		0x10
#define LEGACY_EXECUTE		0x1c
#define SEM_LO			0x5c
#define SEM_EXECUTE		0x6c
#define SEM_64_BIT		BIT(24)
#define REPORT			0x1b00
#define REPORT_EXECUTE		0x1b0c
#define REPORT_REDUCE		BIT(3)
#define REPORT_ONE_WORD		BIT(28)	/* else the time follows */
#define COPY_SUBCHANNEL		4
#define COPY_RELEASE		0x240
#define COPY_LAUNCH		0x300
#define COPY_RELEASES		(3u << 3)
#define LONGEST_PUSH		0x10000		/* words that are looked at */
#define CHUNK			128

static u64 wide(u32 high, u32 low)
{
	return (u64)high << 32 | low;
}

static void add_wait(struct cgpu_push *p, u64 va, u64 payload, int kind, bool is_wide)
{
	if (p->waits < CGPU_PUSH_WAITS)
		p->wait[p->waits++] = (struct cgpu_wait) {
			.va = va, .payload = payload, .kind = kind, .wide = is_wide,
		};
}

static void host_semaphore(struct cgpu_push *p, u32 value)
{
	static const int kinds[] = { CGPU_EQUAL, -1, CGPU_REACHED, CGPU_AFTER,
				    CGPU_ANY_BIT, CGPU_NO_BIT, -1, -1 };
	const u32 *reg = &p->host[SEM_LO / 4];
	bool is_wide = value & SEM_64_BIT;

	if (kinds[value & 7] >= 0)
		add_wait(p, wide(reg[1] & 0xff, reg[0] & ~3u),
			 wide(is_wide ? reg[3] : 0, reg[2]), kinds[value & 7],
			 is_wide);
}

static void legacy_semaphore(struct cgpu_push *p, u32 value)
{
	const u32 *reg = &p->host[LEGACY_HI / 4];
	u64 va = wide(reg[0] & 0xff, reg[1] & ~3u);

	switch (value & 31) {
	case 1:
		add_wait(p, va, reg[2], CGPU_EQUAL, false);
		break;
	case 4:
		add_wait(p, va, reg[2], CGPU_AFTER, false);
		break;
	case 8:
		add_wait(p, va, reg[2], CGPU_ANY_BIT, false);
		break;
	}
}

static void report(struct cgpu_push *p, u32 value)
{
	if (value & (3 | REPORT_REDUCE))
		return;
	p->released = true;
	p->va = wide(p->report[0] & 0xff, p->report[1]);
	p->payload = p->report[2];
	p->timed = !(value & REPORT_ONE_WORD);
}

/* Copies through a compute channel: the copy engine writes the number. */
static void copy(struct cgpu_push *p, u32 at, u32 value)
{
	if (at >= COPY_RELEASE && at < COPY_RELEASE + 4 * ARRAY_SIZE(p->copy))
		p->copy[(at - COPY_RELEASE) / 4] = value;
	if (at != COPY_LAUNCH || !(value & COPY_RELEASES))
		return;
	p->copied = true;
	p->copy_va = wide(p->copy[0] & 0xff, p->copy[1]);
	p->copy_payload = p->copy[2];
}

static void method(struct cgpu_push *p, u32 at, u32 value)
{
	if (p->subchannel == COPY_SUBCHANNEL)
		copy(p, at, value);
	if (at < HOST_METHODS)
		p->host[at / 4] = value;
	else if (at >= REPORT && at <= REPORT_EXECUTE)
		p->report[(at - REPORT) / 4] = value;
	switch (at) {
	case LEGACY_EXECUTE:
		legacy_semaphore(p, value);
		break;
	case SEM_EXECUTE:
		host_semaphore(p, value);
		break;
	case REPORT_EXECUTE:
		report(p, value);
		break;
	}
}

static void header(struct cgpu_push *p, u32 word)
{
	p->mode = word >> 29;
	p->subchannel = word >> 13 & 7;
	p->method = (word & 0xfff) << 2;
	p->left = word >> 16 & 0x1fff;
	if (p->mode == IMMEDIATE)
		method(p, p->method, p->left);
	if (p->mode != INCREASING && p->mode != CONSTANT &&
	    p->mode != ONE_INCREASING)
		p->left = 0;
}

static void data(struct cgpu_push *p, u32 word)
{
	method(p, p->method, word);
	p->left--;
	if (p->mode != CONSTANT)
		p->method = (p->method + 4) & 0x3fff;
	if (p->mode == ONE_INCREASING)
		p->mode = CONSTANT;
}

/**
 * cgpu_push_words() - the next words of a pushbuffer
 * @p: what is known so far, zeroes at the beginning
 * @words: the words
 * @count: how many
 *
 * Context: any.
 */
void cgpu_push_words(struct cgpu_push *p, const u32 *words, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++) {
		if (p->left)
			data(p, words[i]);
		else
			header(p, words[i]);
	}
}

static bool read_push(const struct cgpu_memory *m, u64 entry, struct cgpu_push *p)
{
	u64 va = wide(entry >> 32 & 0xff, entry & ~3u);
	u32 words[CHUNK], left = entry >> 42 & 0x1fffff;

	memset(p, 0, sizeof(*p));
	if (!left || left > LONGEST_PUSH)
		return false;
	while (left) {
		u32 n = min_t(u32, left, CHUNK);

		if (!m->read(m->context, va, words, 4 * n))
			return false;
		cgpu_push_words(p, words, n);
		va += 4 * n;
		left -= n;
	}
	return true;
}

static bool read_slot(const struct cgpu_ring *r, const struct cgpu_memory *m,
		      u32 slot, u64 *entry)
{
	return m->read(m->context, r->base + 8ull * (slot % r->entries), entry,
		       sizeof(*entry));
}

static bool read_entry(const struct cgpu_ring *r, const struct cgpu_memory *m,
		       u32 number, struct cgpu_push *p)
{
	u64 entry;

	if (!read_slot(r, m, number - r->first, &entry) || !read_push(m, entry, p))
		return false;
	return (p->released && p->va == r->progress && p->payload == number) ||
	       (p->copied && p->copy_va == r->progress &&
		p->copy_payload == number);
}

/* The first entry of a compute channel shows where its progress stands. */
static bool find_progress(struct cgpu_ring *r, const struct cgpu_memory *m)
{
	struct cgpu_push p;
	u64 entry;

	if (!read_slot(r, m, 0, &entry) || entry == r->idle)
		return false;
	r->idle = entry;
	if (!read_push(m, entry, &p) || !p.released)
		return false;
	r->progress = p.va;
	r->first = p.payload;
	r->timed = p.timed;
	r->put = p.payload;
	r->done = p.payload - 1;
	return true;
}

/* Entries are numbered without gaps, so the last one is found by halving. */
static void find_put(struct cgpu_ring *r, const struct cgpu_memory *m)
{
	struct cgpu_push p;
	u32 step;

	for (step = 1; step < r->entries && read_entry(r, m, r->put + step, &p); step *= 2)
		r->put += step;
	for (step /= 2; step; step /= 2)
		if (read_entry(r, m, r->put + step, &p))
			r->put += step;
}

/**
 * cgpu_ring_look() - see how far a channel is
 * @r: the ring
 * @m: the program's memory
 *
 * Context: any; the caller serialises.
 */
void cgpu_ring_look(struct cgpu_ring *r, const struct cgpu_memory *m)
{
	u64 report[2];

	if (!r->entries || (!r->progress && !find_progress(r, m)))
		return;
	if (!m->read(m->context, r->progress, report, r->timed ? 16 : 4))
		return;
	r->done = (u32)report[0];
	r->stamp = r->timed ? report[1] : 0;
	/* the ring went round since the last look: what is behind is overwritten */
	if ((s32)(r->done - r->put) > 0)
		r->put = r->done;
	find_put(r, m);
}

/**
 * cgpu_ring_left() - entries that the GPU has not finished
 * @r: the ring
 * @until: number of the last entry that counts
 *
 * Context: any.
 * Return: how many; 0 if the numbers make no sense.
 */
u32 cgpu_ring_left(const struct cgpu_ring *r, u32 until)
{
	s32 left = until - r->done;

	return r->progress && left > 0 && (u32)left <= r->entries ? left : 0;
}

static bool holds(const struct cgpu_wait *w, u64 memory)
{
	u64 both = memory & w->payload;

	switch (w->kind) {
	case CGPU_EQUAL:
		return memory == w->payload;
	case CGPU_REACHED:
		return memory >= w->payload;
	case CGPU_AFTER:
		return w->wide ? (s64)(memory - w->payload) >= 0 :
				 (s32)((u32)memory - (u32)w->payload) >= 0;
	case CGPU_ANY_BIT:
		return both;
	case CGPU_NO_BIT:
		return (u32)~(memory | w->payload);
	}
	return true;
}

/**
 * cgpu_ring_is_blocked() - whether the entry whose turn it is waits for others
 * @r: the ring
 * @m: the program's memory
 *
 * Context: any.
 * Return: true if it waits for a semaphore and so does not compute.
 */
bool cgpu_ring_is_blocked(const struct cgpu_ring *r, const struct cgpu_memory *m)
{
	struct cgpu_push p;
	u32 i;

	if (!read_entry(r, m, r->done + 1, &p))
		return false;
	for (i = 0; i < p.waits; i++) {
		u64 memory = 0;

		if (m->read(m->context, p.wait[i].va, &memory, p.wait[i].wide ? 8 : 4) &&
		    !holds(&p.wait[i], memory))
			return true;
	}
	return false;
}
