/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a container is told: the driver's replies with its own limit, its own
 * processes and its own GPUs. Works on kernel copies; no lock, no user memory.
 */
#ifndef CGPU_REPLIES_H
#define CGPU_REPLIES_H

#include <linux/types.h>
#include "abi/nvidia_rm.h"

#define CGPU_MAX_GPUS		NV_MAX_DEVICES

/**
 * struct cgpu_view - what one container may see of one GPU
 * @limit: bytes it may use there
 * @used: bytes it uses
 * @gpu_ids: the driver's numbers of its GPUs
 * @gpus: how many
 * @has_pid: whether a process number, as its callers see it, is its own
 * @arg: handed to @has_pid
 */
struct cgpu_view {
	u64 limit;
	u64 used;
	u32 gpu_ids[CGPU_MAX_GPUS];
	u32 gpus;
	bool (*has_pid)(const void *arg, u32 pid);
	const void *arg;
};

/**
 * struct cgpu_reply - how the reply to a control is changed
 * @cmd: the control
 * @size: its parameters' bytes, 0 = any
 * @change: changes a reply of that size in place
 */
struct cgpu_reply {
	u32 cmd;
	u32 size;
	void (*change)(void *reply, u32 size, const struct cgpu_view *v);
};

const struct cgpu_reply *cgpu_reply_find(u32 cmd, u32 size);
u32 cgpu_reply_fb(u32 index, u32 kib, const struct cgpu_view *v);
void cgpu_reply_cards(void *reply, u32 size, const struct cgpu_view *v);
bool cgpu_view_has_gpu(const struct cgpu_view *v, u32 gpu_id);

#endif
