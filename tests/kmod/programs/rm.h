/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's own interface, called as no library calls it: numbers and
 * offsets of the ioctls that the attacks need, on every branch.
 */
#ifndef RM_H
#define RM_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MIB		(1ull << 20)
#define ESC(nr, size)	_IOC(_IOC_READ | _IOC_WRITE, 'F', nr, size)

enum {
	ESC_ALLOC_MEMORY = 0x27,
	ESC_FREE = 0x29,
	ESC_CONTROL = 0x2a,
	ESC_ALLOC = 0x2b,
	ESC_DUP = 0x34,
	ESC_HEAP = 0x4a,
	ESC_MAP = 0x4e,
	ESC_REGISTER_FD = 201,
	ESC_VERSION = 210,
};

enum {
	CLASS_HOST_MEMORY = 0x3e,
	CLASS_MEMORY = 0x40,
	CLASS_ROOT = 0x41,
	CLASS_DEVICE = 0x80,
	CLASS_SUBDEVICE = 0x2080,
	CLASS_DOORBELL = 0xc461,	/* of Turing, as the next: the card is a T4 */
	CLASS_COMPUTE = 0xc5c0,
};

enum {
	OK = 0,
	DEVICE_HANDLE = 0xd0000080,
	SUBDEVICE_HANDLE = 0xd0002080,
	EXPORT_TO_FD = 0x3d05,
	IMPORT_FROM_FD = 0x3d06,
};

/* RM_ALLOC in its short form. The status moved in 535. */
struct rm_alloc {
	uint32_t client, parent, handle, class;
	uint64_t params;
	uint32_t tail[2];
};

struct rm_free {
	uint32_t client, parent, handle, status;
};

struct rm_control {
	uint32_t client, object, cmd, flags;
	uint64_t params;
	uint32_t size, status;
};

struct rm_dup {
	uint32_t client, parent, handle, from_client, from_handle, flags, status;
};

struct rm_map {
	uint32_t client, device, memory, pad;
	uint64_t offset, length, address;
	uint32_t status, flags;
	int32_t fd, pad2;
};

struct rm_memory {		/* ALLOC_MEMORY, with a file number */
	uint32_t client, parent, handle, class;
	uint32_t flags, pad;
	uint64_t memory, limit;
	uint32_t status, pad2;
	int32_t fd, pad3;
};

struct rm_export {
	uint32_t type, device, parent, object;
	int32_t fd;
	uint32_t flags;
};

struct rm_import {
	int32_t fd;
	uint32_t type, device, parent, object;
};

/* Parameters of memory: size at 0x40, in a buffer that is long enough. */
struct rm_size {
	uint8_t before[0x40];
	uint64_t size;
	uint8_t after[0x40];
};

/* VID_HEAP: 184 bytes, and 192 before 460 with the later fields moved by 8. */
#define HEAP_CLIENT	0
#define HEAP_PARENT	4
#define HEAP_FUNCTION	8
#define HEAP_STATUS	0x14
#define HEAP_HANDLE	0x2c
#define HEAP_FLAGS	0x34
#define HEAP_MOST	192

struct rm {
	int ctl, device;
	uint32_t client;
	unsigned int branch;
};

static inline void die(const char *what)
{
	perror(what);
	exit(3);
}

static inline uint32_t rm_make(const struct rm *rm, uint32_t parent, uint32_t *handle,
			       uint32_t class, void *params)
{
	struct rm_alloc a = {
		.client = rm->client, .parent = parent, .handle = *handle,
		.class = class, .params = (uintptr_t)params,
	};

	if (ioctl(rm->ctl, ESC(ESC_ALLOC, sizeof(a)), &a))
		return errno << 16;
	*handle = a.handle;
	return a.tail[rm->branch >= 535];
}

static inline uint32_t rm_memory(const struct rm *rm, uint32_t *handle, uint64_t size)
{
	struct rm_size params = { .size = size };

	return rm_make(rm, DEVICE_HANDLE, handle, CLASS_MEMORY, &params);
}

static inline uint32_t rm_free(const struct rm *rm, uint32_t handle)
{
	struct rm_free f = {
		.client = rm->client, .parent = DEVICE_HANDLE, .handle = handle,
	};

	return ioctl(rm->ctl, ESC(ESC_FREE, sizeof(f)), &f) ? errno << 16 : f.status;
}

static inline uint32_t rm_control(const struct rm *rm, uint32_t object, uint32_t cmd,
				  void *params, uint32_t size)
{
	struct rm_control c = {
		.client = rm->client, .object = object, .cmd = cmd,
		.params = (uintptr_t)params, .size = size,
	};

	return ioctl(rm->ctl, ESC(ESC_CONTROL, sizeof(c)), &c) ? errno << 16 : c.status;
}

static inline unsigned int rm_branch(int ctl)
{
	uint32_t version[18] = { '2' };

	if (ioctl(ctl, ESC(ESC_VERSION, sizeof(version)), version))
		die("version");
	return strtoul((char *)&version[2], NULL, 10);
}

static inline int rm_node(const char *dir, const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die(path);
	return fd;
}

/* A client with a device and its subdevice, on the nodes of a folder. */
static inline void rm_open(struct rm *rm, const char *dir)
{
	uint32_t handle = 0, params[16] = { 0 };

	rm->ctl = rm_node(dir, "nvidiactl");
	rm->device = rm_node(dir, "nvidia0");
	rm->branch = rm_branch(rm->ctl);
	rm->client = 0;
	if (rm->branch >= 450)
		ioctl(rm->device, ESC(ESC_REGISTER_FD, 4), &rm->ctl);
	if (rm_make(rm, 0, &handle, CLASS_ROOT, NULL))
		die("client");
	rm->client = handle;
	handle = DEVICE_HANDLE;
	if (rm_make(rm, rm->client, &handle, CLASS_DEVICE, params))
		die("device");
	handle = SUBDEVICE_HANDLE;
	if (rm_make(rm, DEVICE_HANDLE, &handle, CLASS_SUBDEVICE, params))
		die("subdevice");
}

#endif
