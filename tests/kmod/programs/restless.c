// SPDX-License-Identifier: Apache-2.0
/*
 * restless DIR: takes, doubles, exports and frees memory, maps and rings a doorbell,
 * opens and closes, until it is killed. Refusals are as good as successes.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include "rm.h"

static void memory(const struct rm *rm, const char *dir, uint32_t n)
{
	uint32_t handle = 0xb0000000 + 4 * n;
	struct rm_dup d = {
		.client = rm->client, .parent = DEVICE_HANDLE, .handle = handle + 1,
		.from_client = rm->client, .from_handle = handle,
	};
	struct rm_export e = { .type = 1, .device = DEVICE_HANDLE,
			       .parent = DEVICE_HANDLE, .object = handle };
	struct rm_import i = { .type = 1, .device = DEVICE_HANDLE,
			       .parent = DEVICE_HANDLE, .object = handle + 2 };

	if (rm_memory(rm, &handle, (1 + n % 64) * MIB))
		return;
	ioctl(rm->ctl, ESC(ESC_DUP, sizeof(d)), &d);
	e.fd = i.fd = rm_node(dir, "nvidiactl");
	rm_control(rm, rm->client, EXPORT_TO_FD, &e, sizeof(e));
	rm_control(rm, rm->client, IMPORT_FROM_FD, &i, sizeof(i));
	close(e.fd);
	rm_free(rm, handle);
	if (n % 3)
		rm_free(rm, handle + 1);
	if (n % 5)
		rm_free(rm, handle + 2);
}

static void *bell(const struct rm *rm)
{
	uint32_t handle = 0xbe110000;
	struct rm_map m = {
		.client = rm->client, .device = DEVICE_HANDLE, .memory = handle,
		.length = 4096, .fd = rm->device,
	};

	if (rm_make(rm, SUBDEVICE_HANDLE, &handle, CLASS_DOORBELL, NULL) ||
	    ioctl(rm->ctl, ESC(ESC_MAP, sizeof(m)), &m) || m.status)
		return NULL;
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, rm->device, 0);
}

int main(int argc, char **argv)
{
	const char *dir = argc > 1 ? argv[1] : "/dev";
	uint32_t n = 0;

	for (;;) {
		volatile uint8_t *at;
		struct rm rm;
		int round;

		rm_open(&rm, dir);
		at = bell(&rm);
		if (!at || at == MAP_FAILED)
			die("doorbell");
		for (round = 0; round < 50; round++) {
			memory(&rm, dir, n++);
			*(volatile uint32_t *)(at + 0x90) = ~0u;
		}
		munmap((void *)at, 4096);
		close(rm.device);
		close(rm.ctl);
	}
}
