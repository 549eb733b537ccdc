// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz SEED COUNT [DIR]: random calls on the nodes of an instance, and random
 * writes to the files of the module. Half of what a call carries is valid, so
 * that it gets far. The kernel is the judge; prints what it did.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "rm.h"

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))
#define HANDLES		64
#define ROOM		16384

static const uint8_t numbers[] = {
	0x27, 0x29, 0x2a, 0x2b, 0x34, 0x35, 0x4a, 0x4d, 0x4e, 0x4f, 0x57, 0x58,
	0x5e, 99, 200, 201, 202, 206, 207, 209, 210, 211, 212, 214, 215, 218,
};
static const uint16_t sizes[] = {
	0, 3, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 72, 184, 192, 560, 2304,
};
static const uint16_t true_sizes[] = { 56, 16, 32, 32, 28, 24, 184 };
static const uint32_t classes[] = {
	0, 0x41, 0x80, 0x2080, 0x40, 0x3e, 0x3f, 0x71, 0x70, 0x79, 0x50a0, 0x90f1,
	0x9067, 0xa06c, 0xc46f, 0xc461, 0xc5c0, 0xc5b5, 0xde, 0xf8, 0xe0, 0xffff,
};
static const uint32_t controls[] = {
	0x101, 0x201, 0x202, 0x205, 0x214, 0x21b, 0xd01, 0x3d05, 0x3d06, 0x3d08,
	0x3d0a, 0x3d0b, 0x3d0c, 0x800201, 0x801711, 0x20800110, 0x2080014a,
	0x2080018d, 0x2080018e, 0x20801301, 0x20801303, 0x2080110b, 0x20801201,
	0xa06c0101, 0xa06c0103, 0xa06f0103, 0xc36f0108, 0x12345678,
};
static const uint32_t requests[] = {
	0x30000001, 0x30000002, 23, 25, 26, 27, 28, 31, 33, 34, 37, 38, 39, 42, 44,
	45, 46, 51, 65, 66, 68, 71, 72, 73, 75, 2047, 999,
};
static const char *const words[] = {
	"", "0", "1", "2", "5", "20", "25", "26", "-1", "1e3", "0x10", "4294967296",
	"18446744073709551616", "create", "destroy", "create f gpu=0 mem=1048576",
	"destroy f", "create f gpu=0", "create f gpu=1 mem=0 weight=99", "create / mem==",
	"create f gpu=0 mem=1048576 weight=2 highprio=1", "cgpu_core_9_9_9",
};
static uint64_t state;
static uint8_t buffer[ROOM];
static uint32_t handles[HANDLES] = { 0, 1, DEVICE_HANDLE, SUBDEVICE_HANDLE };
static struct rm rm;
static int uvm;
static char *files[256];
static unsigned int file_count;

static uint32_t dice(uint32_t sides)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return sides ? (state >> 11) % sides : state >> 11;
}

#define PICK(a)	((a)[dice(COUNT(a))])

static uint64_t number(void)
{
	static const uint64_t edges[] = { 0, 1, 2, 4096, 1 << 21, 0x7fffffff, ~0u, 1ull << 40, ~0ull };

	return dice(4) ? PICK(edges) : dice(0);
}

static uint64_t pointer(void)
{
	uint64_t wild[] = { 0, 8, 0xfffffffffffff000ull, 0x7fffffff0000ull, (uintptr_t)buffer + ROOM - 8 };

	return dice(4) ? (uintptr_t)buffer + 256 * dice(32) : PICK(wild);
}

static int any_file(void)
{
	int open_files[] = { rm.ctl, rm.device, uvm, 0, -1 };

	return PICK(open_files);
}

