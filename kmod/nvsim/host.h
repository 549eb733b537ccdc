/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a host (the kernel module, or the user-space driver of the tests)
 * must give the portable core. Unless said otherwise a function may be called
 * with nvsim_lock() held.
 */
#ifndef NVSIM_HOST_H
#define NVSIM_HOST_H

#include <linux/types.h>

struct nvsim_backing;
struct nvsim_file;
struct nvsim_gpu;

enum nvsim_backing_kind {
	NVSIM_SPARSE,		/* pages appear when touched */
	NVSIM_CONTIGUOUS,	/* one physical range: register pages */
};

/* The one lock over all core state. */
void nvsim_lock(void);
void nvsim_unlock(void);

/* Nanoseconds of the clock that timestamps are made of. */
u64 nvsim_host_now(void);

/* User memory; never called with the lock held. 0 or -EFAULT. */
int nvsim_host_copy_in(void *to, u64 from, size_t bytes);
int nvsim_host_copy_out(u64 to, const void *from, size_t bytes);

/* Bytes that both the processor and the engine reach. NULL: no memory. */
struct nvsim_backing *nvsim_host_backing_new(u64 bytes,
					     enum nvsim_backing_kind kind);
/* The caller's own pages; never called with the lock held. */
struct nvsim_backing *nvsim_host_backing_pin(u64 address, u64 bytes);
void nvsim_host_backing_get(struct nvsim_backing *backing);
void nvsim_host_backing_put(struct nvsim_backing *backing);
/* Pointer to @offset and how many bytes follow it in one piece, or NULL. */
void *nvsim_host_backing_at(struct nvsim_backing *backing, u64 offset,
			    u64 *left);

/*
 * An open NVIDIA file of the caller by number, with a reference; else NULL. The
 * last put may be made with the lock held: the file's end waits until it is free.
 */
struct nvsim_file *nvsim_host_file_get(int fd, bool control);
void nvsim_host_file_put(struct nvsim_file *file);
/* file->event_pending was set: whoever polls the file wakes. */
void nvsim_host_file_wake(struct nvsim_file *file);

/* The driver's search for a file of @gpu in the caller's table. */
bool nvsim_host_accessible(struct nvsim_gpu *gpu);

/* The calling process, held until put; its number as the caller sees it. */
void *nvsim_host_task_get(void);
void nvsim_host_task_put(void *task);
u32 nvsim_host_task_number(void *task);
/* Its number in the first namespace: what the ledger shows. */
u32 nvsim_host_task_global(void *task);

/* Something was submitted or enabled: run the engine soon. */
void nvsim_host_kick(void);

__printf(1, 2) void nvsim_host_log(const char *format, ...);

/* Into a file of /proc: the host's own kind of it. */
__printf(2, 3) void nvsim_host_print(void *to, const char *format, ...);

#endif
