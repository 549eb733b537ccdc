/* SPDX-License-Identifier: GPL-2.0-only */
/* GPUs, the shares that take turns on them, and what a turn is made of. */
#ifndef CGPU_TURNS_H
#define CGPU_TURNS_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/types.h>
#include <linux/wait.h>
#include "account.h"
#include "sched.h"

struct proc_dir_entry;
struct cgpu_inst;

/**
 * struct cgpu_gpu - one GPU of the driver
 * @minor: NVIDIA's minor number
 * @gpu_id: RM's number
 * @instance: RM's device instance
 * @total: bytes, as nvidia-smi of the branch shows them
 * @major: of its virtual devices
 * @lock: guards what follows; taken before any gate
 * @sched: the turns
 * @policy_written: an administrator has chosen the policy
 * @switched: a weighted instance has switched it to policy 2
 * @shares: instances on this GPU
 * @open: the share whose gate is open
 * @draining: the share whose work must leave the GPU before the next turn
 * @closed_ns: when its gate was closed
 * @thread: drives the turns
 * @wq: wakes it
 * @event: something changed since it looked
 * @dir: its folder in /proc/cgpu_km
 */
struct cgpu_gpu {
	int minor;
	u32 gpu_id;
	u32 instance;
	u64 total;
	int major;
	struct mutex lock;		/* the fields below */
	struct cgpu_sched sched;
	bool policy_written;
	bool switched;
	struct list_head shares;
	struct cgpu_share *open;
	struct cgpu_share *draining;
	u64 closed_ns;
	struct task_struct *thread;
	wait_queue_head_t wq;
	atomic_t event;
	struct proc_dir_entry *dir;
};

/**
 * struct cgpu_gate - the doorbells of one share
 * @sem: read: check @open and insert the PTE; write: change @open
 * @open: whether doorbells may be rung
 * @touched: a doorbell was mapped in since the gate opened
 * @touched_ns: when
 * @wq: threads that wait for the turn
 * @waiting: how many
 * @maps_lock: guards @maps
 * @maps: mapped doorbells
 */
struct cgpu_gate {
	struct rw_semaphore sem;
	bool open;
	bool touched;
	u64 touched_ns;
	wait_queue_head_t wq;
	atomic_t waiting;
	struct mutex maps_lock;		/* @maps */
	struct list_head maps;
};

/**
 * struct cgpu_work - what is known of a share's work on the GPU
 * @seen: it has channels whose progress can be read
 * @left: entries that the GPU has not finished
 * @last: channels that miss their last entry alone
 * @waiting: threads at the closed gate whose entry may be among @last
 * @done: entries that it has finished
 * @stamp: when it finished the last, by its own clock; 0 = not known
 */
struct cgpu_work {
	bool seen;
	u32 left;
	u32 last;
	int waiting;
	u32 done;
	u64 stamp;
};

/**
 * struct cgpu_share - one instance on one GPU
 * @inst: the instance
 * @gpu: the GPU
 * @account: memory; under inst->lock
 * @weight: slices a turn
 * @highprio: of the high-priority class
 * @ent: number in gpu->sched; under gpu->lock
 * @gate: its doorbells
 * @work_lock: guards @channels; a leaf
 * @channels: of its programs
 * @work: what was seen last; under gpu->lock, as all that follows
 * @looked_ns: when
 * @moved_ns: when it was seen to get on, or to begin
 * @clock: what is added to the GPU's clock to get ours
 * @began_ns: when the turn's work began
 * @waited: threads waited for the turn when it began
 * @rang: a doorbell was rung in the turn
 * @shut: the turn goes on, but enough is queued
 * @entry_ns: what an entry takes, 0 = not known
 * @turn_ns: time of work seen in the turn
 * @turn_done: entries finished in the turn
 * @done_ns: @turn_ns when the last of them was seen
 * @ended_ns: when the last of them ended, or the first was rung
 * @gaps_ns: time since then that is not charged
 * @idle_ns: time since then that is not in @busy_ns
 * @holes_ns: time since then in which its queue may have been empty
 * @solid: it cannot have been empty in the look that saw the last end
 * @longest_ns: what the longest entry took lately
 * @single_ns: the same of those that ended alone while more were queued: exactly
 * @rate_ns: what an entry takes while more are queued, 0 = not known
 * @solid_ns: time of the turn in which more were queued
 * @solid_done: entries finished in it
 * @busy_ns: time that its work was on the GPU
 * @link: in gpu->shares; under gpu->lock
 * @dir: its folder in /proc/cgpu_km
 */
struct cgpu_share {
	struct cgpu_inst *inst;
	struct cgpu_gpu *gpu;
	struct cgpu_account account;
	u32 weight;
	bool highprio;
	int ent;
	struct cgpu_gate gate;
	struct mutex work_lock;		/* @channels */
	struct list_head channels;
	struct cgpu_work work;
	u64 looked_ns;
	u64 moved_ns;
	s64 clock;
	u64 began_ns;
	bool waited;
	bool rang;
	bool shut;
	u64 entry_ns;
	u64 turn_ns;
	u32 turn_done;
	u64 done_ns;
	u64 ended_ns;
	u64 gaps_ns;
	u64 idle_ns;
	u64 holes_ns;
	bool solid;
	u64 longest_ns;
	u64 single_ns;
	u64 rate_ns;
	u64 solid_ns;
	u32 solid_done;
	u64 busy_ns;
	struct list_head link;
	struct proc_dir_entry *dir;
};

#endif
