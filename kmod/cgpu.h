/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The objects of the module and who ends whom:
 *
 *   file -> mount -> superblock -> instance   (a reference each)
 *   mapping -> file, instance                 (gate.c)
 *   instance -> share on each of its GPUs
 *   registry -> instance, until "destroy"
 *
 * Locks, outermost first: cgpu_registry_lock, file->lock (held across the
 * driver), mmap_lock, gate->sem, gate->maps_lock, i_mmap_rwsem, page tables.
 * gpu->lock is taken by the scheduler's thread around gate operations and
 * never below a file or gate lock; inst->lock is a leaf.
 */
#ifndef CGPU_CGPU_H
#define CGPU_CGPU_H

#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/types.h>
#include <linux/wait.h>
#include "abi/nvidia_rm.h"
#include "objects.h"
#include "replies.h"
#include "turns.h"

#define CGPU_VERSION		"1.0.0"
#define CGPU_ID_MAX		12
#define CGPU_MINORS		256	/* instances, device numbers reserved */
#define CGPU_NODE_UVM		256	/* beside minors 0..31 and 255 */
#define CGPU_NESTED_AT		1024	/* nested parameters in the argument page */

struct seq_file;

/**
 * struct cgpu_inst - one container
 * @ref: held by the registry, a superblock, every mapping and sleeper
 * @link: in the registry
 * @id: its name
 * @number: minor of its virtual devices
 * @share: by GPU minor
 * @sb: superblock that shows its nodes; under the registry's lock
 * @lock: guards what follows
 * @objs: the driver's objects
 * @files: open files
 * @poisoned: it tampered with the argument page
 * @next_handle: for allocations that let the driver choose
 */
struct cgpu_inst {
	struct kref ref;
	struct list_head link;
	char id[CGPU_ID_MAX + 1];
	int number;
	struct cgpu_share *share[NV_MAX_DEVICES];
	struct super_block *sb;
	struct mutex lock;		/* the fields below; a leaf */
	struct cgpu_objs objs;
	struct list_head files;
	bool poisoned;
	u32 next_handle;
};

/**
 * struct cgpu_node - one device node of an instance
 * @inst: the instance, which outlives it
 * @minor: GPU minor, NV_MINOR_CTL or CGPU_NODE_UVM
 * @shown: the number that stat() tells, and that the driver sees
 * @shadow: inode with that number, for f_inode
 * @genuine: the driver's own file
 * @fops: the driver's operations
 * @link: in the superblock's list
 */
struct cgpu_node {
	struct cgpu_inst *inst;
	int minor;
	dev_t shown;
	struct inode *shadow;
	struct file *genuine;
	const struct file_operations *fops;
	struct list_head link;
};

struct cgpu_argpage;

enum cgpu_range_kind {
	CGPU_RANGE_ANNOUNCED,	/* semaphores are to come there */
	CGPU_RANGE_POOL,	/* semaphores; charged */
	CGPU_RANGE_MANAGED,	/* managed memory; charged */
	CGPU_RANGE_REFUSED,	/* managed memory that nothing is behind */
	CGPU_RANGE_EXTERNAL,	/* memory of an object, at an address of GPUs */
};

/**
 * struct cgpu_range - addresses that a UVM file knows about
 * @link: in the file's list
 * @rcu: frees it
 * @base: first address
 * @length: bytes
 * @kind: what is there
 * @charged: bytes that are charged, less those whose mapping is gone
 * @ops: what the vm_ops of its mapping point to, once it is charged
 * @orig: the driver's operations
 * @phys: the object's memory, which the mapping holds, or NULL
 * @gpus: where it is mapped
 * @gpu_count: how many
 */
struct cgpu_range {
	struct list_head link;
	struct rcu_head rcu;
	u64 base;
	u64 length;
	enum cgpu_range_kind kind;
	u64 charged;
	struct vm_operations_struct ops;
	const struct vm_operations_struct *orig;
	struct cgpu_phys *phys;
	struct uvm_uuid *gpus;
	u32 gpu_count;
};

/**
 * struct cgpu_file - one open file; found by struct file, as private_data is
 *		      the driver's
 * @hash: in the table of open files
 * @rcu: frees it
 * @file: the file
 * @node: what was opened
 * @inode: f_inode before the shadow took its place
 * @pid: process that opened it
 * @link: in inst->files; under inst->lock
 * @lock: one call at a time where the table of objects must agree
 * @args: argument pages, one set an address space; under @lock
 * @next_map: share whose doorbell the next mmap gives; under @lock
 * @exported: memory that this file holds for others; under inst->lock
 * @map_lock: guards @ranges and @managed; inside mmap_lock
 * @ranges: UVM ranges
 * @managed: bytes of managed memory
 */
