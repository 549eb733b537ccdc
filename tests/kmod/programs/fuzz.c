// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz SEED CALLS THREADS [FOLDER]: random calls on the nodes of a folder (/dev), and random
 * writes to the files of the module. The threads of the program share its files and the memory
 * that calls point to, so that arguments change under a call. Half of what a call carries is
 * valid, so that it gets far; every other thread lacks the right to administrate. The kernel is
 * the judge. Prints how often each call came back with what, and what it did in all.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "rm.h"
#include "tally.h"

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))
#define HANDLES		64
#define ROOM		32768
#define LONGEST		16384	/* no call takes more */
#define FILES		256
#define REQUESTS	80
#define THREADS		16
#define ADMINISTRATE	(1u << CAP_SYS_ADMIN)

/* The escapes that the module lets through or changes, some that it refuses, and their sizes in 535. */
static const struct escape {
	uint8_t number;
	uint16_t size;
	uint16_t status_at;	/* 0 = it has none that is counted */
	const char *name;
} escapes[] = {
	{ 0x27, 56, 40, "alloc_memory" }, { 0x29, 16, 12, "free" }, { 0x2a, 32, 28, "control" },
	{ 0x2b, 32, 28, "alloc" }, { 0x2b, 48, 40, "alloc" }, { 0x34, 28, 24, "dup" },
	{ 0x4a, 184, 20, "heap" }, { 0x4e, 56, 40, "map" }, { 200, 2304, 0, "card_info" },
	{ 201, 4, 0, "register_fd" }, { 212, 4, 0, "attach" }, { 0x35, 24, 20, "share" },
	{ 0x41, 48, 0, "idle_channels" }, { 0x4d, 48, 0, "registry" }, { 0x4f, 32, 0, "unmap" },
	{ 0x52, 16, 12, "event_data" }, { 0x54, 40, 0, "context_dma" }, { 0x57, 56, 0, "map_dma" },
	{ 0x58, 32, 0, "unmap_dma" }, { 0x59, 16, 0, "bind_dma" }, { 0x5e, 40, 0, "update" },
	{ 0x5f, 16, 0, "diagnostic" }, { 202, 4, 0, "env" }, { 206, 16, 0, "os_event" },
	{ 207, 16, 0, "free_os_event" }, { 209, 12, 0, "status_code" }, { 210, 72, 0, "version" },
	{ 213, 4, 0, "interrupt" }, { 214, 8, 0, "parameters" }, { 215, 568, 0, "numa" },
	{ 218, 8, 0, "wait_open" }, { 0x28, 32, 0, "refused_alloc_object" },
	{ 0x32, 32, 0, "refused_config" }, { 0x5c, 32, 0, "refused_export" },
	{ 99, 16, 0, "refused_unknown" }, { 217, 16, 0, "refused_dmabuf" },
};
#define RULED		11	/* the first so many have rules of the module */
#define WRAPPED		211

static const uint16_t sizes[] = {
	0, 3, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 72, 184, 192, 560, 2304,
};
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
	0x30000001, 0x30000002, 23, 24, 25, 26, 27, 28, 29, 30, 31, 33, 34, 37, 38, 39, 42, 43, 44,
	45, 46, 47, 51, 53, 56, 65, 66, 68, 70, 71, 72, 73, 74, 75, 78, 2047, 999,
};
static const char *const words[] = {
	"", "0", "1", "2", "5", "20", "25", "26", "-1", "1e3", "0x10", "4294967296",
	"18446744073709551615", "18446744073709551616", "create", "destroy", "create f gpu=0 mem=1048576",
	"destroy f", "create f gpu=0", "create f gpu=1 mem=0 weight=99", "create / mem==",
	"create f gpu=0 mem=1048576 weight=2 highprio=1", "cgpu_core_9_9_9",
	"create g gpu=0 mem=99999999999999", "destroy nobody", "destroy fuzz0", "cgpu_core_1_0_0",
	"create f gpu=0 mem=1048576\ncreate g gpu=0 mem=1048576\ndestroy f\ndestroy g",
};

