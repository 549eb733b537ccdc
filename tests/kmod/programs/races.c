// SPDX-License-Identifier: Apache-2.0
/*
 * races NAME SECONDS LIMIT_MIB [DIR [OTHER_DIR]]: changes the arguments of a
 * call while it runs, from a second thread, so that what was checked is not
 * what is done. Ends early when the limit is broken. Prints how often it tried,
 * how many writes into the module's own page went through, and the most MiB
 * that the driver ever gave.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>
#include "rm.h"

static struct rm rm;
static uint64_t limit, most;
static volatile int over;
static unsigned long tries, landed;
static const char *other_dir;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* What the driver's own ledger says of card 0. */
static uint64_t ledger_mib(void)
{
	char text[512], *at;
	int fd = open("/proc/nvsim", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	if (n <= 0)
		die("/proc/nvsim");
	text[n] = 0;
	at = strstr(text, "\ngpu 0 ");
	at = at ? strstr(at, " used ") : NULL;
	return at ? strtoull(at + 6, NULL, 10) / MIB : 0;
}

static void judge(void)
{
	uint64_t used = ledger_mib();

	tries++;
	if (used > most)
		most = used;
}

/* ---- a word of our own memory, changed all the time ---- */

static volatile uint64_t *word;
static uint64_t harmless, harmful;
static int wide;

static void *flip(void *unused)
{
	while (!over) {
		if (wide)
			*word = harmful;
		else
			*(volatile uint32_t *)word = harmful;
		for (volatile int i = 0; i < 60; i++)
			;
		if (wide)
			*word = harmless;
		else
			*(volatile uint32_t *)word = harmless;
		for (volatile int i = 0; i < 60; i++)
			;
	}
	return NULL;
}

static void flip_word(void *at, int bytes, uint64_t good, uint64_t bad)
{
	word = at;
	wide = bytes == 8;
	harmless = good;
	harmful = bad;
}

static uint8_t heap[HEAP_MOST];
static struct rm_size small, large;
static struct rm_alloc alloc;

static void heap_call(uint32_t handle)
{
	uint32_t head[] = { rm.client, DEVICE_HANDLE, 2 };
	uint32_t flags = 0x4000;

	memcpy(heap, head, sizeof(head));
	memcpy(heap + HEAP_HANDLE, &handle, 4);
	memcpy(heap + HEAP_FLAGS, &flags, 4);
	ioctl(rm.ctl, ESC(ESC_HEAP, rm.branch < 460 ? 192 : 184), heap);
}

static void alloc_call(uint32_t handle)
{
	alloc.client = rm.client;
	alloc.parent = DEVICE_HANDLE;
	alloc.handle = handle;
	ioctl(rm.ctl, ESC(ESC_ALLOC, sizeof(alloc)), &alloc);
}

static void (*call)(uint32_t handle);

static void prepare_heap(void)
{
	flip_word(heap + (rm.branch < 460 ? 0x60 : 0x58), 8, MIB, large.size);
	call = heap_call;
}

static void prepare_alloc(void)
{
	alloc.class = CLASS_MEMORY;
	alloc.params = (uintptr_t)&small;
	call = alloc_call;
}

static void prepare_class(void)
{
	prepare_alloc();
	alloc.params = (uintptr_t)&large;
	flip_word(&alloc.class, 4, CLASS_HOST_MEMORY, CLASS_MEMORY);
}

static void prepare_size(void)
{
	prepare_alloc();
	flip_word(&small.size, 8, MIB, large.size);
}

static void prepare_pointer(void)
{
	prepare_alloc();
	flip_word(&alloc.params, 8, (uintptr_t)&small, (uintptr_t)&large);
}

static void own_memory_round(uint32_t n)
{
	uint32_t handle = 0xbad00000 + n;

	/* the driver writes back what it gave: the parameters start anew */
	large.size = (limit + 1000) * MIB;
	small.size = MIB;
	call(handle);
	judge();
	rm_free(&rm, handle);
}

/* ---- the module's pages in our address space ---- */

#define PAGES	16

static int poison_fd = -1;
static unsigned long page_at;
static unsigned int inject_at, inject_bytes;

static unsigned long find_page(void)
{
	unsigned long at = 0;
	char line[256];
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "[cgpu"))
			at = strtoul(line, NULL, 16);
	if (maps)
		fclose(maps);
	return at;
}

