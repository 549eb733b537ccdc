// SPDX-License-Identifier: GPL-2.0-only
/* A channel as libcuda writes it: entries that end with the release of their number. */
#include <kunit/test.h>
#include "../ring.h"

#define ENTRIES		16
#define BASE		0x200000000ULL
#define PUSH		0x200010000ULL
#define PROGRESS	0x200020000ULL
#define FLAG		0x200020010ULL
#define WORDS		32

static u64 slots[ENTRIES];
static u32 pushes[ENTRIES][WORDS];
static u32 words[8];
static struct cgpu_ring ring;

static bool copy(const void *from, u64 size, u64 at, void *to, u32 bytes)
{
	if (at > size || bytes > size - at)
		return false;
	memcpy(to, (const u8 *)from + at, bytes);
	return true;
}

static bool read_fake(void *context, u64 va, void *to, u32 bytes)
{
	if (va >= PROGRESS)
		return copy(words, sizeof(words), va - PROGRESS, to, bytes);
	if (va >= PUSH)
		return copy(pushes, sizeof(pushes), va - PUSH, to, bytes);
	return va >= BASE && copy(slots, sizeof(slots), va - BASE, to, bytes);
}

static const struct cgpu_memory memory = { .read = read_fake };

static u32 header(u32 mode, u32 count, u32 subchannel, u32 at)
{
	return mode << 29 | count << 16 | subchannel << 13 | at >> 2;
}

static void fresh(void)
{
	memset(slots, 0, sizeof(slots));
	memset(words, 0, sizeof(words));
	ring = (struct cgpu_ring) { .base = BASE, .entries = ENTRIES };
}

/* @wait: value that the word at FLAG must reach first, 0 = none */
static void write_entry(u32 number, u32 wait)
{
	u32 slot = (number - 1) % ENTRIES, n = 0, *w = pushes[slot];
	u64 va = PUSH + sizeof(pushes[0]) * slot;

	if (wait) {
		w[n++] = header(1, 5, 0, 0x5c);
		w[n++] = (u32)FLAG;
		w[n++] = FLAG >> 32;
		w[n++] = wait;
		w[n++] = 0;
		w[n++] = 0x1003;
	}
	w[n++] = header(3, 3, 1, 0x1b4);	/* data that looks like methods */
	w[n++] = header(1, 4, 1, 0x1b00);
	w[n++] = 0;
	w[n++] = 0x6c;
	w[n++] = header(4, 0, 1, 0x100);
	w[n++] = header(1, 4, 1, 0x1b00);
	w[n++] = PROGRESS >> 32;
	w[n++] = (u32)PROGRESS;
	w[n++] = number;
	w[n++] = 4;
	w[n++] = header(4, 3, 1, 0x1b0c);
	slots[slot] = va | (u64)n << 42;
}

static u32 left(void)
{
	cgpu_ring_look(&ring, &memory);
	return cgpu_ring_left(&ring, ring.put);
}

static void an_empty_ring_has_no_work(struct kunit *test)
{
	fresh();
	KUNIT_EXPECT_EQ(test, left(), 0);
	KUNIT_EXPECT_EQ(test, ring.progress, 0);
}

static void entries_are_work_until_their_number_is_written(struct kunit *test)
{
	u32 n;

	fresh();
	for (n = 1; n <= 7; n++)
		write_entry(n, 0);
	KUNIT_EXPECT_EQ(test, left(), 7);
	words[0] = 5;
	KUNIT_EXPECT_EQ(test, left(), 2);
	words[0] = 7;
	KUNIT_EXPECT_EQ(test, left(), 0);
}

static void the_ring_goes_round(struct kunit *test)
{
	u32 n;

	fresh();
	for (n = 1; n <= 5 * ENTRIES; n++) {
		write_entry(n, 0);
		if (n % 3 == 0)
			KUNIT_EXPECT_EQ(test, left(), n - words[0]);
		if (n % 6 == 0)
			words[0] = n - 1;
	}
}

static void what_was_missed_is_made_up(struct kunit *test)
{
	u32 n;

	fresh();
	write_entry(1, 0);
	KUNIT_EXPECT_EQ(test, left(), 1);
	for (n = 2; n <= ENTRIES + 1; n++)
		write_entry(n, 0);
	words[0] = 3;
	KUNIT_EXPECT_EQ(test, left(), ENTRIES + 1 - 3);
}