static struct tally of_escape[COUNT(escapes)], of_wrapper, of_request[REQUESTS], of_map;
static struct tally of_file[FILES];
static pthread_mutex_t sums = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *memory;		/* ROOM bytes, and nothing behind them */
static uint32_t handles[HANDLES] = { 0, 1, DEVICE_HANDLE, SUBDEVICE_HANDLE };
static const char *folder = "/dev";
static atomic_ulong calls;
static unsigned long most;
static uint64_t seed;

/* Of an instance that stays, a file stays open: what is fuzzed is not the opening. */
struct file {
	char *path;
	const char *name;	/* without the folder */
	int fd;			/* -1 = it comes and goes */
};

static struct file files[FILES];
static unsigned int file_count;

/* What a thread has of its own. The nodes are its own, too: others may use them by number. */
struct thread {
	uint64_t state;
	struct rm rm;
	int uvm;
	uint8_t buffer[LONGEST];
	struct tally of_escape[COUNT(escapes)], of_wrapper, of_request[REQUESTS], of_map;
	struct tally of_file[FILES];
};

static uint32_t dice(struct thread *t, uint32_t sides)
{
	t->state ^= t->state << 13;
	t->state ^= t->state >> 7;
	t->state ^= t->state << 17;
	return sides ? (t->state >> 11) % sides : t->state >> 11;
}

#define PICK(t, a)	((a)[dice(t, COUNT(a))])

static uint64_t number(struct thread *t)
{
	static const uint64_t edges[] = { 0, 1, 2, 4096, 1 << 21, 0x7fffffff, ~0u, 1ull << 40, ~0ull };

	return dice(t, 4) ? PICK(t, edges) : dice(t, 0);
}

static uint64_t pointer(struct thread *t)
{
	uint64_t wild[] = { 0, 8, 0xfffffffffffff000ull, 0x7fffffff0000ull, (uintptr_t)memory + ROOM - 8 };

	return dice(t, 8) ? (uintptr_t)memory + 256 * dice(t, 32) : PICK(t, wild);
}

static int any_file(struct thread *t)
{
	int open_files[] = { t->rm.ctl, t->rm.device, t->uvm, 0, -1, dice(t, 64) };

	return PICK(t, open_files);
}

static void put32(uint8_t *to, uint32_t at, uint32_t value)
{
	memcpy(to + at, &value, sizeof(value));
}

/* Three handles, a class or control, a pointer and a length, in most calls. */
static void fill(struct thread *t, uint8_t *to, uint32_t nr, uint32_t size)
{
	uint32_t i, head[4] = {
		dice(t, 8) ? t->rm.client : PICK(t, handles), PICK(t, handles),
		PICK(t, handles), PICK(t, classes),
	};
	uint64_t at = pointer(t);

	for (i = 0; i + 4 <= size; i += 4)
		put32(to, i, dice(t, 3) ? 0 : number(t));
	if (nr == 0x2a)
		head[2] = PICK(t, controls);
	if (nr == 0x4a)
		head[2] = dice(t, 30);
	if (nr == 201)
		head[0] = any_file(t);
	if (nr == 212)
		head[0] = dice(t, 2) ? 0 : dice(t, 0);
	memcpy(to, head, size < 16 ? size : 16);
	if (size >= 32) {
		memcpy(to + 16, &at, 8);
		put32(to, 24, PICK(t, sizes));
	}
	if (size == 56 && dice(t, 2))
		put32(to, 48, any_file(t));
}

static uint32_t status_of(const struct escape *e, uint32_t size, const uint8_t *arg)
{
	uint32_t status = 0;

	if (e->status_at && size == e->size)
		memcpy(&status, arg + e->status_at, sizeof(status));
	return status;
}

/* Puts a call into a wrapper; its own wrapper again, now and then. */
static void wrapped(struct thread *t, uint8_t *arg, uint32_t nr, uint32_t size)
{
	uint8_t wrapper[24];
	uint64_t at = dice(t, 16) ? (uintptr_t)arg : pointer(t);

	put32(wrapper, 0, dice(t, 16) ? nr : WRAPPED);
	put32(wrapper, 4, dice(t, 16) ? size : number(t));
	memcpy(wrapper + 8, &at, 8);
	tally_count(&t->of_wrapper,
		    ioctl(dice(t, 3) ? t->rm.ctl : t->rm.device,
			  ESC(WRAPPED, dice(t, 16) ? 16 : PICK(t, sizes)), wrapper), 0);
}