static void *inject(void *unused)
{
	unsigned int page;

	while (!over && !page_at)
		page_at = find_page();
	for (page = 0; !over; page = (page + 1) % PAGES)
		if (pread(poison_fd, (void *)(page_at + page * 4096 + inject_at), inject_bytes, 0) > 0)
			landed++;
	return NULL;
}

static void inject_word(unsigned int at, uint64_t value, unsigned int bytes)
{
	poison_fd = memfd_create("poison", 0);
	if (write(poison_fd, &value, sizeof(value)) < 0)
		die("memfd");
	inject_at = at;
	inject_bytes = bytes;
}

static void prepare_injected_size(void)
{
	inject_word(1024 + 0x40, large.size, 8);
	prepare_alloc();
}

/* A second handle that the module believes to be refused keeps its memory. */
static void prepare_injected_status(void)
{
	inject_word(offsetof(struct rm_dup, status), 0x51, 4);
}

static void dup_round(uint32_t n)
{
	uint32_t handle = 0xbad00000 + 2 * n;
	struct rm_dup d = {
		.client = rm.client, .parent = DEVICE_HANDLE, .handle = handle + 1,
		.from_client = rm.client, .from_handle = handle,
	};

	if (rm_memory(&rm, &handle, limit / 4 * MIB)) {
		judge();
		return;
	}
	ioctl(rm.ctl, ESC(ESC_DUP, sizeof(d)), &d);
	rm_free(&rm, handle);
	judge();
	if (!d.status)
		rm_free(&rm, d.handle);
}

/* A free that the driver refuses, since the client is another file's. */
static struct rm second;

static void prepare_injected_success(void)
{
	inject_word(offsetof(struct rm_free, status), OK, 4);
	second = rm;
	second.ctl = rm_node(other_dir, "nvidiactl");
}

static void free_round(uint32_t n)
{
	uint32_t handle = 0xbad00000 + n;

	if (!rm_memory(&rm, &handle, limit / 4 * MIB) && rm_free(&second, handle))
		rm_free(&rm, handle);
	judge();
}

/* ---- a number that names one file and then another ---- */

static int swapped, ours, theirs;

static void *swap(void *unused)
{
	while (!over) {
		dup2(theirs, swapped);
		dup2(ours, swapped);
	}
	return NULL;
}

static void prepare_export(void)
{
	theirs = rm_node(other_dir, "nvidiactl");
	swapped = dup(rm.ctl);
}

static void export_round(uint32_t n)
{
	uint32_t handle = 0xbad00000 + n;
	struct rm_export e = { .type = 1, .device = DEVICE_HANDLE,
			       .parent = DEVICE_HANDLE, .object = handle };

	ours = rm_node("/dev", "nvidiactl");
	e.fd = swapped;
	if (!rm_memory(&rm, &handle, limit / 4 * MIB)) {
		rm_control(&rm, rm.client, EXPORT_TO_FD, &e, sizeof(e));
		rm_free(&rm, handle);
	}
	close(dup2(rm.ctl, ours) >= 0 ? ours : -1);
	judge();
}

static const struct race {
	const char *name;
	void (*prepare)(void);
	void *(*meanwhile)(void *);
	void (*round)(uint32_t n);
} races[] = {
	{ "heap-size", prepare_heap, flip, own_memory_round },
	{ "class", prepare_class, flip, own_memory_round },
	{ "size", prepare_size, flip, own_memory_round },
	{ "pointer", prepare_pointer, flip, own_memory_round },
	{ "injected-size", prepare_injected_size, inject, own_memory_round },
	{ "injected-status", prepare_injected_status, inject, dup_round },
	{ "injected-success", prepare_injected_success, inject, free_round },
	{ "export-file", prepare_export, swap, export_round },
	{ }
};

int main(int argc, char **argv)
{
	const struct race *race = races;
	pthread_t thread;
	uint32_t n = 0;
	double end;

	while (race->name && strcmp(race->name, argc > 3 ? argv[1] : ""))
		race++;
	if (!race->name)
		return 2;
	limit = strtoull(argv[3], NULL, 10);
	large.size = (limit + 1000) * MIB;
	other_dir = argc > 5 ? argv[5] : "/dev";
	rm_open(&rm, argc > 4 ? argv[4] : "/dev");
	race->prepare();
	end = now() + atof(argv[2]);
	pthread_create(&thread, NULL, race->meanwhile, NULL);
	while (now() < end && most <= limit)
		race->round(n++);
	over = 1;
	pthread_join(thread, NULL);
	printf("%s tries=%lu landed=%lu most=%llu\n", race->name, tries, landed,
	       (unsigned long long)most);
	return 0;
}
