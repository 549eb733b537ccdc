// SPDX-License-Identifier: GPL-2.0-only
/* The C library's functions on files, in front of the real ones. */
#define _GNU_SOURCE
#include "user.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum node_kind node_of(const char *path, unsigned int *minor)
{
	*minor = 0;
	if (!path || strncmp(path, "/dev/nvidia", 11))
		return NODE_NONE;
	if (!strcmp(path + 11, "ctl")) {
		*minor = NVSIM_CONTROL_MINOR;
		return NODE_CONTROL;
	}
	if (!strcmp(path + 11, "-uvm"))
		return NODE_UVM;
	if (!strncmp(path + 11, "-caps/nvidia-cap", 16)) {
		*minor = atoi(path + 27);
		return NODE_CAPS;
	}
	if (path[11] < '0' || path[11] > '9')
		return NODE_NONE;
	*minor = atoi(path + 11);
	user_start();
	return *minor < nvsim.gpu_count ? NODE_DEVICE : NODE_NONE;
}

static int open_node(enum node_kind kind, unsigned int minor, int flags)
{
	struct user_file *file = calloc(1, sizeof(*file));
	int fd = syscall(SYS_eventfd2, 0, EFD_NONBLOCK | (flags & O_CLOEXEC));

	user_start();
	if (fd < 0 || fd >= USER_FILES) {
		free(file);
		errno = EMFILE;
		return -1;
	}
	file->kind = kind;
	file->refs = 1;
	file->wake = fd;
	if (kind == NODE_UVM)
		nvsim_uvm_open(&file->uvm);
	else if (kind != NODE_CAPS)
		nvsim_file_open(&file->file, minor);
	user_file_set(fd, file);
	return fd;
}

static int open_any(int folder, const char *path, int flags, int mode)
{
	unsigned int minor;
	enum node_kind kind = node_of(path, &minor);
	char redirected[512];

	if (kind)
		return open_node(kind, minor, flags);
	if (path[0] == '/')
		path = proc_redirect(path, redirected, sizeof(redirected));
	return syscall(SYS_openat, folder, path, flags, mode);
}