struct cgpu_file {
	struct hlist_node hash;
	struct rcu_head rcu;
	struct file *file;
	struct cgpu_node *node;
	struct inode *inode;
	struct pid *pid;
	struct list_head link;
	struct mutex lock;		/* @args */
	struct cgpu_argpage *args;
	struct cgpu_share *next_map;
	struct cgpu_phys *exported;
	struct mutex map_lock;		/* @ranges, @managed */
	struct list_head ranges;
	u64 managed;
};

/**
 * struct cgpu_call - a call to the driver with arguments that nobody can change
 * @f: the file; its lock is held
 * @cmd: the ioctl
 * @args: arguments, replaced by what came back
 * @size: their bytes
 * @nested: parameters that the arguments point to, or NULL
 * @nested_size: their bytes
 * @nested_at: where in @args their address stands
 * @apart: they get a page of their own, so that it shows whether the driver
 *	   stores to them
 * @answered: it has, in this task; nobody else can make that look so
 * @sure: nobody but the driver can have written the results
 * @genuine: driver's file that the call must find in its caller's table, or
 *	     the file that @fd_at must name
 * @fd_at: where in @args the number of that file stands, 0 = nowhere
 */
struct cgpu_call {
	struct cgpu_file *f;
	u32 cmd;
	void *args;
	u32 size;
	void *nested;
	u32 nested_size;
	u32 nested_at;
	bool apart;
	bool answered;
	bool sure;
	struct file *genuine;
	u32 fd_at;
};

extern int cgpu_branch;
extern unsigned int cgpu_slice_ms;
extern unsigned int cgpu_debt_ms;
extern char *cgpu_managed;
extern unsigned int cgpu_managed_free_mib;
extern bool cgpu_overcommit;
extern bool cgpu_allow_unknown_driver;
extern int cgpu_ctl_major;
extern struct cgpu_gpu *cgpu_gpus[NV_MAX_DEVICES];
extern struct mutex cgpu_registry_lock;
extern struct list_head cgpu_insts;
extern u64 cgpu_default_memsize;

/* probe.c */
int cgpu_probe(void);
void cgpu_probe_undo(void);

/* major.c */
int cgpu_find_major(const char *name);

/* genuine.c */
struct inode *cgpu_make_inode(struct super_block *sb, umode_t mode, dev_t dev);
int cgpu_make_root(struct super_block *sb, unsigned long magic);
struct file *cgpu_open_genuine(dev_t dev);
int cgpu_private_get(void);
void cgpu_private_put(void);

/* fs.c */
int cgpu_fs_init(void);
void cgpu_fs_exit(void);
struct cgpu_node *cgpu_node_of(struct cgpu_file *f, int minor);

/* instance.c */
struct cgpu_inst *cgpu_inst_find(const char *id);
void cgpu_inst_get(struct cgpu_inst *inst);
void cgpu_inst_put(struct cgpu_inst *inst);
struct cgpu_inst *cgpu_inst_detach(const char *id);
void cgpu_policy_follow(struct cgpu_gpu *gpu);
void cgpu_share_set(struct cgpu_share *share, u32 weight, bool highprio);
int cgpu_share_resize(struct cgpu_share *share, u64 mem);
u64 cgpu_mem_given(const struct cgpu_gpu *gpu);
void cgpu_inst_poison(struct cgpu_inst *inst);
u32 cgpu_weights_given(const struct cgpu_gpu *gpu);

/* create.c */
struct cgpu_share *cgpu_share_create(const char *id, struct cgpu_gpu *gpu,
				     u64 mem, u32 weight, bool highprio);

/* instctl.c */
int cgpu_command(char *line);
int cgpu_commands_show(struct seq_file *m, void *unused);

/* file.c */
extern const struct file_operations cgpu_fops;
extern const struct vm_operations_struct cgpu_refused_vm_ops;
struct cgpu_file *cgpu_file_of(struct file *file);
struct cgpu_file *cgpu_own_file(struct cgpu_file *f, int fd,
				struct file **file);
long cgpu_forward(struct cgpu_file *f, u32 cmd, void __user *arg);

/* worker.c */
int cgpu_workers_init(void);
void cgpu_workers_exit(void);
long cgpu_call_on_worker(struct cgpu_call *call, void *page,
			 struct task_struct **owner, void __user *arg);

/* argpage.c */
long cgpu_call(struct cgpu_call *call);
void cgpu_argpage_free(struct cgpu_argpage *p);

/* dispatch.c */
bool cgpu_passes(struct cgpu_file *f, u32 cmd);
long cgpu_dispatch(struct cgpu_file *f, u32 cmd, void __user *arg);

