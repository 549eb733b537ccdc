// SPDX-License-Identifier: Apache-2.0
/*
 * unmap SECONDS: takes away, from a second thread, the page in which the module
 * keeps the arguments of the calls that the first thread makes. Whoever takes it
 * away all the time keeps it from being mapped, so that no call ever begins;
 * hence it is looked for anew, and left alone for a while of varying length.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include "rm.h"

static unsigned long find_page(unsigned long *end)
{
	unsigned long at = 0;
	char line[256];
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "[cgpu"))
			sscanf(line, "%lx-%lx", &at, end);
	if (maps)
		fclose(maps);
	return at;
}

static void *take_away(void *unused)
{
	unsigned long at, end = 0;
	unsigned int turn;

	for (turn = 0;; turn++) {
		at = find_page(&end);
		for (volatile unsigned int wait = turn % 64 * 256; wait; wait--)
			;
		if (at)
			munmap((void *)at, end - at);
	}
	return unused;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
	pthread_t thread;
	struct rm rm;

	rm_open(&rm, "/dev");
	pthread_create(&thread, NULL, take_away, NULL);
	while (time(NULL) < end) {
		uint32_t handle = 0xbad00000;

		/* Freed in any case: the free of the turn before may have failed. */
		rm_memory(&rm, &handle, MIB);
		rm_free(&rm, handle);
	}
	return 0;
}