static int mode_of(int flags, va_list arguments)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list arguments;
	int mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return open_any(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
	__alias("open");

int openat(int folder, const char *path, int flags, ...)
{
	va_list arguments;
	int mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return open_any(folder, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
	static FILE *(*real)(const char *path, const char *mode);
	char redirected[512];

	if (!real)
		real = dlsym(RTLD_NEXT, "fopen");
	return real(proc_redirect(path, redirected, sizeof(redirected)), mode);
}

FILE *fopen64(const char *path, const char *mode)
{
	return fopen(path, mode);
}

int access(const char *path, int mode)
{
	unsigned int minor;
	char redirected[512];

	if (node_of(path, &minor))
		return 0;
	return syscall(SYS_access, proc_redirect(path, redirected, sizeof(redirected)),
		       mode);
}

static void fill_stat(enum node_kind kind, unsigned int minor, struct stat *to)
{
	memset(to, 0, sizeof(*to));
	to->st_mode = S_IFCHR | 0666;
	to->st_nlink = 1;
	to->st_rdev = makedev(kind == NODE_UVM ? UVM_MAJOR :
			      kind == NODE_CAPS ? CAPS_MAJOR : NVSIM_MAJOR, minor);
}

static int stat_any(const char *path, struct stat *to, int flags)
{
	unsigned int minor;
	enum node_kind kind = node_of(path, &minor);
	char redirected[512];

	if (kind) {
		fill_stat(kind, minor, to);
		return 0;
	}
	path = proc_redirect(path, redirected, sizeof(redirected));
	return syscall(SYS_newfstatat, AT_FDCWD, path, to, flags);
}

int stat(const char *path, struct stat *to)
{
	return stat_any(path, to, 0);
}

int lstat(const char *path, struct stat *to)
{
	return stat_any(path, to, AT_SYMLINK_NOFOLLOW);
}

int fstat(int fd, struct stat *to)
{
	struct user_file *file = user_file(fd);

	if (!file)
		return syscall(SYS_fstat, fd, to);
	fill_stat(file->kind, file->file.minor, to);
	return 0;
}

int stat64(const char *path, struct stat64 *to)
{
	return stat(path, (struct stat *)to);
}

int __xstat(int version, const char *path, struct stat *to)
{
	return stat(path, to);
}

int __xstat64(int version, const char *path, struct stat64 *to)
{
	return stat(path, (struct stat *)to);
}

int __lxstat(int version, const char *path, struct stat *to)
{
	return lstat(path, to);
}

int __fxstat(int version, int fd, struct stat *to)
{
	return fstat(fd, to);
}

int __fxstat64(int version, int fd, struct stat64 *to)
{
	return fstat(fd, (struct stat *)to);
}

int close(int fd)
{
	struct user_file *file = user_file(fd);

	if (file) {
		user_file_set(fd, NULL);
		if (file->kind == NODE_UVM)
			nvsim_uvm_close(&file->uvm);
		else if (file->kind != NODE_CAPS)
			nvsim_host_file_put(&file->file);
	}
	return syscall(SYS_close, fd);
}

/* NVSIM_TRACE: one line an ioctl, with the words of its argument afterwards. */
static void trace(const struct user_file *file, unsigned long command, const u32 *words)
{
	static int wanted = -1;
	u32 i, count = file->kind == NODE_UVM ? 4 : (command >> 16 & 0x3fff) / 4;

	if (wanted < 0)
		wanted = !!getenv("NVSIM_TRACE");
	if (!wanted || !words)
		return;
	nvsim_host_log("%s %lu:", file->kind == NODE_UVM ? "uvm" : "rm",
		       file->kind == NODE_UVM ? command : command & 0xff);
	for (i = 0; i < (count < 16 ? count : 16); i++)
		nvsim_host_log(" %x", words[i]);
	nvsim_host_log("\n");
}

int ioctl(int fd, unsigned long command, ...)
{
	struct user_file *file = user_file(fd);
	va_list arguments;
	long result;
	void *at;

	va_start(arguments, command);
	at = va_arg(arguments, void *);
	va_end(arguments);
	if (!file)
		return syscall(SYS_ioctl, fd, command, at);
	if (file->kind == NODE_UVM)
		result = nvsim_uvm_ioctl(&file->uvm, command, (u64)at);
	else
		result = nvsim_ioctl(&file->file, command, (u64)at);
	trace(file, command, at);
	nvsim_lock();
	user_engine_start();
	nvsim_unlock();
	if (result >= 0)
		return result;
	errno = -result;
	return -1;
}

static void *map_raw(void *at, size_t bytes, int access, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, at, bytes, access, flags, fd, offset);
}

static void *map_managed(struct user_file *file, void *at, size_t bytes, int access, int flags)
{
	void *mapped = map_raw(at, bytes, access,
			       (flags & ~MAP_PRIVATE) | MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
			       -1, 0);

	if (mapped != MAP_FAILED)
		nvsim_uvm_mmap(&file->uvm, (u64)mapped, bytes,
			       nvsim_host_backing_pin((u64)mapped, bytes));
	return mapped;
}

static void *map_context(struct user_file *file, void *at, size_t bytes, int access, int flags)
{
	struct nvsim_backing *backing;
	u64 offset;
	void *mapped;

	backing = nvsim_file_mmap(&file->file, bytes, &offset);
	if (!backing) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	mapped = map_raw(at, bytes, access | PROT_READ, flags, backing->memory, offset);
	nvsim_lock();
	nvsim_host_backing_put(backing);
	nvsim_unlock();
	return mapped;
}

void *mmap(void *at, size_t bytes, int access, int flags, int fd, off_t offset)
{
	struct user_file *file = user_file(fd);

	if (!file)
		return map_raw(at, bytes, access, flags, fd, offset);
	if (file->kind == NODE_UVM)
		return map_managed(file, at, bytes, access, flags);
	return map_context(file, at, bytes, access, flags);
}

void *mmap64(void *at, size_t bytes, int access, int flags, int fd, off_t offset)
	__alias("mmap");

/*
 * Forgets the wake-up of a file that was found readable. An event without data is
 * consumed by that; while there is data to fetch the file stays readable.
 */
static bool still_readable(struct user_file *file, int fd)
{
	u64 value;

	syscall(SYS_read, fd, &value, sizeof(value));
	if (!nvsim_file_take_event(&file->file))
		return false;
	if (file->file.notice_count)
		nvsim_host_file_wake(&file->file);
	return true;
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	static int (*real)(struct pollfd *fds, nfds_t count, int timeout);
	nfds_t i;
	int seen, ready;

	if (!real)
		real = dlsym(RTLD_NEXT, "poll");
	do {
		seen = ready = real(fds, count, timeout);
		for (i = 0; seen > 0 && i < count; i++) {
			struct user_file *file = user_file(fds[i].fd);

			if (!file || !(fds[i].revents & POLLIN) ||
			    still_readable(file, fds[i].fd))
				continue;
			fds[i].revents = 0;
			ready--;
		}
	} while (seen > 0 && !ready);
	return ready;
}

int mknod(const char *path, mode_t mode, dev_t device)
{
	unsigned int minor;

	return node_of(path, &minor) ? 0 : syscall(SYS_mknod, path, mode, device);
}

int chmod(const char *path, mode_t mode)
{
	unsigned int minor;

	return node_of(path, &minor) ? 0 : syscall(SYS_chmod, path, mode);
}

int chown(const char *path, uid_t user, gid_t group)
{
	unsigned int minor;

	return node_of(path, &minor) ? 0 : syscall(SYS_chown, path, user, group);
}
