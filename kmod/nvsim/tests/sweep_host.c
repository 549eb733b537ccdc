// SPDX-License-Identifier: GPL-2.0-only
/* The host of the sweep: an arena as the caller's memory, pages that are blocks of their own, and counts of what is held. */
#include "sweep.h"

#include <stdarg.h>
#include <stdio.h>

struct nvsim_backing {
	int refs;
	u64 bytes, first;
	u8 **pages;
};

u8 *arena;
struct nvsim_file files[FILES];
struct nvsim_uvm uvms[UVMS];
int backings, tasks, file_refs;

void nvsim_lock(void)
{
}

void nvsim_unlock(void)
{
}

u64 nvsim_host_now(void)
{
	static u64 now = 1;

	return now += 50000;
}

static bool in_arena(u64 at, u64 bytes)
{
	return at >= (u64)arena && at - (u64)arena <= ARENA &&
	       bytes <= ARENA - (at - (u64)arena);
}

int nvsim_host_copy_in(void *to, u64 from, size_t bytes)
{
	if (!in_arena(from, bytes))
		return -14;
	memcpy(to, (const void *)from, bytes);
	return 0;
}

int nvsim_host_copy_out(u64 to, const void *from, size_t bytes)
{
	if (!in_arena(to, bytes))
		return -14;
	memcpy((void *)to, from, bytes);
	return 0;
}

struct nvsim_backing *backing_of(u64 bytes, u64 first)
{
	struct nvsim_backing *backing = calloc(1, sizeof(*backing));

	backing->refs = 1;
	backing->bytes = bytes;
	backing->first = first;
	backing->pages = calloc((first + bytes) / PAGE + 1, sizeof(*backing->pages));
	backings++;
	return backing;
}

struct nvsim_backing *nvsim_host_backing_new(u64 bytes, enum nvsim_backing_kind kind)
{
	return bytes > 64ull << 20 ? NULL : backing_of(bytes, 0);
}

struct nvsim_backing *nvsim_host_backing_pin(u64 address, u64 bytes)
{
	return bytes && in_arena(address, bytes) ? backing_of(bytes, address % PAGE) : NULL;
}

void nvsim_host_backing_get(struct nvsim_backing *backing)
{
	backing->refs++;
}

void nvsim_host_backing_put(struct nvsim_backing *backing)
{
	u64 i;

	if (--backing->refs)
		return;
	for (i = 0; i <= (backing->first + backing->bytes) / PAGE; i++)
		free(backing->pages[i]);
	free(backing->pages);
	free(backing);
	backings--;
}

void *nvsim_host_backing_at(struct nvsim_backing *backing, u64 offset, u64 *left)
{
	u64 at = offset + backing->first;
	u8 **page;

	if (offset >= backing->bytes)
		return NULL;
	page = &backing->pages[at / PAGE];
	if (!*page)
		*page = calloc(1, PAGE);
	*left = min((u64)(PAGE - at % PAGE), backing->bytes - offset);
	return *page + at % PAGE;
}

struct nvsim_file *nvsim_host_file_get(int fd, bool control)
{
	if (fd < 0 || fd >= FILES || control != (fd < CONTROLS))
		return NULL;
	file_refs++;
	return &files[fd];
}

void nvsim_host_file_put(struct nvsim_file *file)
{
	file_refs--;
}

void nvsim_host_file_wake(struct nvsim_file *file)
{
	(void)READ_ONCE(file->minor);	/* a freed file would be seen here */
}

bool nvsim_host_accessible(struct nvsim_gpu *gpu)
{
	return true;
}

void *nvsim_host_task_get(void)
{
	tasks++;
	return &tasks;
}

void nvsim_host_task_put(void *task)
{
	tasks--;
}

u32 nvsim_host_task_number(void *task)
{
	return 1;
}

u32 nvsim_host_task_global(void *task)
{
	return 1;
}

void nvsim_host_kick(void)
{
}

void nvsim_host_log(const char *format, ...)
{
	char line[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
}

void nvsim_host_print(void *to, const char *format, ...)
{
}
