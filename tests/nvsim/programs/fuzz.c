// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz SEED COUNT: random ioctls to the simulated driver's three nodes: wrong
 * sizes, handles, pointers, nested wrappers; between them mappings, polls and
 * files that close. Much of what a call carries is valid, so that it gets far.
 * The calls are made by one child after another, each killed at some moment.
 * Standard input tells what there is to call, a number a line: `escape`, `uvm`,
 * `class` or `control` and the number. The kernel is the judge; says how many
 * calls and kills there were.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))
#define ROOM		(1 << 16)
#define LIFE		1000	/* calls of a child, on average */
#define DEVICE		0xd0000080u
#define XFER		211
#define ESC(nr, size)	_IOC(_IOC_READ | _IOC_WRITE, 'F', nr, size)

enum { CONTROL, CARD, OTHER_CARD, UVM, FILES };

struct numbers {
	const char *name;
	uint32_t count, list[512];
};

static struct numbers escapes = { "escape" }, requests = { "uvm" }, classes = { "class" },
		      controls = { "control" };
static const char *const nodes[] = { "/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia0", "/dev/nvidia-uvm" };
/* the sizes that the calls with the most behind them want, in branch 535 */
static const uint16_t right[][2] = {
	{ 0x27, 56 }, { 0x29, 16 }, { 0x2a, 32 }, { 0x2b, 32 }, { 0x2b, 48 }, { 0x34, 28 },
	{ 0x4a, 184 }, { 0x4e, 56 }, { 0x57, 56 }, { 0x58, 40 }, { 0x52, 16 }, { 201, 4 },
	{ 206, 16 }, { 207, 16 }, { XFER, 16 },
};
static const uint16_t sizes[] = {
	0, 3, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 72, 184, 192, 560, 2304, 9000,
};
static const uint32_t lengths[] = { 0, 4, 8, 16, 40, 268, 436, 3812, 6168, 14408, 1 << 16, 1 << 21 };
static uint64_t state;
static uint8_t buffer[ROOM] __attribute__((aligned(4096)));
static uint32_t client;
static int files[FILES], zero;
static unsigned long *sent;	/* shared with the children */

static uint32_t dice(uint32_t sides)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return sides ? (state >> 11) % sides : state >> 11;
}

#define PICK(a)	((a)[dice(COUNT(a))])

static uint32_t pick(const struct numbers *of)
{
	return dice(50) ? of->list[dice(of->count)] : dice(0);
}

/* A client, its device, one of a few objects; seldom a handle of nobody. */
static uint32_t handle(void)
{
	switch (dice(8)) {
	case 0: return client;
	case 1: return DEVICE;
	case 2: return 0;
	case 3: return dice(4) ? client : dice(0);
	default: return 0xd0000000 + dice(48);
	}
}

static uint64_t pointer(void)
{
	const uint64_t wild[] = { 0, 8, ~4095ull, 0x7fffffff0000, (uintptr_t)buffer + ROOM - 8 };

	return dice(6) ? (uintptr_t)buffer + 512 + 256 * dice(64) : PICK(wild);
}

static uint64_t number(void)
{
	static const uint64_t edges[] = {
		1, 2, 3, 4095, 4096, 65536, 1 << 21, 1 << 30, 0x7fffffff, ~0u, 1ull << 40, ~0ull,
	};

	return dice(4) ? PICK(edges) : dice(0);
}

static void put32(uint8_t *to, uint32_t at, uint32_t value)
{
	memcpy(to + at, &value, sizeof(value));
}

static void put64(uint8_t *to, uint32_t at, uint64_t value)
{
	memcpy(to + at, &value, sizeof(value));
}

static void words(uint8_t *to, uint32_t size)
{
	uint32_t at;

	memset(to, 0, size);
	for (at = 0; at + 8 <= size; at += dice(8) ? 4 : 8)
		switch (dice(10)) {
		case 0: put32(to, at, handle()); break;
		case 1: put32(to, at, number()); break;
		case 2: put64(to, at, number()); break;
		case 3: put32(to, at, PICK(files)); break;
		case 4: put64(to, at, pointer()); break;
		}
}

static void argument(uint8_t *to, uint32_t nr, uint32_t size)
{
	words(to, size);
	if (size < 16)
		return;
	put32(to, 0, dice(16) ? client : handle());
	put32(to, 4, nr == 0x2b && dice(2) ? DEVICE : handle());
	put32(to, 8, nr == 0x2a ? pick(&controls) : nr == 0x4a ? dice(32) : handle());
	if (nr == 0x2b || nr == 0x27)
		put32(to, 12, pick(&classes));
	if (size >= 32 && (nr == 0x2a || nr == 0x2b) && dice(16)) {
		put64(to, 16, pointer());
		put32(to, 24, PICK(lengths));
	}
	if (size == 56 && dice(2)) {
		put64(to, 32, 4096ull << dice(8));
		put32(to, 48, PICK(files));
	}
}

