// SPDX-License-Identifier: Apache-2.0
/*
 * unmap SECONDS: takes away, from a second thread, the page in which the module
 * keeps the arguments of the calls that the first thread makes.
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
	unsigned long at = 0, end = 0;

	while (!at)
		at = find_page(&end);
	for (;;)
		munmap((void *)at, end - at);
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

		if (!rm_memory(&rm, &handle, MIB))
			rm_free(&rm, handle);
	}
	return 0;
}
