// SPDX-License-Identifier: GPL-2.0-only
/*
 * Malformed calls against the portable core, under sanitizers: every ioctl number with every size, then random
 * programs of calls with channels that run random pushbuffers. Pages are blocks of their own, so a word written
 * across the end of a page is a report, as is what is left when the files are closed.
 *
 *     sweep BRANCH SEED PROGRAMS
 */
#include "sweep.h"

#include <stdio.h>

#define MAPPED		0x100000ull
#define MOST_BYTES	700u
#define CALLS		50	/* random ones a program */
#define SCRIBBLED	16384u

struct handles {
	u32 client, device, usermode, memory, tsg, channel;
	u64 mapped, fifo;	/* address of the mapping; where in the memory the entries are */
};

static u64 state;

static u32 number(u32 below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(state >> 33) % below;
}

static void open_all(void)
{
	u32 i;

	memset(files, 0, sizeof(files));
	memset(uvms, 0, sizeof(uvms));
	for (i = 0; i < FILES; i++)
		if (nvsim_file_open(&files[i], i < CONTROLS ? NVSIM_CONTROL_MINOR : 0))
			abort();
	for (i = 0; i < ARRAY_SIZE(uvms); i++)
		nvsim_uvm_open(&uvms[i]);
}

/* Closes everything; what is still there then was lost. */
static void close_all(void)
{
	u32 i;

	nvsim_engine_run();
	for (i = 0; i < ARRAY_SIZE(uvms); i++)
		nvsim_uvm_close(&uvms[i]);
	for (i = FILES; i--;)
		nvsim_file_close(&files[i]);
	if (backings || tasks || file_refs || nvsim.gpus[0].used ||
	    !list_empty(&nvsim.clients) || !list_empty(&nvsim.events) ||
	    !list_empty(&nvsim.gpus[0].channels) || !list_empty(&nvsim.gpus[0].gr.tsgs)) {
		printf("left: %d backings, %d tasks, %d files, %llu bytes\n", backings, tasks,
		       file_refs, (unsigned long long)nvsim.gpus[0].used);
		exit(1);
	}
}

static long call(u32 file, u32 escape, u32 size, const void *arg)
{
	memmove(arena, arg, size);
	return nvsim_ioctl(&files[file], 3u << 30 | size << 16 | 'F' << 8 | escape, (u64)arena);
}

/* An offset that is aligned to words, now and then not. */
static u32 odd(u32 below)
{
	return number(6) ? number(below) & ~15u : number(below);
}

static u32 edge(const struct handles *have)
{
	const u32 edges[] = {
		0, 1, 2, 3, 8, 16, 4095, 4096, 4097, 0x10000, 0x200000, ~0u, ~0u - 1, 1u << 31,
		have->client, have->device, have->usermode, have->memory, have->tsg, have->channel,
	};

	return number(8) ? edges[number(ARRAY_SIZE(edges))] : (u32)(state >> 32);
}

static void scribble(u8 *at, u32 bytes, const struct handles *have)
{
	u32 i;

	for (i = 0; i + 4 <= bytes; i += 4)
		put32(at, i, number(2) ? edge(have) : 0);
	if (bytes >= 24 && number(2))	/* a pointer where most calls have theirs */
		put64(at, 16, (u64)arena + 8192 + number(5000));
}

/* Every number in every size, on a control file, a card and the UVM file, with and without a client. */
static void every_size(const struct handles *have)
{
	u8 arg[MOST_BYTES];
	u32 file, escape, size;

	for (file = 0; file < FILES; file += CONTROLS)
		for (escape = 0; escape < 256; escape++)
			for (size = 0; size < MOST_BYTES; size++) {
				scribble(arg, size, have);
				if (size >= 4)
					put32(arg, 0, number(2) ? have->client : edge(have));
				call(file, escape, size, arg);
			}
	for (escape = 0; escape < 2100; escape++) {
		scribble(arena, 1024, have);
		nvsim_uvm_ioctl(&uvms[0], escape, (u64)arena);
		nvsim_uvm_ioctl(&uvms[0], escape, (u64)arena + ARENA - number(64));
	}
}

static const struct nvsim_control_row *const controls[] = {
	nvsim_controls_system, nvsim_controls_device, nvsim_controls_engine,
};

/* Every control that has an answer, in sizes around the least it asks for. */
static void every_control(const struct handles *have)
{
	const u32 objects[] = { have->client, have->device, have->tsg, have->channel };
	const struct nvsim_control_row *row;
	u8 arg[32];
	u32 table, size, i;

	for (table = 0; table < ARRAY_SIZE(controls); table++)
		for (row = controls[table]; row->command; row++)
			for (size = row->least > 8 ? row->least - 8 : 0; size < row->least + 64; size++)
				for (i = 0; i < ARRAY_SIZE(objects); i++) {
					memset(arg, 0, sizeof(arg));
					scribble(arena + 8192, size, have);
					put32(arg, RM_CLIENT, have->client);
					put32(arg, RM_OBJECT, objects[i]);
					put32(arg, NVOS54_COMMAND, row->command);
					put64(arg, NVOS54_PARAMS, (u64)arena + 8192);
					put32(arg, NVOS54_PARAMS_SIZE, number(8) ? size : number(16384));
					call(0, 0x2a, 32, arg);
				}
}