static void escape(struct thread *t)
{
	uint32_t which = dice(t, 4) ? dice(t, RULED) : dice(t, COUNT(escapes));
	const struct escape *e = &escapes[which];
	uint32_t size = dice(t, 8) ? e->size : PICK(t, sizes);
	uint8_t *arg = dice(t, 4) ? t->buffer : memory + LONGEST;
	int fd = e->number == 0x27 || e->number == 201 ? t->rm.device : t->rm.ctl;
	long result;

	fill(t, memory, e->number, 512);
	fill(t, arg, e->number, size);
	if (!dice(t, 8)) {
		wrapped(t, arg, e->number, size);
		return;
	}
	if (!dice(t, 8))
		fd = any_file(t);
	result = ioctl(fd, ESC(e->number, size), dice(t, 6) ? arg : (void *)(uintptr_t)pointer(t));
	tally_count(&t->of_escape[which], result, status_of(e, size, arg));
	if (!result && e->number == 0x2b)
		memcpy(&handles[4 + dice(t, HANDLES - 4)], arg + 8, 4);
}

static void request(struct thread *t)
{
	uint32_t which = dice(t, COUNT(requests));

	fill(t, t->buffer, 0, 512);
	tally_count(&t->of_request[which],
		    ioctl(t->uvm, requests[which],
			  dice(t, 8) ? (void *)t->buffer : (void *)(uintptr_t)pointer(t)), 0);
}

static void map(struct thread *t)
{
	size_t first, bytes = 4096 * (1 + dice(t, 64));
	int fds[] = { t->rm.ctl, t->rm.device, t->uvm, t->uvm };
	uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, dice(t, 4) ? MAP_SHARED : MAP_PRIVATE,
			   PICK(t, fds), dice(t, 3) ? 0 : 4096ull * dice(t, 1024));

	tally_count(&t->of_map, at == MAP_FAILED ? -1 : 0, 0);
	if (at == MAP_FAILED)
		return;
	if (dice(t, 2))
		mprotect(at, 4096, dice(t, 8));
	first = dice(t, 2) ? bytes : 4096;
	munmap(at, first);
	/* only what is left: where the rest was, the module may have mapped a call's arguments by now */
	if (first < bytes)
		munmap(at + first, bytes - first);
}

static void setting(struct thread *t)
{
	uint32_t which = dice(t, file_count);
	char text[8192];
	int n = snprintf(text, 128, "%s%s", PICK(t, words), dice(t, 3) ? "\n" : "");
	bool kept = files[which].fd >= 0 && dice(t, 32);
	int fd = kept ? files[which].fd : open(files[which].path, dice(t, 4) ? O_RDWR : O_RDONLY);

	if (fd < 0) {
		tally_count(&t->of_file[which], fd, 0);
		return;
	}
	if (!dice(t, 8))
		text[dice(t, n + 1)] = dice(t, 256);
	if (!dice(t, 16)) {
		memset(text + n, '\n', sizeof(text) - n);
		n = sizeof(text);
	}
	tally_count(&t->of_file[which],
		    dice(t, 8) ? write(fd, text, n) : pread(fd, text, sizeof(text), 0), 0);
	if (!kept)
		close(fd);
}

static void open_all(struct thread *t)
{
	rm_open(&t->rm, folder);
	t->uvm = rm_node(folder, "nvidia-uvm");
	handles[1] = t->rm.client;
}

static void close_all(struct thread *t)
{
	close(t->uvm);
	close(t->rm.device);
	close(t->rm.ctl);
}

static void may_administrate(bool may)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		die("capget");
	data[0].effective = may ? data[0].permitted : data[0].effective & ~ADMINISTRATE;
	if (syscall(SYS_capset, &head, data))
		die("capset");
}