/* Three handles, a class or control, a pointer and a length, in most calls. */
static void fill(uint8_t *to, uint32_t nr, uint32_t size)
{
	uint32_t i, head[4] = { dice(8) ? rm.client : PICK(handles), PICK(handles), PICK(handles), PICK(classes) };
	uint64_t at = pointer();

	for (i = 0; i + 4 <= size; i += 4) {
		uint32_t value = dice(3) ? 0 : number();

		memcpy(to + i, &value, 4);
	}
	if (nr == 0x2a)
		head[2] = PICK(controls);
	memcpy(to, head, size < 16 ? size : 16);
	if (size >= 32) {
		uint32_t length = PICK(sizes);

		memcpy(to + 16, &at, 8);
		memcpy(to + 24, &length, 4);
	}
	if (size == 56 && dice(2)) {
		int fd = any_file();

		memcpy(to + 48, &fd, 4);
	}
}

static void escape(void)
{
	uint32_t known = dice(2) ? dice(COUNT(true_sizes)) : ~0u;
	uint8_t nr = known == ~0u ? PICK(numbers) : numbers[known];
	uint16_t size = known == ~0u ? PICK(sizes) : true_sizes[known];
	uint8_t *arg = buffer + ROOM / 2;

	fill(buffer, nr, 512);
	fill(arg, nr, size);
	if (nr == 211 && size == 16) {
		uint64_t at = (uintptr_t)buffer;
		uint32_t head[2] = { PICK(numbers), PICK(sizes) };

		memcpy(arg, head, 8);
		memcpy(arg + 8, &at, 8);
	}
	ioctl(dice(3) ? rm.ctl : rm.device, ESC(nr, size), arg);
	if (nr == 0x2b && size == 32)
		memcpy(&handles[4 + dice(HANDLES - 4)], arg + 8, 4);
}

static void request(void)
{
	fill(buffer, 0, 512);
	ioctl(uvm, PICK(requests), dice(8) ? (void *)buffer : (void *)(uintptr_t)pointer());
}

static void map(void)
{
	size_t bytes = 4096 * (1 + dice(64));
	uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, dice(4) ? MAP_SHARED : MAP_PRIVATE,
			   any_file(), dice(3) ? 0 : 4096ull * dice(1024));

	if (at == MAP_FAILED)
		return;
	if (dice(2))
		mprotect(at, 4096, dice(8));
	munmap(at, dice(2) ? bytes : 4096);
	munmap(at, bytes);
}

static void reopen(void)
{
	close(rm.device);
	close(rm.ctl);
	rm_open(&rm, "/dev");
	handles[1] = rm.client;
}

static void collect(const char *folder, int depth)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) && file_count < COUNT(files)) {
		char *path = NULL;

		if (entry->d_name[0] == '.' || asprintf(&path, "%s/%s", folder, entry->d_name) < 0)
			continue;
		if (entry->d_type == DT_DIR && depth)
			collect(path, depth - 1);
		else if (entry->d_type == DT_REG)
			files[file_count++] = path;
	}
	if (dir)
		closedir(dir);
}

static void setting(void)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "%s%s", PICK(words), dice(3) ? "\n" : "");
	int fd = open(files[dice(file_count)], dice(2) ? O_WRONLY : O_RDONLY);

	if (fd < 0)
		return;
	if (!dice(8))
		text[dice(n + 1)] = dice(256);
	if (write(fd, text, n) < 0)
		n = read(fd, text, sizeof(text));
	close(fd);
}

int main(int argc, char **argv)
{
	unsigned long i, count = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;

	state = 0x9e3779b97f4a7c15ull * (strtoul(argc > 1 ? argv[1] : "1", NULL, 10) + 1);
	rm_open(&rm, "/dev");
	handles[1] = rm.client;
	uvm = rm_node("/dev", "nvidia-uvm");
	collect("/proc/cgpu_km", 2);
	for (i = 0; i < count; i++) {
		uint32_t which = dice(1000);

		if (which < 700)
			escape();
		else if (which < 850)
			request();
		else if (which < 930)
			map();
		else if (which < 998)
			setting();
		else
			reopen();
	}
	printf("%lu calls\n", count);
	return 0;
}
