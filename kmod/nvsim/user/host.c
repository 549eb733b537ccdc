// SPDX-License-Identifier: GPL-2.0-only
/* What the core asks of its host: memory, files, time, the engine's thread. */
#define _GNU_SOURCE
#include "user.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPIN_ROUNDS	20
#define SHORT_NAP_NS	50000
#define LONG_NAP_NS	1000000
#define LONG_AFTER	400	/* short naps */

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct user_file *files[USER_FILES];
static FILE *log_file;

void nvsim_lock(void)
{
	pthread_mutex_lock(&lock);
}

void nvsim_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

u64 nvsim_host_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

int nvsim_host_copy_in(void *to, u64 from, size_t bytes)
{
	memcpy(to, (const void *)from, bytes);
	return 0;
}

int nvsim_host_copy_out(u64 to, const void *from, size_t bytes)
{
	memcpy((void *)to, from, bytes);
	return 0;
}

static struct nvsim_backing *backing_make(int memory, char *at, u64 bytes)
{
	struct nvsim_backing *backing = calloc(1, sizeof(*backing));

	backing->refs = 1;
	backing->memory = memory;
	backing->at = at;
	backing->bytes = bytes;
	return backing;
}

struct nvsim_backing *nvsim_host_backing_new(u64 bytes, enum nvsim_backing_kind kind)
{
	int memory = syscall(SYS_memfd_create, "nvsim", MFD_CLOEXEC);
	void *at;

	if (memory < 0 || syscall(SYS_ftruncate, memory, bytes))
		return NULL;
	at = (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_NORESERVE, memory, 0);
	return at == MAP_FAILED ? NULL : backing_make(memory, at, bytes);
}

struct nvsim_backing *nvsim_host_backing_pin(u64 address, u64 bytes)
{
	return backing_make(-1, (char *)address, bytes);
}

void nvsim_host_backing_get(struct nvsim_backing *backing)
{
	backing->refs++;
}

void nvsim_host_backing_put(struct nvsim_backing *backing)
{
	if (--backing->refs)
		return;
	if (backing->memory >= 0) {
		syscall(SYS_munmap, backing->at, backing->bytes);
		syscall(SYS_close, backing->memory);
	}
	free(backing);
}

void *nvsim_host_backing_at(struct nvsim_backing *backing, u64 offset, u64 *left)
{
	if (offset >= backing->bytes)
		return NULL;
	*left = backing->bytes - offset;
	return backing->at + offset;
}

struct user_file *user_file(int fd)
{
	return fd >= 0 && fd < USER_FILES ? files[fd] : NULL;
}

void user_file_set(int fd, struct user_file *file)
{
	files[fd] = file;
}

struct nvsim_file *nvsim_host_file_get(int fd, bool control)
{
	struct user_file *file = user_file(fd);

	if (!file || file->kind != (control ? NODE_CONTROL : NODE_DEVICE))
		return NULL;
	file->refs++;
	return &file->file;
}

void nvsim_host_file_put(struct nvsim_file *file)
{
	struct user_file *user = container_of(file, struct user_file, file);

	if (--user->refs)
		return;
	nvsim_file_close(file);
	free(user);
}

void nvsim_host_file_wake(struct nvsim_file *file)
{
	struct user_file *user = container_of(file, struct user_file, file);
	u64 one = 1;

	syscall(SYS_write, user->wake, &one, sizeof(one));
}

bool nvsim_host_accessible(struct nvsim_gpu *gpu)
{
	int fd;

	for (fd = 0; fd < USER_FILES; fd++)
		if (files[fd] && files[fd]->kind == NODE_DEVICE &&
		    files[fd]->file.gpu == gpu)
			return true;
	return false;
}

void *nvsim_host_task_get(void)
{
	return (void *)(size_t)getpid();
}

void nvsim_host_task_put(void *task)
{
}

u32 nvsim_host_task_number(void *task)
{
	return (u32)(size_t)task;
}

u32 nvsim_host_task_global(void *task)
{
	return (u32)(size_t)task;
}

void nvsim_host_kick(void)
{
}

void nvsim_host_log(const char *format, ...)
{
	va_list arguments;

	if (!log_file)
		return;
	va_start(arguments, format);
	vfprintf(log_file, format, arguments);
	va_end(arguments);
	fflush(log_file);
}

/* How long to sleep after so many idle rounds. */
static void nap(unsigned int idle, u64 next)
{
	u64 ns = idle < LONG_AFTER ? SHORT_NAP_NS : LONG_NAP_NS;
	u64 now = nvsim_host_now();
	struct timespec time = { 0 };

	if (idle < SPIN_ROUNDS) {
		sched_yield();
		return;
	}
	if (next > now && next - now < ns)
		ns = next - now;
	time.tv_nsec = ns;
	nanosleep(&time, NULL);
}

static void *engine(void *unused)
{
	unsigned int idle = 0;
	u64 last = 0;

	for (;;) {
		u64 next, done;

		nvsim_lock();
		next = nvsim_engine_run();
		done = nvsim.progress;
		nvsim_unlock();
		idle = done != last || !next ? 0 : idle + 1;
		last = done;
		nap(idle, next);
	}
	return NULL;
}

void user_engine_start(void)
{
	static bool started;
	pthread_t thread;

	if (started || !nvsim_engine_open())
		return;
	started = true;
	pthread_create(&thread, NULL, engine, NULL);
}

static u32 split(char *text, const char **parts, u32 room)
{
	u32 count = 0;
	char *part;

	for (part = strtok(text, ","); part && count < room; part = strtok(NULL, ","))
		parts[count++] = part;
	return count;
}

static const char *setting(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

void user_start(void)
{
	static bool started;
	const char *cards[2 * NVSIM_MAX_GPUS], *mib[NVSIM_MAX_GPUS];
	u32 totals[NVSIM_MAX_GPUS], count, mibs, i;

	if (started)
		return;
	started = true;
	if (getenv("NVSIM_LOG"))
		log_file = fopen(getenv("NVSIM_LOG"), "ae");
	count = split(strdup(setting("NVSIM_CARDS", "T4")), cards,
		      2 * NVSIM_MAX_GPUS);
	mibs = split(strdup(setting("NVSIM_TOTAL_MIB", "0")), mib, NVSIM_MAX_GPUS);
	for (i = 0; i < mibs; i++)
		totals[i] = strtoul(mib[i], NULL, 0);
	if (nvsim_setup(strtoul(setting("NVSIM_BRANCH", "535"), NULL, 0),
			getenv("NVSIM_VERSION"), cards, count, totals, mibs)) {
		fprintf(stderr, "nvsim: this machine cannot be played\n");
		_exit(97);
	}
	nvsim.learn = !!getenv("NVSIM_LEARN");
	nvsim.kernel_ns = strtoull(setting("NVSIM_KERNEL_NS", "0"), NULL, 0);
}