/* alloc.c, heap.c, hostmem.c, control.c, share.c: handlers of one escape */
long cgpu_esc_free(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg);
long cgpu_esc_alloc(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg);
long cgpu_esc_heap(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg);
long cgpu_esc_memory(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg);
long cgpu_esc_control(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg);
long cgpu_esc_dup(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg);
long cgpu_esc_map(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg);
long cgpu_esc_cards(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg);
long cgpu_esc_register(struct cgpu_file *f, u32 cmd, u32 size,
		       void __user *arg);
long cgpu_esc_attach(struct cgpu_file *f, u32 cmd, u32 size, void __user *arg);

/* memory.c */
bool cgpu_charge(struct cgpu_inst *inst, int gpu, u64 bytes);
void cgpu_charge_rounding(struct cgpu_inst *inst, int gpu, u64 bytes);
void cgpu_uncharge_bytes(struct cgpu_inst *inst, int gpu, u64 bytes);
int cgpu_track(struct cgpu_file *f, const struct cgpu_obj *what, u64 bytes,
	       struct cgpu_phys *shared);
void cgpu_untrack(struct cgpu_file *f, u32 client, u32 handle);
void cgpu_untrack_file(struct cgpu_file *f);
void cgpu_phys_release(struct cgpu_inst *inst, struct cgpu_phys *phys);
bool cgpu_phys_hold(struct cgpu_file *f, u32 client, u32 handle,
		    struct cgpu_phys **phys);
void cgpu_phys_release_hold(struct cgpu_inst *inst, struct cgpu_phys *phys);
int cgpu_gpu_of(struct cgpu_file *f, u32 client, u32 handle);
bool cgpu_known(struct cgpu_file *f, u32 client, u32 handle);
u32 cgpu_new_handle(struct cgpu_file *f);
void cgpu_view_of(struct cgpu_file *f, int gpu, struct cgpu_view *v);

/* uvm.c */
bool cgpu_uvm_passes(u32 cmd);
long cgpu_uvm_ioctl(struct cgpu_file *f, u32 cmd, void __user *arg);

/* managed.c */
int cgpu_uvm_mmap(struct cgpu_file *f, struct vm_area_struct *vma);
void cgpu_uvm_unmapped(struct cgpu_file *f, struct cgpu_range *r, u64 bytes);
void cgpu_uvm_release(struct cgpu_file *f);

/* mapping.c */
void cgpu_range_wrap(struct cgpu_range *r, struct vm_area_struct *vma);

/* gate.c */
void cgpu_gate_init(struct cgpu_gate *gate);
int cgpu_gate_wrap(struct cgpu_file *f, struct cgpu_share *share,
		   struct vm_area_struct *vma);
void cgpu_gate_set(struct cgpu_share *share, bool open);

/* work.c */
void cgpu_work_add(struct cgpu_share *share, u32 client, u32 handle, u64 base,
		   u32 entries);
void cgpu_work_del(struct cgpu_share *share, u32 client, u32 handle);
void cgpu_work_look(struct cgpu_share *share, bool closed, struct cgpu_work *work);

/* watch.c */
void cgpu_watch_begin(struct cgpu_share *share, u64 now);
void cgpu_watch(struct cgpu_share *share, bool closed);
void cgpu_watch_end(struct cgpu_share *share);
u64 cgpu_watch_gone(const struct cgpu_share *share, u64 before);
u64 cgpu_watch_entry_ns(const struct cgpu_share *share);
bool cgpu_watch_enough(const struct cgpu_share *share, u64 most);

/* turns.c */
u64 cgpu_turns_look(struct cgpu_gpu *gpu);

/* slices.c */
int cgpu_slices_start(struct cgpu_gpu *gpu);
void cgpu_slices_stop(struct cgpu_gpu *gpu);
void cgpu_slices_kick(struct cgpu_gpu *gpu);
void cgpu_slices_conf(struct cgpu_gpu *gpu, u32 policy, u32 max_inst,
		      u32 prio_ratio);
int cgpu_slices_add(struct cgpu_share *share);
void cgpu_slices_del(struct cgpu_share *share);
u64 cgpu_share_busy_ns(struct cgpu_share *share);

/* procfs.c */
int cgpu_procfs_init(void);
void cgpu_procfs_exit(void);
int cgpu_procfs_add_gpu(struct cgpu_gpu *gpu);
void cgpu_procfs_del_gpu(struct cgpu_gpu *gpu);
int cgpu_procfs_add(struct cgpu_share *share);
void cgpu_procfs_del(struct cgpu_share *share);

#endif