static void step(struct thread *t)
{
	uint32_t which = dice(t, 1000);

	if (which < 700)
		escape(t);
	else if (which < 880)
		request(t);
	else if (which < 890)
		map(t);
	else if (which < 999) {
		setting(t);
	} else {
		close_all(t);
		open_all(t);
	}
}

static void add(struct tally *to, const struct tally *from, size_t count)
{
	const unsigned long *what = (const void *)from;
	unsigned long *sum = (void *)to;
	size_t i;

	for (i = 0; i < count * sizeof(*to) / sizeof(*sum); i++)
		sum[i] += what[i];
}

static void *play(void *argument)
{
	struct thread *t = calloc(1, sizeof(*t));
	uintptr_t mine = (uintptr_t)argument;

	if (!t)
		die("memory");
	t->state = 0x9e3779b97f4a7c15ull * (seed * THREADS + mine + 1);
	open_all(t);
	may_administrate(mine % 2 == 0);
	while (atomic_fetch_add(&calls, 1) < most)
		step(t);
	close_all(t);
	pthread_mutex_lock(&sums);
	add(of_escape, t->of_escape, COUNT(escapes));
	add(&of_wrapper, &t->of_wrapper, 1);
	add(of_request, t->of_request, REQUESTS);
	add(&of_map, &t->of_map, 1);
	add(of_file, t->of_file, FILES);
	pthread_mutex_unlock(&sums);
	free(t);
	return NULL;
}

static void add_file(char *path, bool stays)
{
	if (file_count < FILES)
		files[file_count++] = (struct file) {
			path, strrchr(path, '/') + 1, stays ? open(path, O_RDWR | O_CLOEXEC) : -1,
		};
}

static void collect(const char *where, int depth)
{
	DIR *dir = opendir(where);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char *path = NULL;

		if (entry->d_name[0] == '.' || asprintf(&path, "%s/%s", where, entry->d_name) < 0)
			continue;
		if (entry->d_type == DT_DIR && depth)
			collect(path, depth - 1);
		else if (entry->d_type == DT_REG)
			add_file(path, true);
	}
	if (dir)
		closedir(dir);
}

/* All files of the module; those of the instances f and g, which the calls create and destroy. */
static void collect_all(void)
{
	static const char *const coming[] = { "f/memsize", "f/weight", "f/highprio", "f/meminfo", "g/id" };
	char *path;
	size_t i;

	collect("/proc/cgpu_km", 2);
	for (i = 0; i < COUNT(coming); i++)
		if (asprintf(&path, "/proc/cgpu_km/0/%s", coming[i]) > 0)
			add_file(path, false);
}

static void print_all(void)
{
	char name[32];
	size_t i;

	for (i = 0; i < COUNT(escapes); i++)
		tally_print(&of_escape[i], "escape", escapes[i].name);
	tally_print(&of_wrapper, "escape", "wrapped");
	for (i = 0; i < COUNT(requests); i++) {
		snprintf(name, sizeof(name), "%u", requests[i]);
		tally_print(&of_request[i], "uvm", name);
	}
	tally_print(&of_map, "mmap", "node");
	for (i = 0; i < file_count; i++)
		tally_print(&of_file[i], "file", files[i].name);
	printf("calls with-seed-%lu done %lu\n", (unsigned long)seed, most);
}

int main(int argc, char **argv)
{
	unsigned long i, threads = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
	pthread_t running[THREADS];

	seed = strtoul(argc > 1 ? argv[1] : "1", NULL, 10);
	most = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
	if (argc > 4)
		folder = argv[4];
	if (threads < 1 || threads > THREADS) {
		fprintf(stderr, "fuzz: %lu threads: 1 to %d are possible\n", threads, THREADS);
		return 2;
	}
	memory = mmap(NULL, ROOM + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || mprotect(memory, ROOM, PROT_READ | PROT_WRITE))
		die("memory");
	collect_all();
	for (i = 0; i < threads; i++)
		if (pthread_create(&running[i], NULL, play, (void *)i))
			die("thread");
	for (i = 0; i < threads; i++)
		pthread_join(running[i], NULL);
	print_all();
	return 0;
}
