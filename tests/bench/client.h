/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmarks' programs share: the clock, a folder's nodes, a client and its doorbell. */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include "../../kmod/abi/nvidia_rm.h"

#define DEVICE			0x80
#define SUBDEVICE		0x2080
#define USERMODE		0x461
#define TURING_USERMODE		0xc461

static inline void die(const char *what)
{
	perror(what);
	exit(1);
}

static inline uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static inline int open_node(const char *folder, const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die(path);
	return fd;
}

static inline __u32 rm_alloc(int ctl, __u32 client, __u32 parent, __u32 handle,
		      __u32 class, void *params)
{
	struct nvos21_parameters_535 a = {
		.h_root = client, .h_object_parent = parent,
		.h_object_new = handle, .h_class = class,
		.p_alloc_parms = (uintptr_t)params,
	};

	if (ioctl(ctl, NV_IOCTL(NV_ESC_RM_ALLOC, sizeof(a)), &a))
		die("RM_ALLOC");
	if (a.status) {
		fprintf(stderr, "class %#x: status %#x\n", class, a.status);
		exit(1);
	}
	return a.h_object_new;
}

/* The doorbell page of a client's GPU, whose subdevice it has already. */
static inline volatile __u32 *map_doorbell(int ctl, __u32 client, int dev)
{
	struct nv_ioctl_nvos33_parameters_with_fd a = {
		.params.h_client = client, .params.h_device = SUBDEVICE,
		.params.h_memory = USERMODE, .params.length = 0x10000,
		.fd = dev,
	};
	char *at;

	rm_alloc(ctl, client, SUBDEVICE, USERMODE, TURING_USERMODE, NULL);
	if (ioctl(ctl, NV_IOCTL(NV_ESC_RM_MAP_MEMORY, sizeof(a)), &a) ||
	    a.params.status)
		die("MAP_MEMORY");
	at = mmap(NULL, a.params.length, PROT_READ | PROT_WRITE, MAP_SHARED,
		  a.fd, 0);
	if (at == MAP_FAILED)
		die("mmap of the doorbell");
	return (volatile __u32 *)(at + 0x80);
}

/* A client with the device and the subdevice of GPU 0. */
static inline __u32 new_client(int ctl)
{
	struct nv0080_alloc_parameters device = { 0 };
	__u32 subdevice = 0, client;

	client = rm_alloc(ctl, 0, 0, 0, NV01_ROOT_CLIENT, NULL);
	rm_alloc(ctl, client, client, DEVICE, NV01_DEVICE_0, &device);
	rm_alloc(ctl, client, DEVICE, SUBDEVICE, NV20_SUBDEVICE_0, &subdevice);
	return client;
}

#endif
