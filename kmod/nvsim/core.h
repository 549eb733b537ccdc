/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The simulated driver's objects, and what the core gives its host.
 *
 * Lifetime: a client belongs to the control file that made it and dies with it;
 * an object dies with its parent, with what it depends on, or by RM_FREE. Memory
 * (struct nvsim_mem) is counted: handles, duplicates, exports, mappings in an
 * address space and channels hold it, and the frame buffer is given back with
 * the last of them. All of it is guarded by nvsim_lock().
 */
#ifndef NVSIM_CORE_H
#define NVSIM_CORE_H

#include "host.h"

#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/string.h>

#define NVSIM_MAX_GPUS		8
#define NVSIM_HASH		64
#define NVSIM_CONTROL_MINOR	255
#define NVSIM_MAJOR		195

/* What differs between cards. */
struct nvsim_card {
	const char *name;
	const char *product;
	u32 memory_mib;
	u16 arch, impl, device, subsystem;
	u16 sm, sms, warps, cores_per_sm;
	u16 gpfifo, compute, graphics, copy, usermode, usermode_base;
	u8 first_branch;	/* index of the first branch that knows it */
	bool rests;		/* idle at P8, at its lowest clocks; else always at P0 */
	u8 idle_watts, idle_celsius, load_celsius;
	u16 watts, least_watts;	/* limit, and how far it could be lowered */
	u16 idle_mhz, mhz, idle_memory_mhz, memory_mhz;
};

/* What differs between driver branches. */
struct nvsim_branch {
	u16 number;
	const char *version;
	u16 alloc_size;		/* NVOS64; 0: only the 32-byte form */
	u8 alloc32_status, alloc_status;
	u16 heap_size;		/* NVOS32 */
	u8 heap_shift;		/* of everything behind its flags */
	u8 card_info_size;	/* of one entry */
	u8 event_index, event_data;	/* in the parameters of an event */
	u8 error_index;		/* of a subdevice's RC_ERROR notifier */
	u8 power_draw, power_limits;	/* in the replies of power sensors and policies */
	u8 export_fd;		/* in EXPORT_OBJECT_TO_FD */
	u16 uvm_map_size;
	u16 uvm_map_client;	/* hClient; hMemory and status follow */
	u8 uvm_map_status;	/* distance of status from hClient */
	u8 uvm_unmap_status;
	u16 numa_info_size;
	u16 os_event_size;
	u16 map_dma_size;	/* NVOS46; its address and status end it */
	u16 unmap_dma_size;	/* NVOS47; its status is 8 before the end */
	u16 pid_stride;
	u8 register_fd;		/* REGISTER_FD exists */
	u8 genuine_file;	/* "accessible" asks for the driver's own f_op */
	u8 heap_tax;		/* total = heap + tax; else total = RAM */
};

struct nvsim_mem {
	u32 refs;
	u32 class;
	u64 bytes;		/* rounded size */
	u64 charged;		/* of the frame buffer */
	struct nvsim_gpu *gpu;
	struct nvsim_backing *backing;
};

struct nvsim_range {
	u64 va, bytes, offset;
	struct nvsim_mem *mem;	/* NULL: reserved, nothing mapped yet */
};

/* An address space: ranges in the order of their addresses. */
struct nvsim_space {
	struct nvsim_range *ranges;
	u32 count, room, last;
};

struct nvsim_client {
	struct list_head node;		/* nvsim.clients */
	struct list_head objects;
	struct hlist_head hash[NVSIM_HASH];
	struct nvsim_file *owner;
	struct nvsim_uvm *uvm;		/* where its channels resolve */
	struct nvsim_space space;	/* MAP_MEMORY_DMA */
	void *task;
	u32 handle, count, next_handle;
};

struct nvsim_object {
	struct list_head node;		/* client->objects */
	struct hlist_node hash;
	struct nvsim_client *client;
	struct nvsim_gpu *gpu;
	struct nvsim_mem *mem;
	bool duplicate;			/* another object's memory */
	struct nvsim_channel *channel;
	struct nvsim_tsg *tsg;
	struct list_head doorbell;	/* gpu->doorbells */
	struct list_head event;		/* nvsim.events */
	struct nvsim_file *event_file;
	u32 event_index, event_action;
	struct nvsim_mem *notifiers;	/* a subdevice's, in memory (418) */
	u32 handle, parent, class;
	u32 depends[2];			/* dies with these handles too */
};

struct nvsim_uvm {
	struct list_head node;		/* nvsim.uvms */
	struct nvsim_space space;
};

/* What an event tells whoever fetches it. */
struct nvsim_notice {
	u32 object, index, info32;
	u16 info16;
};

#define NVSIM_NOTICES	16

struct nvsim_file {
	struct list_head node;		/* nvsim.files */
	u32 minor;
	struct nvsim_gpu *gpu;		/* NULL: the control file */
	struct nvsim_file *control;	/* REGISTER_FD, holds it */
	struct nvsim_mem *map;		/* the one mmap context */
	u64 map_offset, map_bytes;
	bool map_used;
	struct nvsim_mem *exported;
	u32 exported_gpu;
	bool event_pending;
	u32 event_client, event_key;	/* ALLOC_OS_EVENT */
	struct nvsim_notice notices[NVSIM_NOTICES];	/* a ring */
	u32 notice_first, notice_count;
};