static u32 make(struct handles *have, u32 parent, u32 class, const void *params, u32 bytes)
{
	u8 arg[NVOS21_SIZE] = { 0 };

	memset(arena + 4096, 0, 1024);
	if (bytes)
		memcpy(arena + 4096, params, bytes);
	put32(arg, RM_CLIENT, have->client);
	put32(arg, RM_OBJECT, parent);
	put32(arg, NVOS21_CLASS, class);
	put64(arg, NVOS21_PARAMS, bytes ? (u64)arena + 4096 : 0);
	call(0, 0x2b, sizeof(arg), arg);
	if (get32(arena, nvsim.branch->alloc32_status))
		return 0;
	return get32(arena, NVOS21_NEW);
}

/* Pinned pages that begin anywhere, so that words of theirs lie across pages. */
static u32 make_pinned(const struct handles *have)
{
	u8 arg[56] = { 0 };

	put32(arg, RM_CLIENT, have->client);
	put32(arg, RM_OBJECT, have->device);
	put32(arg, NVOS02_CLASS, NV01_MEMORY_SYSTEM_OS_DESC);
	put64(arg, NVOS02_MEMORY, (u64)arena + 64 * 1024 + odd(2 * PAGE));
	put64(arg, NVOS02_LIMIT, 16 * PAGE - number(PAGE));
	call(CONTROLS, 0x27, sizeof(arg), arg);
	return get32(arena, NVOS02_STATUS) ? 0 : get32(arena, NVOS02_NEW);
}

static void map(const struct handles *have, u64 va, u64 offset)
{
	u8 arg[64] = { 0 };

	put32(arg, RM_CLIENT, have->client);
	put32(arg, NVOS46_MEMORY, have->memory);
	put64(arg, NVOS46_OFFSET, offset);
	put64(arg, NVOS46_LENGTH, 8 * PAGE);
	put64(arg, nvsim.branch->map_dma_size - 16, va);
	call(0, 0x57, nvsim.branch->map_dma_size, arg);
}

/* A client with all kinds of objects, at odd offsets. */
static struct handles build(void)
{
	struct handles have = { .mapped = MAPPED + odd(64) };
	u64 offset = odd(64), into = odd(64);
	u8 params[304] = { 0 };

	have.fifo = offset + into;
	have.client = make(&have, 0, NV01_ROOT_CLIENT, NULL, 0);
	have.device = make(&have, have.client, NV01_DEVICE_0, params, 56);
	have.usermode = make(&have, have.device, nvsim.gpus[0].card->usermode, NULL, 0);
	put64(params, NV_MEMORY_SIZE, 16 * PAGE);
	have.memory = number(2) ? make_pinned(&have) :
		      make(&have, have.device, NV01_MEMORY_SYSTEM, params, 120);
	have.tsg = make(&have, have.device, KEPLER_CHANNEL_GROUP_A, NULL, 0);
	memset(params, 0, sizeof(params));
	put32(params, NV_CHANNEL_ERROR, have.memory);
	put64(params, NV_CHANNEL_GPFIFO, have.mapped + into);
	put32(params, NV_CHANNEL_ENTRIES, 1 + number(64));
	put32(params, NV_CHANNEL_USERD, have.memory);
	put64(params, NV_CHANNEL_USERD_OFFSET, odd(3 * PAGE));
	have.channel = make(&have, have.tsg, nvsim.gpus[0].card->gpfifo, params, 304);
	map(&have, have.mapped, offset);
	map(&have, 0, 0);	/* where registers point that nothing set */
	return have;
}

/* Methods that act, and those that they read: what a value for each looks like. */
enum kind { ACT, HIGH, LOW, LOW_256, COUNT, CLASS };

static const struct { u16 method; u8 kind; } methods[] = {
	{ 0x00, CLASS }, { 0x10, HIGH }, { 0x14, LOW }, { 0x18, COUNT }, { 0x1c, ACT }, { 0x20, ACT }, { 0x5c, LOW },
	{ 0x60, HIGH }, { 0x64, COUNT }, { 0x6c, ACT }, { 0x78, ACT }, { 0x110, ACT }, { 0x180, COUNT },
	{ 0x184, COUNT }, { 0x188, HIGH }, { 0x18c, LOW }, { 0x190, COUNT }, { 0x1b0, ACT }, { 0x1b4, ACT },
	{ 0x1dc, HIGH }, { 0x1e0, LOW }, { 0x240, HIGH }, { 0x244, LOW }, { 0x248, COUNT }, { 0x2b4, LOW_256 },
	{ 0x2bc, ACT }, { 0x2c0, ACT }, { 0x300, ACT }, { 0x318, HIGH }, { 0x31c, LOW_256 }, { 0x400, HIGH },
	{ 0x404, LOW }, { 0x408, HIGH }, { 0x40c, LOW }, { 0x410, COUNT }, { 0x414, COUNT }, { 0x418, COUNT },
	{ 0x41c, COUNT }, { 0x700, ACT }, { 0x704, ACT }, { 0x708, ACT }, { 0x1608, HIGH }, { 0x160c, LOW },
	{ 0x1b00, HIGH }, { 0x1b04, LOW }, { 0x1b08, COUNT }, { 0x1b0c, ACT }, { 0x41c, ACT },
};

