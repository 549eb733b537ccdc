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
#include "../../kmod/abi/nvidia_rm.h"

#define MOST		4096
#define WAITED_NS	2000000
#define DEVICE		0x80
#define SUBDEVICE	0x2080
#define USERMODE	0x461
#define TURING_USERMODE	0xc461

/* Stretches in which one process could store: from, and its last store. */
struct notes {
	volatile uint64_t from[MOST], last[MOST];
	volatile uint32_t n;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int open_node(const char *folder, const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die(path);
	return fd;
}

static __u32 rm_alloc(int ctl, __u32 client, __u32 parent, __u32 handle,
		      __u32 class, void *params)
{
	struct nvos21_parameters_535 a = {
		.h_root = client, .h_object_parent = parent,
		.h_object_new = handle, .h_class = class,
		.p_alloc_parms = (uintptr_t)params,
	};

	if (ioctl(ctl, NV_IOCTL(NV_ESC_RM_ALLOC, sizeof(a)), &a) || a.status)
		die("RM_ALLOC");
	return a.h_object_new;
}

static volatile __u32 *map_doorbell(const char *folder)
{
	struct nv_ioctl_nvos33_parameters_with_fd a = {
		.params.h_device = SUBDEVICE, .params.h_memory = USERMODE,
		.params.length = 0x10000, .fd = open_node(folder, "nvidia0"),
	};
	struct nv0080_alloc_parameters device = { 0 };
	int ctl = open_node(folder, "nvidiactl");
	__u32 subdevice = 0, client;
	char *at;

	client = rm_alloc(ctl, 0, 0, 0, NV01_ROOT_CLIENT, NULL);
	a.params.h_client = client;
	rm_alloc(ctl, client, client, DEVICE, NV01_DEVICE_0, &device);
	rm_alloc(ctl, client, DEVICE, SUBDEVICE, NV20_SUBDEVICE_0, &subdevice);
	rm_alloc(ctl, client, SUBDEVICE, USERMODE, TURING_USERMODE, NULL);
	if (ioctl(ctl, NV_IOCTL(NV_ESC_RM_MAP_MEMORY, sizeof(a)), &a) || a.params.status)
		die("MAP_MEMORY");
	at = mmap(NULL, a.params.length, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd, 0);
	if (at == MAP_FAILED)
		die("mmap of the doorbell");
	return (volatile __u32 *)(at + 0x80);
}

static void ring(const char *folder, struct notes *notes)
{
	volatile __u32 *bell = map_doorbell(folder);
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