static void escape(void)
{
	uint32_t nr = pick(&escapes), size = PICK(sizes);
	uint8_t *arg = buffer;

	if (dice(2)) {
		uint32_t row = dice(COUNT(right));

		nr = right[row][0];
		size = right[row][1];
	}
	words(buffer + 512, dice(4) ? 128 : 512);
	if (nr == XFER && size == 16) {
		uint32_t inner = pick(&escapes), room = PICK(sizes);

		argument(buffer + 16384, inner, room);
		put32(arg, 0, inner);
		put32(arg, 4, room);
		put64(arg, 8, dice(8) ? (uintptr_t)buffer + 16384 : pointer());
	} else {
		argument(arg, nr, size);
	}
	ioctl(files[dice(3) ? CONTROL : dice(FILES)], ESC(nr & 255, size),
	      dice(32) ? (void *)arg : (void *)(uintptr_t)pointer());
}

static void request(void)
{
	words(buffer, dice(4) ? 128 : 512);
	ioctl(files[UVM], pick(&requests), dice(16) ? (void *)buffer : (void *)(uintptr_t)pointer());
}

/* Pages are written by a read, which fails where a store would end the program. */
static void map(void)
{
	size_t bytes = 4096ull << dice(6), touched = dice(8) ? 4096 : bytes;
	void *hint = (void *)(0x500000000000 + 4096ull * dice(4096));
	int file = dice(FILES), flags = dice(8) ? MAP_SHARED : MAP_PRIVATE;
	void *at = mmap(file == UVM ? hint : NULL, bytes, PROT_READ | PROT_WRITE,
			flags | (file == UVM ? MAP_FIXED_NOREPLACE : 0), files[file],
			file == UVM && dice(8) ? (off_t)(uintptr_t)hint : 0);

	if (at == MAP_FAILED)
		return;
	if (read(zero, at, touched) < 0 && errno != EFAULT)
		exit(4);
	if (dice(4) == 0)
		munmap(at, 4096);
	munmap(at, bytes);
}

static void look(void)
{
	struct pollfd poller = { .fd = files[dice(UVM)], .events = POLLIN | POLLPRI };

	poll(&poller, 1, 0);
}

static void die(const char *what)
{
	perror(what);
	exit(3);
}

static void close_files(void)
{
	for (int i = 0; i < FILES; i++)
		close(files[(i + 1) % FILES]);
}

/* Files anew, with a client and a device of the first card. */
static void open_files(void)
{
	uint32_t root[8] = { 0, 0, 0, 0x41 };

	for (int i = 0; i < FILES; i++) {
		files[i] = open(nodes[i], O_RDWR | O_CLOEXEC);
		if (files[i] < 0)
			die(nodes[i]);
	}
	if (dice(4))
		ioctl(files[CARD], ESC(201, 4), &files[CONTROL]);
	if (ioctl(files[CONTROL], ESC(0x2b, sizeof(root)), root))
		die("a client");
	client = root[2];
	uint32_t device[8] = { client, client, DEVICE, 0x80 };

	if (ioctl(files[CONTROL], ESC(0x2b, sizeof(device)), device))
		die("a device");
}

static void take(struct numbers *of, const char *name, uint32_t number)
{
	if (!strcmp(of->name, name) && of->count < COUNT(of->list))
		of->list[of->count++] = number;
}

static void read_numbers(void)
{
	char name[16];
	uint32_t number;

	while (scanf("%15s %u", name, &number) == 2) {
		take(&escapes, name, number);
		take(&requests, name, number);
		take(&classes, name, number);
		take(&controls, name, number);
	}
	if (!escapes.count || !requests.count || !classes.count || !controls.count) {
		fprintf(stderr, "fuzz: standard input must name escape, uvm, class and control numbers\n");
		exit(2);
	}
}

static void step(void)
{
	uint32_t which = dice(1000);

	if (which < 990) {
		which < 820 ? escape() : request();
		++*sent;
	} else if (which < 994) {
		map();
	} else if (which < 999) {
		look();
	} else {
		close_files();
		open_files();
	}
}

/* Says when it has made so many calls, and goes on until it is killed. */
static void live(unsigned long calls, int told)
{
	unsigned long end = *sent + calls;

	open_files();
	while (*sent < end)
		step();
	if (write(told, "", 1) != 1)
		die("a pipe");
	for (;;)
		step();
}

/* One child from its beginning to its end by SIGKILL, wherever it is then. */
static void let_live(unsigned long calls)
{
	int told[2], status;
	pid_t child;
	char byte;

	if (pipe(told) || (child = fork()) < 0)
		die("a child");
	if (!child) {
		close(told[0]);
		live(calls, told[1]);
	}
	close(told[1]);
	if (read(told[0], &byte, 1) < 0)
		die("a pipe");
	kill(child, SIGKILL);
	if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
		fprintf(stderr, "fuzz: a child ended by itself, status %x\n", status);
		exit(5);
	}
	close(told[0]);
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : LIFE, kills = 0;

	state = 0x9e3779b97f4a7c15ull * (strtoul(argc > 1 ? argv[1] : "1", NULL, 10) + 1);
	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	read_numbers();
	sent = mmap(NULL, sizeof(*sent), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sent == MAP_FAILED)
		die("shared memory");
	for (; *sent < count; kills++)
		let_live(dice(2 * LIFE));
	printf("%lu calls, %lu kills\n", *sent, kills);
	return 0;
}