/* A kernel that a channel has launched: how long, and whom to tell. */
struct nvsim_release {
	u64 va, payload;
	u8 words;		/* 1, or 4 with a timestamp */
	u8 reduce;		/* 0, or 8 | operation */
};

struct nvsim_kernel {
	u64 ready_ns, left_ns;
	struct nvsim_release release[3];
	u8 releases;
	bool pending;
};

struct nvsim_channel {
	struct list_head node;		/* gpu->channels */
	struct list_head ready;		/* gpu->ready or gpu->stalled */
	struct list_head queued;	/* tsg->queue */
	struct nvsim_object *object;
	struct nvsim_client *client;
	struct nvsim_gpu *gpu;
	struct nvsim_tsg *tsg;
	struct nvsim_mem *userd, *notifier;
	u64 userd_offset, gpfifo;
	u32 entries, id, get, put, engine;
	bool own_userd, own_tsg, dead, disabled, stalled;

	/* pushbuffer cursor */
	bool in_buffer;
	u64 buffer;
	u32 words, word;
	u32 left, method;
	u8 subchannel, mode;

	u16 class[8];
	u32 *registers[8];
	u64 inline_va;
	u32 inline_left, inline_at;

	struct nvsim_kernel kernel;
	u64 time_ns;			/* how far it has executed */
	u64 busy_ns, launches, entries_done;
};

struct nvsim_tsg {
	struct list_head node;		/* gr->tsgs */
	struct list_head ready;		/* gr->ready */
	struct list_head queue;		/* channels with a pending kernel */
	struct nvsim_gpu *gpu;
	void *task;
	u32 handle;
	u64 timeslice_ns, busy_ns;
	bool disabled;
};

/* The graphics engine of a GPU, shared by all its TSGs. */
struct nvsim_gr {
	struct list_head tsgs, ready;
	struct nvsim_tsg *owner;
	u64 time_ns, slice_end_ns, busy_ns;
	u64 window;			/* busy in it, and in the one before */
	u64 window_ns, before_ns;
};

struct nvsim_gpu {
	const struct nvsim_card *card;
	u32 minor, id, bus;
	u64 total, used;
	bool lost;		/* fell off the bus (Xid 79): nothing answers */
	u8 uuid[16];
	struct list_head channels, ready, stalled, doorbells;
	struct nvsim_gr gr;
};

/* An error of a card, as it is remembered. */
struct nvsim_error {
	u32 gpu, xid;
	u64 time_ns;
};

#define NVSIM_ERRORS	16

struct nvsim_state {
	const struct nvsim_branch *branch;
	const char *version;
	struct nvsim_gpu gpus[NVSIM_MAX_GPUS];
	u32 gpu_count;
	struct list_head clients, uvms, files, events;
	u32 next_client, next_channel;
	u64 kernel_ns;
	bool learn;		/* log every launch */
	u64 ioctls, faults;
	struct nvsim_error errors[NVSIM_ERRORS];	/* the latest, a ring */
	u32 error_count;
	u64 progress;		/* grows whenever the engine does something */
};

extern struct nvsim_state nvsim;
extern const struct nvsim_card nvsim_cards[];
extern const struct nvsim_branch nvsim_branches[];

/* Setting up; 0 or -EINVAL with a message in the log. */
int nvsim_setup(u32 branch, const char *version, const char *const *cards,
		u32 card_count, const u32 *total_mib, u32 mib_count);
void nvsim_teardown(void);

/* Files: the host embeds struct nvsim_file and calls these without the lock. */
int nvsim_file_open(struct nvsim_file *file, u32 minor);
void nvsim_file_close(struct nvsim_file *file);
long nvsim_ioctl(struct nvsim_file *file, u32 command, u64 argument);
/* The context for mmap, with a reference to its backing; or NULL. */
struct nvsim_backing *nvsim_file_mmap(struct nvsim_file *file, u64 bytes,
				      u64 *offset);
/* Whether polling sees the file readable; consumes what has no data. */
bool nvsim_file_take_event(struct nvsim_file *file);

void nvsim_uvm_open(struct nvsim_uvm *uvm);
void nvsim_uvm_close(struct nvsim_uvm *uvm);
long nvsim_uvm_ioctl(struct nvsim_uvm *uvm, u32 command, u64 argument);
/* A mapping of the UVM file at its own address; takes over @backing. */
int nvsim_uvm_mmap(struct nvsim_uvm *uvm, u64 va, u64 bytes,
		   struct nvsim_backing *backing);

/* The end of such a mapping. */
void nvsim_uvm_munmap(struct nvsim_uvm *uvm, u64 va, u64 bytes);

/*
 * Runs what can run. Lock held. Returns the nanosecond at which the engine has
 * more to do by itself, 0 when it has more to do at once, ~0 when idle.
 */
u64 nvsim_engine_run(void);
bool nvsim_engine_open(void);
bool nvsim_engine_rung(void);

/* Injects an Xid; @pid 0 = every process. False when it concerns nobody. */
bool nvsim_inject(u32 gpu, u32 xid, u32 pid);
/* A card that fell off the bus is back. False when there is no such card. */
bool nvsim_restore(u32 gpu);

/* Logs a number that no table names, at its first use. Lock held. */
void nvsim_unknown(const char *kind, u32 number, u32 size);

/* Texts of the proc files; @to is for nvsim_host_print(). */
void nvsim_ledger(void *to);
void nvsim_proc_version(void *to);
void nvsim_proc_params(void *to);
void nvsim_proc_information(void *to, const struct nvsim_gpu *gpu);

#endif