static void laps_that_were_missed_are_made_up(struct kunit *test)
{
	u32 n;

	fresh();
	write_entry(1, 0);
	KUNIT_EXPECT_EQ(test, left(), 1);
	for (n = 2; n <= 5 * ENTRIES + 3; n++)
		write_entry(n, 0);
	words[0] = 5 * ENTRIES;
	KUNIT_EXPECT_EQ(test, left(), 3);
	words[0] = 5 * ENTRIES + 3;
	KUNIT_EXPECT_EQ(test, left(), 0);
}

static void who_waits_for_others_does_not_compute(struct kunit *test)
{
	fresh();
	write_entry(1, 0);
	write_entry(2, 9);
	words[0] = 1;
	KUNIT_EXPECT_EQ(test, left(), 1);
	KUNIT_EXPECT_TRUE(test, cgpu_ring_is_blocked(&ring, &memory));
	words[4] = 9;
	KUNIT_EXPECT_FALSE(test, cgpu_ring_is_blocked(&ring, &memory));
}

static void a_ring_of_another_kind_has_no_work(struct kunit *test)
{
	fresh();
	pushes[0][0] = header(4, 1, 4, 0x300);
	slots[0] = PUSH | 1ULL << 42;
	KUNIT_EXPECT_EQ(test, left(), 0);
	slots[0] = 0x300000000ULL | 1ULL << 42;
	KUNIT_EXPECT_EQ(test, left(), 0);
}

static void a_copy_in_a_compute_channel_has_a_number_too(struct kunit *test)
{
	const u32 push[] = {
		header(1, 3, 4, 0x240), PROGRESS >> 32, (u32)PROGRESS, 2,
		header(1, 1, 4, 0x300), 0x14,
	};

	fresh();
	write_entry(1, 0);
	memcpy(pushes[1], push, sizeof(push));
	slots[1] = (PUSH + sizeof(pushes[0])) | (u64)ARRAY_SIZE(push) << 42;
	write_entry(3, 0);
	KUNIT_EXPECT_EQ(test, left(), 3);
	words[0] = 2;
	KUNIT_EXPECT_EQ(test, left(), 1);
}

static void numbers_without_sense_are_no_work(struct kunit *test)
{
	fresh();
	write_entry(1, 0);
	words[0] = 0x80000000;
	KUNIT_EXPECT_EQ(test, left(), 0);
	words[0] = 77;
	KUNIT_EXPECT_EQ(test, left(), 0);
}

static void legacy_semaphores_are_waits_too(struct kunit *test)
{
	const u32 push[] = {
		header(1, 4, 0, 0x10), 2, 0x4000, 7, 4,
		header(1, 4, 0, 0x10), 2, 0x4000, 7, 2,
	};
	struct cgpu_push p = { 0 };

	cgpu_push_words(&p, push, ARRAY_SIZE(push));
	KUNIT_EXPECT_EQ(test, p.waits, 1);
	KUNIT_EXPECT_EQ(test, p.wait[0].va, 0x200004000ULL);
	KUNIT_EXPECT_EQ(test, p.wait[0].payload, 7);
}

static struct kunit_case ring_cases[] = {
	KUNIT_CASE(an_empty_ring_has_no_work),
	KUNIT_CASE(entries_are_work_until_their_number_is_written),
	KUNIT_CASE(the_ring_goes_round),
	KUNIT_CASE(what_was_missed_is_made_up),
	KUNIT_CASE(laps_that_were_missed_are_made_up),
	KUNIT_CASE(who_waits_for_others_does_not_compute),
	KUNIT_CASE(a_ring_of_another_kind_has_no_work),
	KUNIT_CASE(a_copy_in_a_compute_channel_has_a_number_too),
	KUNIT_CASE(numbers_without_sense_are_no_work),
	KUNIT_CASE(legacy_semaphores_are_waits_too),
	{}
};

static struct kunit_suite ring_suite = {
	.name = "cgpu-ring", .test_cases = ring_cases,
};

kunit_test_suite(ring_suite);
