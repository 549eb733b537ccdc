// SPDX-License-Identifier: Apache-2.0
/*
 * strangers VICTIM_DIR OWN_DIR: a client of one folder's nodes has memory; the
 * nodes of another folder are used on it, by its true handles. Prints for each
 * deed "works" or "refused".
 */
#include "rm.h"

#define MEMORY	0xf0010000

static struct rm victim, own;

static int freed(void)
{
	struct rm_free f = { .client = victim.client, .parent = DEVICE_HANDLE,
			     .handle = MEMORY };
	struct rm_dup still = {
		.client = victim.client, .parent = DEVICE_HANDLE, .handle = MEMORY + 1,
		.from_client = victim.client, .from_handle = MEMORY,
	};

	ioctl(own.ctl, ESC(ESC_FREE, sizeof(f)), &f);
	ioctl(victim.ctl, ESC(ESC_DUP, sizeof(still)), &still);
	return still.status != OK;
}

static int allocated(void)
{
	struct rm stranger = { .ctl = own.ctl, .client = victim.client,
			       .branch = own.branch };
	uint32_t handle = MEMORY + 2;

	return rm_memory(&stranger, &handle, MIB) == OK;
}

static int duplicated(void)
{
	struct rm_dup d = {
		.client = own.client, .parent = DEVICE_HANDLE, .handle = MEMORY + 3,
		.from_client = victim.client, .from_handle = MEMORY,
	};

	return !ioctl(own.ctl, ESC(ESC_DUP, sizeof(d)), &d) && d.status == OK;
}

static int given_away(void)
{
	struct rm_dup d = {
		.client = victim.client, .parent = DEVICE_HANDLE, .handle = MEMORY + 4,
		.from_client = own.client, .from_handle = DEVICE_HANDLE,
	};

	return !ioctl(own.ctl, ESC(ESC_DUP, sizeof(d)), &d) && d.status == OK;
}

static int mapped(void)
{
	struct rm_map m = {
		.client = victim.client, .device = DEVICE_HANDLE, .memory = MEMORY,
		.length = 4096, .fd = own.device,
	};

	return !ioctl(own.ctl, ESC(ESC_MAP, sizeof(m)), &m) && m.status == OK;
}

/* Their memory for our file, and our memory for theirs. */
static int exported_to_us(void)
{
	struct rm_export e = { .type = 1, .device = DEVICE_HANDLE,
			       .parent = DEVICE_HANDLE, .object = MEMORY,
			       .fd = open("/dev/null", O_RDWR) };

	return rm_control(&own, victim.client, EXPORT_TO_FD, &e, sizeof(e)) == OK;
}

static const char *victim_dir, *own_dir = "/dev";

static int imported(void)
{
	struct rm_export e = { .type = 1, .device = DEVICE_HANDLE,
			       .parent = DEVICE_HANDLE, .object = MEMORY };
	struct rm_import i = { .type = 1, .device = DEVICE_HANDLE,
			       .parent = DEVICE_HANDLE, .object = MEMORY + 5 };

	e.fd = i.fd = rm_node(victim_dir, "nvidiactl");
	if (rm_control(&victim, victim.client, EXPORT_TO_FD, &e, sizeof(e)))
		die("export");
	return rm_control(&own, own.client, IMPORT_FROM_FD, &i, sizeof(i)) == OK;
}

static int registered(void)
{
	int device = rm_node(own_dir, "nvidia0");

	return !ioctl(device, ESC(ESC_REGISTER_FD, 4), &victim.ctl);
}

/* Of a request that maps: an address, and the length of the memory. */
static void put_range(uint8_t *args, uint32_t size)
{
	uint64_t range[] = { 0x200000000000ull, MIB };

	if (size == 1200)
		memcpy(args, range, sizeof(range));
}

/* Unified memory believes any client and handle that it is told; where they stand is 535's. */
static int told_uvm(uint32_t request, uint32_t size, uint32_t client_at, uint32_t handle,
		    uint32_t status_at)
{
	uint8_t args[1200] = { 0 };
	uint32_t owner[] = { victim.client, handle }, status;
	int uvm = rm_node(own_dir, "nvidia-uvm");
	long result;

	put_range(args, size);
	memcpy(args + client_at, owner, sizeof(owner));
	result = ioctl(uvm, request, args);
	memcpy(&status, args + status_at, sizeof(status));
	close(uvm);
	return !result && status == OK;
}

static int placed(void)
{
	return told_uvm(33, 1200, 0x4a4, MEMORY, 0x4ac);
}

static int space_taken(void)
{
	return told_uvm(25, 32, 0x14, DEVICE_HANDLE, 0x1c);
}

static int channel_taken(void)
{
	return told_uvm(27, 56, 0x14, DEVICE_HANDLE, 0x30);
}

static const struct deed {
	const char *name;
	int (*act)(void);
} deeds[] = {
	{ "dup", duplicated },
	{ "import", imported },
	{ "free", freed },
	{ "alloc", allocated },
	{ "dup-into", given_away },
	{ "map", mapped },
	{ "export", exported_to_us },
	{ "register", registered },
	{ "place", placed },
	{ "take-space", space_taken },
	{ "take-channel", channel_taken },
	{ }
};

int main(int argc, char **argv)
{
	uint32_t handle = MEMORY;
	const struct deed *deed;

	victim_dir = argv[1];
	rm_open(&victim, victim_dir);
	own_dir = argc > 2 ? argv[2] : own_dir;
	rm_open(&own, own_dir);
	if (rm_memory(&victim, &handle, MIB))
		die("memory");
	for (deed = deeds; deed->name; deed++)
		printf("%s %s\n", deed->name, deed->act() ? "works" : "refused");
	return 0;
}
