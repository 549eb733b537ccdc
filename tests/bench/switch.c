// SPDX-License-Identifier: Apache-2.0
/*
 * How long a GPU's doorbells are closed to everybody when the turn changes.
 *
 *   switch SECONDS FOLDER FOLDER        two instances' folders
 *
 * A process of each instance stores to its doorbell all the time and notes when it could go on after
 * a wait. From the last store of one to the first of the other is a switch. Prints the number of
 * switches, their median, their tenth from the longest and their longest in nanoseconds, and the
 * processor time of the scheduler's thread a switch.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "client.h"

#define MOST		4096
#define WAITED_NS	2000000

/* Stretches in which one process could store: from, and its last store. */
struct notes {
	volatile uint64_t from[MOST], last[MOST];
	volatile uint32_t n;
};

static void ring(const char *folder, struct notes *notes)
{
	int ctl = open_node(folder, "nvidiactl");
	volatile __u32 *bell = map_doorbell(ctl, new_client(ctl), open_node(folder, "nvidia0"));
	uint64_t last = 0, at;

	for (;;) {
		*bell = 0;
		at = now();
		if (at - last > WAITED_NS && notes->n < MOST)
			notes->from[notes->n++] = at;
		notes->last[notes->n - 1] = at;
		last = at;
	}
}

/* Nanoseconds that the thread of GPU 0 has run. */
static uint64_t thread_ns(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	uint64_t ns = 0;

	while (dir && (entry = readdir(dir))) {
		char path[300], text[64] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		(void)!fgets(text, sizeof(text), file);
		fclose(file);
		if (strcmp(text, "cgpu/0\n"))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/schedstat", entry->d_name);
		file = fopen(path, "r");
		if (file && fgets(text, sizeof(text), file))
			ns = strtoull(text, NULL, 10);
		if (file)
			fclose(file);
	}
	closedir(dir);
	return ns;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The other's last store before @at; 0 = none. */
static uint64_t before(const struct notes *other, uint64_t at)
{
	uint64_t found = 0;
	uint32_t i;

	for (i = 0; i < other->n; i++)
		if (other->last[i] < at && other->last[i] > found)
			found = other->last[i];
	return found;
}

int main(int argc, char **argv)
{
	static uint64_t gaps[2 * MOST];
	struct notes *notes = mmap(NULL, 2 * sizeof(*notes), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t began, ran;
	pid_t child[2];
	size_t n = 0;
	uint32_t k;
	int i;

	if (argc != 4 || notes == MAP_FAILED)
		return 2;
	for (i = 0; i < 2; i++) {
		child[i] = fork();
		if (!child[i])
			ring(argv[2 + i], &notes[i]);
	}
	while (!notes[0].n || !notes[1].n)
		usleep(10000);
	began = thread_ns();
	sleep(atoi(argv[1]));
	ran = thread_ns() - began;
	for (i = 0; i < 2; i++) {
		kill(child[i], SIGKILL);
		waitpid(child[i], NULL, 0);
	}
	for (i = 0; i < 2; i++)
		for (k = 1; k < notes[i].n; k++) {
			uint64_t last = before(&notes[!i], notes[i].from[k]);

			if (last && last > notes[i].last[k - 1])
				gaps[n++] = notes[i].from[k] - last;
		}
	if (!n)
		die("no switch was seen");
	qsort(gaps, n, sizeof(*gaps), compare);
	printf("%zu %llu %llu %llu %llu\n", n, (unsigned long long)gaps[n / 2],
	       (unsigned long long)gaps[n - 1 - n / 10], (unsigned long long)gaps[n - 1],
	       (unsigned long long)(ran / n));
	return 0;
}
