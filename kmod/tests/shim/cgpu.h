/* SPDX-License-Identifier: GPL-2.0-only */
/* What turns.c and watch.c use of the kernel and of the module, on the host; it stands for cgpu.h. */
#ifndef CGPU_CGPU_H
#define CGPU_CGPU_H

#include "host.h"
#include "linux/list.h"

#define NSEC_PER_USEC		1000ULL
#define NSEC_PER_MSEC		1000000ULL
#define lockdep_assert_held(lock) ((void)(lock))
#define smp_load_acquire(p)	(*(p))
#define clamp(v, lo, hi)	clamp_t(__typeof__(v), v, lo, hi)

typedef struct { int counter; } atomic_t;
typedef struct { int unused; } wait_queue_head_t;
struct mutex { int unused; };
struct rw_semaphore { int unused; };

static inline int atomic_read(const atomic_t *a)
{
	return a->counter;
}

static inline bool list_is_singular(const struct list_head *h)
{
	return !list_empty(h) && h->next == h->prev;
}

u64 ktime_get_ns(void);

static inline u64 div_u64(u64 a, u32 b)
{
	return a / b;
}

#include "../../turns.h"

void cgpu_gate_set(struct cgpu_share *share, bool open);
void cgpu_work_look(struct cgpu_share *share, bool closed, struct cgpu_work *work);
void cgpu_watch_begin(struct cgpu_share *share, u64 now);
void cgpu_watch(struct cgpu_share *share, bool closed);
void cgpu_watch_end(struct cgpu_share *share);
u64 cgpu_watch_gone(const struct cgpu_share *share, u64 before);
u64 cgpu_watch_entry_ns(const struct cgpu_share *share);
bool cgpu_watch_enough(const struct cgpu_share *share, u64 most);
u64 cgpu_turns_look(struct cgpu_gpu *gpu);

#endif
