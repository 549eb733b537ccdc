// SPDX-License-Identifier: Apache-2.0
/*
 * doorbell NAME [MS]: maps a doorbell, does something to the mapping, and tries
 * to ring it. Prints "rang" when a store went through, "waits" when none did
 * within MS milliseconds, and "refused" when the trick itself did not work.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include "rm.h"

#define PAGES	4
#define BYTES	(PAGES * 4096)
#define BELL	0x90

static struct rm rm;
static sigjmp_buf back;
static int patience_ms = 1000;

static void too_long(int signal)
{
	siglongjmp(back, signal);
}

static void ignored(int signal)
{
}

/* Whether a store to the doorbell ends. */
static int rings(volatile uint8_t *at)
{
	struct itimerval t = { .it_value = { patience_ms / 1000,
					     patience_ms % 1000 * 1000 } };
	struct itimerval none = { 0 };
	int cut;

	signal(SIGALRM, too_long);
	signal(SIGSEGV, too_long);
	signal(SIGBUS, too_long);
	cut = sigsetjmp(back, 1);
	if (!cut) {
		setitimer(ITIMER_REAL, &t, NULL);
		*(volatile uint32_t *)(at + BELL) = ~0u;
	}
	setitimer(ITIMER_REAL, &none, NULL);
	return !cut;
}

static uint32_t map_context(int fd, uint32_t memory)
{
	struct rm_map m = {
		.client = rm.client, .device = DEVICE_HANDLE, .memory = memory,
		.length = BYTES, .fd = fd,
	};

	return ioctl(rm.ctl, ESC(ESC_MAP, sizeof(m)), &m) ? errno << 16 : m.status;
}

