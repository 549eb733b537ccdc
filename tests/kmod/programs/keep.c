// SPDX-License-Identifier: Apache-2.0
/*
 * keep DIR [INSTANCE]: ways to keep memory that is not charged, by requests that register memory
 * or release it: said of what the driver refuses, of another length, twice, too early, of a part.
 * Each is tried by a child on the nodes of a folder. Prints for each by how many MiB the child at
 * most had more than the instance was charged, and what was charged when the child was gone.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "rm.h"

#define PART		(8 * MIB)
#define MUCH		(100 * MIB)
#define PLACE		0x200000000000ull
#define ROUNDS		13
#define MAP_SIZE	1200	/* of 535, as the next */
#define MAP_COUNT	0x498
#define MAP_CLIENT	0x4a4

enum {
	UVM_INITIALIZE = 0x30000001,
	UVM_MAP_EXTERNAL = 33,
	UVM_FREE = 34,
	UVM_UNMAP_EXTERNAL = 66,
	UVM_SEMAPHORES = 68,
	UVM_EXTERNAL_RANGE = 73,
};

static const char *folder, *instance;
static struct rm rm;
static int uvm;
static sigjmp_buf nothing_there;

/* ---- what is charged, and what there is ---- */

static uint64_t number_in(const char *file, const char *line, const char *before)
{
	char text[4096] = "", *at;
	int fd = open(file, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, line);
	at = at ? strstr(at, before) : NULL;
	return at ? strtoull(at + strlen(before), NULL, 10) : 0;
}

static int64_t charged(void)
{
	return instance ? number_in("/proc/cgpu_km/inst_ctl", instance, " used=") : 0;
}

static int64_t given(void)
{
	return number_in("/proc/nvsim", "\ngpu 0 ", " used ");
}

static void jump(int signal)
{
	siglongjmp(nothing_there, signal);
}

static int works(uint8_t *at)
{
	if (sigsetjmp(nothing_there, 1))
		return 0;
	*(volatile uint8_t *)at = 1;
	return 1;
}

/* Of what was mapped, the pages at both ends of each part tell whether it is there. */
static int64_t working(uint8_t *from, uint64_t bytes)
{
	int64_t sum = 0;
	uint64_t i;

	for (i = 0; i < bytes; i += MIB)
		sum += works(from + i) * MIB;
	return sum;
}

static int64_t most;

static void judge(int64_t mapped)
{
	int64_t over = given() + mapped - charged();

	if (over > most)
		most = over;
}

/* ---- requests ---- */

static uint8_t *place(int n)
{
	return (uint8_t *)(PLACE + n * 1024 * MIB);
}

static uint8_t *map(uint8_t *at, uint64_t bytes)
{
	return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, uvm, (uintptr_t)at);
}

static long say(uint32_t request, uint8_t *base, uint64_t length)
{
	static uint64_t args[2048];

	args[0] = (uintptr_t)base;
	args[1] = length;
	memset(args + 2, 0, sizeof(args) - 16);
	return ioctl(uvm, request, args);
}

static uint64_t gpus = 1;

static uint32_t map_external(uint32_t handle, uint8_t *base, uint64_t length)
{
	uint64_t args[MAP_SIZE / 8] = { (uintptr_t)base, length };
	uint32_t owner[] = { rm.client, handle };

	args[MAP_COUNT / 8] = gpus;
	memcpy((uint8_t *)args + MAP_CLIENT, owner, sizeof(owner));
	if (ioctl(uvm, UVM_MAP_EXTERNAL, args))
		return errno << 16;
	return ((uint32_t *)args)[MAP_CLIENT / 4 + 2];
}

/* ---- ways ---- */

/* The driver cannot read all of it. */
static void announce_in_vain(void)
{
	uint8_t *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t head[] = { (uintptr_t)place(0), MUCH };

	munmap(two + 4096, 4096);
	memcpy(two + 4096 - sizeof(head), head, sizeof(head));
	ioctl(uvm, UVM_SEMAPHORES, two + 4096 - sizeof(head));
	map(place(0), MUCH);
	judge(working(place(0), MUCH));
}

static void announce_less(void)
{
	say(UVM_SEMAPHORES, place(0), 4096);
	map(place(0), MUCH);
	judge(working(place(0), MUCH));
}

static void announce(void)
{
	say(UVM_SEMAPHORES, place(0), MUCH);
	map(place(0), MUCH);
	judge(working(place(0), MUCH));
}

static void map_again(void)
{
	map(place(0), 4096);
	munmap(place(0), 4096);
	map(place(0), MUCH);
	judge(working(place(0), MUCH));
}

static void map_over(void)
{
	map(place(0), 4096);
	map(place(0), MUCH);
	judge(working(place(0), MUCH));
}

