// SPDX-License-Identifier: Apache-2.0
/*
 * What calls cost straight to the driver and through the module, in turns.
 *
 *   calls DIRECT THROUGH       two folders with nvidiactl and nvidia0
 *
 * Prints "name direct_ns through_ns", a line a figure: the best of the
 * rounds, since what disturbs the machine only adds.
 */
#include <fcntl.h>
#include <pthread.h>
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

#define ROUNDS			60
#define CALLS			100
#define STORES			200000
#define PROCESSES		300
#define MEMORY			0x40

struct side {
	const char *folder;
	int ctl;
	int dev;
	__u32 client;
	volatile __u32 *bell;
};

static void rm_free(int ctl, __u32 client, __u32 parent, __u32 handle)
{
	struct nvos00_parameters a = {
		.h_root = client, .h_object_parent = parent,
		.h_object_old = handle,
	};

	if (ioctl(ctl, NV_IOCTL(NV_ESC_RM_FREE, sizeof(a)), &a) || a.status)
		die("RM_FREE");
}

static void prepare(struct side *s)
{
	s->ctl = open_node(s->folder, "nvidiactl");
	s->dev = open_node(s->folder, "nvidia0");
	s->client = new_client(s->ctl);
	s->bell = map_doorbell(s->ctl, s->client, open_node(s->folder, "nvidia0"));
	*s->bell = 0;
}

static uint64_t pass_through(struct side *s)
{
	struct nv_ioctl_sys_params a = { 0 };
	uint64_t begin = now();
	int i;

	for (i = 0; i < CALLS; i++)
		ioctl(s->ctl, NV_IOCTL(NV_ESC_SYS_PARAMS, sizeof(a)), &a);
	return (now() - begin) / CALLS;
}

static uint64_t frozen(struct side *s)
{
	struct nv2080_ctrl_fb_info entry = { .index = 7 };
	struct nv2080_ctrl_fb_get_info_params p = {
		.fb_info_list_size = 1, .fb_info_list = (uintptr_t)&entry,
	};
	struct nvos54_parameters a = {
		.h_client = s->client, .h_object = SUBDEVICE,
		.cmd = NV2080_CTRL_FB_GET_INFO, .params = (uintptr_t)&p,
		.params_size = sizeof(p),
	};
	uint64_t begin = now();
	int i;

	for (i = 0; i < CALLS; i++)
		if (ioctl(s->ctl, NV_IOCTL(NV_ESC_RM_CONTROL, sizeof(a)), &a) ||
		    a.status)
			die("RM_CONTROL");
	return (now() - begin) / CALLS;
}

static uint64_t charged(struct side *s)
{
	struct nv_memory_allocation_params p = { .size = 1 << 20 };
	uint64_t begin = now();
	int i;

	for (i = 0; i < CALLS; i++) {
		rm_alloc(s->ctl, s->client, DEVICE, MEMORY,
			 NV01_MEMORY_LOCAL_USER, &p);
		rm_free(s->ctl, s->client, DEVICE, MEMORY);
	}
	return (now() - begin) / CALLS;
}

static uint64_t doorbell(struct side *s)
{
	uint64_t begin = now();
	int i;

	for (i = 0; i < STORES; i++)
		*s->bell = 0;
	return (now() - begin) * 1000 / STORES;
}

/* One process: waits for the start, opens, calls, says so, waits for the end. */
static void attach(struct side *s, int start, int done, int end)
{
	char byte;

	(void)!read(start, &byte, 1);
	rm_alloc(open_node(s->folder, "nvidiactl"), 0, 0, 0, NV01_ROOT_CLIENT,
		 NULL);
	(void)!write(done, "x", 1);
	(void)!read(end, &byte, 1);
	_exit(0);
}

static void start_processes(struct side *s, int start[2], int done[2],
			    int end[2])
{
	int i;

	for (i = 0; i < PROCESSES; i++) {
		if (fork())
			continue;
		close(start[1]);
		close(end[1]);
		attach(s, start[0], done[1], end[0]);
	}
}

static uint64_t crowd(struct side *s)
{
	int start[2], done[2], end[2], i, status;
	uint64_t begin, took;
	char byte;

	if (pipe(start) || pipe(done) || pipe(end))
		die("pipe");
	start_processes(s, start, done, end);
	begin = now();
	close(start[1]);
	for (i = 0; i < PROCESSES; i++)
		if (read(done[0], &byte, 1) != 1)
			die("a process");
	took = now() - begin;
	close(end[1]);
	for (i = 0; i < PROCESSES; i++)
		if (wait(&status) < 0 || status)
			die("a process failed");
	close(start[0]);
	close(done[0]);
	close(done[1]);
	close(end[0]);
	return took;
}

/* Two threads are what a CUDA program has at least. */
static void *sleep_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void measure(const char *name, uint64_t (*run)(struct side *),
		    struct side *sides, int rounds)
{
	uint64_t times[2][ROUNDS];
	int round, i;

	for (round = 0; round < rounds; round++)
		for (i = 0; i < 2; i++)
			times[i][round] = run(&sides[i]);
	for (i = 0; i < 2; i++)
		qsort(times[i], rounds, sizeof(uint64_t), compare);
	printf("%s %llu %llu\n", name,
	       (unsigned long long)times[0][0],
	       (unsigned long long)times[1][0]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct side sides[2];
	pthread_t thread;

	if (argc != 3) {
		fprintf(stderr, "calls DIRECT THROUGH\n");
		return 2;
	}
	sides[0].folder = argv[1];
	sides[1].folder = argv[2];
	prepare(&sides[0]);
	prepare(&sides[1]);
	measure("pass-through", pass_through, sides, ROUNDS);
	measure("control", frozen, sides, ROUNDS);
	measure("allocation", charged, sides, ROUNDS);
	measure("doorbell", doorbell, sides, ROUNDS);
	measure("attach", crowd, sides, 5);
	if (pthread_create(&thread, NULL, sleep_for_ever, NULL))
		die("a second thread");
	measure("control-threads", frozen, sides, ROUNDS);
	measure("allocation-threads", charged, sides, ROUNDS);
	return 0;
}