static u32 value(const struct handles *have, enum kind kind)
{
	const u32 classes[] = { nvsim.gpus[0].card->compute, nvsim.gpus[0].card->copy };

	if (!number(200))
		return edge(have);
	switch (kind) {
	case HIGH:
		return 0;
	case LOW:
		return have->mapped + odd(8 * PAGE);
	case LOW_256:
		return (have->mapped + number(7 * PAGE)) >> 8;
	case COUNT:
		return number(number(2) ? 64 : PAGE);
	case CLASS:
		return classes[number(2)];
	default:
		return number(2) ? number(32) : (u32)(state >> 32);
	}
}

static void write_memory(const struct handles *have, u64 offset, u32 value)
{
	struct nvsim_object *object;
	u64 left = 0;
	u8 *at;

	object = nvsim_object_find(nvsim_client_find(have->client), have->memory);
	at = object && object->mem ? nvsim_mem_at(object->mem, offset, &left) : NULL;
	if (at && left >= 4)
		put32(at, 0, value);
}

/* Random words where the channel's entries and buffers are, then the ring of its bell. */
static void submit(const struct handles *have)
{
	struct nvsim_client *client = nvsim_client_find(have->client);
	struct nvsim_object *object = client ? nvsim_object_find(client, have->channel) : NULL;
	u32 i;

	if (!object || !object->channel || !object->channel->userd)
		return;
	for (i = 0; i < 8 * PAGE; i += 8) {
		u32 at = number(ARRAY_SIZE(methods)), count = number(30) ? 1 : number(70);

		write_memory(have, i, 1u << 29 | count << 16 | number(3) << 13 | methods[at].method >> 2);
		write_memory(have, i + 4, value(have, methods[at].kind));
	}
	for (i = 0; i < 64; i++) {	/* short buffers within the mapping */
		write_memory(have, have->fifo + 8 * i, (have->mapped + number(7 * PAGE)) & ~7ull);
		write_memory(have, have->fifo + 8 * i + 4, number(300) << 10);
	}
	write_memory(have, object->channel->userd_offset + NV_USERD_GP_PUT, number(64));
	object = nvsim_object_find(client, have->usermode);
	if (object && object->mem) {
		u64 left;

		put32(nvsim_mem_at(object->mem, NV_USERMODE_DOORBELL, &left), 0, 1);
	}
	for (i = 0; i < 20; i++)
		nvsim_engine_run();
}

static const u16 sizes[] = { 12, 16, 20, 24, 28, 32, 40, 48, 56, 72, 184, 192 };
static const u8 escapes[] = { 0x27, 0x29, 0x2a, 0x2b, 0x34, 0x4a, 0x4e, 0x57, 0x58, 201, 206, 207, 211 };

/* A client runs buffers, then random calls of everybody meet it. */
static void program(void)
{
	struct handles have = build();
	u8 arg[MOST_BYTES];
	u32 i, size;

	for (i = 0; i < CALLS; i++) {
		if (i < 4 || !number(8))
			submit(&have);
		size = sizes[number(ARRAY_SIZE(sizes))];
		scribble(arena, SCRIBBLED, &have);
		scribble(arg, size, &have);
		call(number(FILES), escapes[number(ARRAY_SIZE(escapes))], size, arg);
		if (!number(40))
			nvsim_inject(0, 31, 0);
		if (!number(20) && nvsim_uvm_mmap(&uvms[0], 0x200000 + PAGE * number(64), PAGE * (1 + number(8)),
						  backing_of(8 * PAGE, 0)))
			return;
		if (!number(20))
			nvsim_uvm_munmap(&uvms[0], 0x200000 + PAGE * number(64), PAGE * (1 + number(8)));
	}
}

int main(int argc, char **argv)
{
	const char *const cards[] = { argc > 4 ? argv[4] : "T4" };
	struct handles have;
	u32 i;

	if (argc < 4 || nvsim_setup(strtoul(argv[1], NULL, 0), NULL, cards, 1, NULL, 0))
		return 2;
	state = strtoul(argv[2], NULL, 0);
	arena = aligned_alloc(PAGE, ARENA);
	memset(arena, 0, ARENA);
	open_all();
	have = build();
	if (!have.client || !have.device || !have.channel)
		return 3;
	every_size(&have);
	close_all();
	open_all();
	have = build();
	every_control(&have);
	close_all();
	for (i = strtoul(argv[3], NULL, 0); i; i--) {
		open_all();
		program();
		close_all();
	}
	nvsim_teardown();
	free(arena);
	printf("%llu calls, %llu faults, %llu steps of the engine\n", (unsigned long long)nvsim.ioctls,
	       (unsigned long long)nvsim.faults, (unsigned long long)nvsim.progress);
	return 0;
}