/* The end of it is said, but it stays mapped. */
static void say_the_end(uint64_t inside, uint64_t length)
{
	int64_t sum = 0;
	int n;

	for (n = 0; n < ROUNDS; n++) {
		map(place(n), PART);
		say(UVM_FREE, place(n) + inside, length);
		sum += working(place(n), PART);
		judge(sum);
	}
}

static void free_mapped(void)
{
	say_the_end(0, PART);
}

static void free_inside(void)
{
	say_the_end(4096, 4096);
}

static void move(void)
{
	int64_t sum = 0;
	int n;

	for (n = 0; n < ROUNDS; n++) {
		map(place(n), PART);
		mremap(place(n), PART, PART, MREMAP_MAYMOVE | MREMAP_FIXED, place(n + 100));
		sum += working(place(n + 100), PART) + working(place(n), PART);
		judge(sum);
	}
}

/* A hole, filled again and made again: each byte counts once. */
static void tear(void)
{
	int n;

	map(place(0), PART);
	for (n = 0; n < ROUNDS; n++) {
		munmap(place(0) + MIB, 4 * MIB);
		map(place(0) + MIB, 4 * MIB);
		mremap(place(0) + 6 * MIB, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED,
		       place(0) + 2 * MIB);
		judge(working(place(0), PART));
	}
}

/* A child has the mapping, too, and ends it. */
static void inherit(void)
{
	int n, status;

	for (n = 0; n < 3; n++) {
		map(place(n), 4 * MIB);
		if (!fork()) {
			munmap(place(n), 4 * MIB);
			_exit(0);
		}
		wait(&status);
		judge(working(place(0), (n + 1) * 4 * MIB));
	}
}

/* Memory whose handle is gone, but which is mapped. */
static void map_and_free(void)
{
	uint32_t n, handle;

	for (n = 0; n < 5; n++) {
		handle = 0xf0020000 + n;
		if (rm_memory(&rm, &handle, MUCH))
			break;
		say(UVM_EXTERNAL_RANGE, place(n), MUCH);
		if (map_external(handle, place(n), MUCH))
			break;
		rm_free(&rm, handle);
		judge(0);
	}
}

/* The same; then something is freed that is wider, which the driver does not find. */
static void free_around(void)
{
	uint32_t n, handle;

	for (n = 0; n < 5; n++) {
		handle = 0xf0020000 + n;
		if (rm_memory(&rm, &handle, MUCH))
			break;
		map_external(handle, place(n) + MUCH, MUCH);
		rm_free(&rm, handle);
		say(UVM_FREE, place(n), 3 * MUCH);
		judge(0);
	}
}

static void map_on_no_gpu(void)
{
	gpus = 0;
	free_around();
}

/* The same, said to be gone by a request for a part, or for something else. */
static void end_elsewhere(void)
{
	uint32_t handle = 0xf0020000;
	uint64_t args[5] = { PLACE + 4096, 4096 };

	rm_memory(&rm, &handle, MUCH);
	say(UVM_EXTERNAL_RANGE, place(0), MUCH);
	map_external(handle, place(0), MUCH);
	rm_free(&rm, handle);
	say(UVM_FREE, place(1), MUCH);
	ioctl(uvm, UVM_UNMAP_EXTERNAL, args + 0);
	judge(0);
}

static const struct way {
	const char *name;
	void (*go)(void);
} ways[] = {
	{ "announce", announce },
	{ "announce-in-vain", announce_in_vain },
	{ "announce-less", announce_less },
	{ "map-again", map_again },
	{ "map-over", map_over },
	{ "free-mapped", free_mapped },
	{ "free-inside", free_inside },
	{ "move", move },
	{ "tear", tear },
	{ "inherit", inherit },
	{ "map-and-free", map_and_free },
	{ "free-around", free_around },
	{ "map-on-no-gpu", map_on_no_gpu },
	{ "end-elsewhere", end_elsewhere },
	{ }
};

static void try(const struct way *way)
{
	uint64_t flags[2] = { 0 };

	rm_open(&rm, folder);
	uvm = rm_node(folder, "nvidia-uvm");
	ioctl(uvm, UVM_INITIALIZE, flags);
	signal(SIGBUS, jump);
	signal(SIGSEGV, jump);
	way->go();
	printf("%s %lld ", way->name, (long long)(most / (int64_t)MIB));
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	const struct way *way;
	int status;

	folder = argc > 1 ? argv[1] : "/dev";
	instance = argc > 2 ? argv[2] : NULL;
	for (way = ways; way->name; way++) {
		if (!fork())
			try(way);
		wait(&status);
		printf("%lld\n", (long long)charged());
		fflush(stdout);
	}
	return 0;
}