static uint8_t *map_bell(int fd)
{
	void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static uint8_t *bell(void)
{
	uint32_t handle = 0xbe110000;
	uint8_t *at;

	if (rm_make(&rm, SUBDEVICE_HANDLE, &handle, CLASS_DOORBELL, NULL))
		die("doorbell");
	if (map_context(rm.device, handle))
		die("map");
	at = map_bell(rm.device);
	if (!at)
		die("mmap");
	return at;
}

static int plainly(void)
{
	return rings(bell());
}

static int in_a_child(void)
{
	uint8_t *at = bell();
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(rings(at) ? 7 : 0);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

static int moved(void)
{
	uint8_t *at = bell();
	uint8_t *to = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	at = mremap(at, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	return at == MAP_FAILED ? -1 : rings(at);
}

/* The old place stays mapped too. */
static int doubled(void)
{
	uint8_t *at = bell();

	at = mremap(at, 0, BYTES, MREMAP_MAYMOVE);
	return at == MAP_FAILED ? -1 : rings(at);
}

static int with_a_hole(void)
{
	uint8_t *at = bell();

	return munmap(at + 4096, 4096) ? -1 : rings(at) | rings(at + 8192);
}

static int executable(void)
{
	uint8_t *at = bell();

	return mprotect(at, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC) ? -1 : rings(at);
}

static int protected_and_back(void)
{
	uint8_t *at = bell();

	if (mprotect(at, BYTES, PROT_NONE) || mprotect(at, BYTES, PROT_READ | PROT_WRITE))
		return -1;
	return rings(at);
}

/* By another system call of our own, and by one of another process. */
static int through_proc(void)
{
	uint8_t *at = bell();
	int fd = open("/proc/self/mem", O_RDWR);
	uint32_t value = ~0u;

	return pwrite(fd, &value, 4, (uintptr_t)at + BELL) == 4 ? 1 : -1;
}

static int by_process_vm_writev(void)
{
	uint32_t value = ~0u;
	struct iovec from = { &value, 4 }, to = { bell() + BELL, 4 };

	return process_vm_writev(getpid(), &from, 1, &to, 1, 0) == 4 ? 1 : -1;
}

/* A signal does not end it, and must not make it spin either. */
static int by_read(void)
{
	struct itimerval t = { .it_value = { 0, 100000 } };
	uint8_t *at = bell();
	int pipes[2];

	signal(SIGALRM, ignored);
	if (pipe(pipes) || write(pipes[1], "ring", 4) != 4)
		die("pipe");
	setitimer(ITIMER_REAL, &t, NULL);
	return read(pipes[0], at + BELL, 4) == 4 ? 1 : -1;
}

/* The driver chooses the handle; nobody has told the module which. */
static int unnamed(void)
{
	uint32_t handle = 0;
	uint8_t *at;

	if (rm_make(&rm, SUBDEVICE_HANDLE, &handle, CLASS_DOORBELL, NULL) ||
	    map_context(rm.device, handle))
		return -1;
	at = map_bell(rm.device);
	return at ? rings(at) : -1;
}

/* One more handle of it, whose class the module must know as well. */
static int by_a_second_handle(void)
{
	uint32_t handle = 0xbe110000;
	struct rm_dup d = {
		.client = rm.client, .parent = SUBDEVICE_HANDLE, .handle = handle + 1,
		.from_client = rm.client, .from_handle = handle,
	};
	uint8_t *at;

	if (rm_make(&rm, SUBDEVICE_HANDLE, &handle, CLASS_DOORBELL, NULL) ||
	    ioctl(rm.ctl, ESC(ESC_DUP, sizeof(d)), &d) || d.status ||
	    map_context(rm.device, handle + 1))
		return -1;
	at = map_bell(rm.device);
	return at ? rings(at) : -1;
}

/* Asked for one file, mapped through another number of it and through itself. */
static int through_another_number(void)
{
	uint32_t handle = 0xbe110000;
	uint8_t *at;

	if (rm_make(&rm, SUBDEVICE_HANDLE, &handle, CLASS_DOORBELL, NULL) ||
	    map_context(dup(rm.device), handle))
		return -1;
	at = map_bell(rm.device);
	return at ? rings(at) : -1;
}

/* Asked for twice, for memory first: the later answer must not set it free. */
static int after_memory(void)
{
	uint32_t handle = 0xbe110000, memory = 0xbe220000;
	int fd = rm_node("/dev", "nvidia0");
	uint8_t *at;

	if (rm.branch >= 450)
		ioctl(fd, ESC(ESC_REGISTER_FD, 4), &rm.ctl);
	if (rm_make(&rm, SUBDEVICE_HANDLE, &handle, CLASS_DOORBELL, NULL) ||
	    rm_memory(&rm, &memory, MIB) || map_context(fd, memory) ||
	    !map_bell(fd) || map_context(fd, handle))
		return -1;
	at = map_bell(fd);
	return at ? rings(at) : -1;
}

static const struct trick {
	const char *name;
	int (*act)(void);
} tricks[] = {
	{ "plain", plainly },
	{ "fork", in_a_child },
	{ "mremap", moved },
	{ "mremap-double", doubled },
	{ "munmap-part", with_a_hole },
	{ "mprotect-exec", executable },
	{ "mprotect", protected_and_back },
	{ "proc-mem", through_proc },
	{ "process_vm_writev", by_process_vm_writev },
	{ "read", by_read },
	{ "unnamed", unnamed },
	{ "dup", by_a_second_handle },
	{ "another-number", through_another_number },
	{ "after-memory", after_memory },
	{ }
};

/* What became of a process, which is given this long. */
static const char *fate(pid_t pid, int left)
{
	static const char *const words[] = { "refused", "waits", "rang" };
	int code;

	for (; left && !waitpid(pid, &code, WNOHANG); left--)
		usleep(1000);
	if (!left) {
		kill(pid, SIGKILL);
		waitpid(pid, &code, 0);
		return words[1];
	}
	return WIFEXITED(code) && WEXITSTATUS(code) >= 9 ?
	       words[WEXITSTATUS(code) - 9] : "died";
}

int main(int argc, char **argv)
{
	const struct trick *trick;

	if (argc > 2)
		patience_ms = atoi(argv[2]);
	for (trick = tricks; trick->name; trick++) {
		pid_t pid;

		if (argc > 1 && strcmp(argv[1], trick->name) && strcmp(argv[1], "all"))
			continue;
		pid = fork();
		if (!pid) {
			rm_open(&rm, "/dev");
			_exit(10 + trick->act());
		}
		printf("%s %s\n", trick->name,
		       fate(pid, trick->act == by_read ? 3 * patience_ms : 60000));
		fflush(stdout);
	}
	return 0;
}
