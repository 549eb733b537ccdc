/* SPDX-License-Identifier: GPL-2.0-only */
/* The resource manager's inside: objects, memory, dispatch. Lock held. */
#ifndef NVSIM_RM_H
#define NVSIM_RM_H

#include "core.h"
#include "../abi/nvidia_rm.h"

/* Fields of structs that user space laid out. */
static inline u32 get16(const void *at, u32 offset)
{
	u16 value;

	memcpy(&value, (const u8 *)at + offset, sizeof(value));
	return value;
}

static inline u32 get32(const void *at, u32 offset)
{
	u32 value;

	memcpy(&value, (const u8 *)at + offset, sizeof(value));
	return value;
}

static inline u64 get64(const void *at, u32 offset)
{
	u64 value;

	memcpy(&value, (const u8 *)at + offset, sizeof(value));
	return value;
}

static inline void put16(void *at, u32 offset, u16 value)
{
	memcpy((u8 *)at + offset, &value, sizeof(value));
}

static inline void put32(void *at, u32 offset, u32 value)
{
	memcpy((u8 *)at + offset, &value, sizeof(value));
}

static inline void put64(void *at, u32 offset, u64 value)
{
	memcpy((u8 *)at + offset, &value, sizeof(value));
}

static inline u8 generation(u32 class)
{
	return class >= 0xc000 ? class & 0xff : 0;
}

/* object.c */
struct nvsim_client *nvsim_client_find(u32 handle);
u32 nvsim_client_new(struct nvsim_file *owner, u32 *handle, void *task);
void nvsim_client_free(struct nvsim_client *client);
struct nvsim_object *nvsim_object_find(struct nvsim_client *client, u32 handle);
/* Adds an object; *handle 0 chooses one. *made is NULL unless NV_OK. */
u32 nvsim_object_new(struct nvsim_client *client, u32 parent, u32 *handle,
		     u32 class, struct nvsim_object **made);
void nvsim_object_free(struct nvsim_object *object);

/* memory.c */
u32 nvsim_mem_new(struct nvsim_gpu *gpu, u32 class, u64 bytes,
		  struct nvsim_backing *backing, struct nvsim_mem **made);
struct nvsim_mem *nvsim_mem_get(struct nvsim_mem *mem);
void nvsim_mem_put(struct nvsim_mem *mem);
struct nvsim_backing *nvsim_mem_backing(struct nvsim_mem *mem);
void *nvsim_mem_at(struct nvsim_mem *mem, u64 offset, u64 *left);
u32 nvsim_memory_alloc(struct nvsim_client *client, u32 parent, u32 *handle,
		       u32 class, u64 *bytes, u64 *limit);
u64 nvsim_memory_of(const struct nvsim_client *client,
		    const struct nvsim_gpu *gpu, bool duplicate);
void nvsim_vid_heap(struct nvsim_file *file, u8 *arg);

/* alloc.c, map.c */
int nvsim_rm_alloc(struct nvsim_file *file, u8 *arg, u32 size);
int nvsim_alloc_memory(struct nvsim_file *file, u8 *arg);
u32 nvsim_map_memory(struct nvsim_file *file, u8 *arg);
struct nvsim_file *nvsim_map_target(int fd);
u32 nvsim_map_context(struct nvsim_file *target, struct nvsim_object *object,
		      u64 offset, u64 bytes);

/* control.c */
struct nvsim_control {
	struct nvsim_file *file;
	struct nvsim_client *client;
	struct nvsim_object *object;
	struct nvsim_gpu *gpu;
	u8 *params;
	u32 size, command;
	u8 *list[3];		/* lists that the parameters point to */
	u32 list_bytes[3];
};

/* A list outside the parameters: where its pointer and its count are. */
struct nvsim_list {
	u8 pointer, count, element;
	u8 direction;		/* 1 in, 2 out, 3 both */
	u16 fixed;		/* bytes, when there is no count */
};

struct nvsim_control_row {
	u32 command;
	const char *name;
	u32 least;		/* bytes of parameters */
	u32 (*reply)(struct nvsim_control *control);	/* NULL: accepted */
	const struct nvsim_list *lists;
	u8 list_count;
};

extern const struct nvsim_control_row nvsim_controls_system[];
extern const struct nvsim_control_row nvsim_controls_device[];
extern const struct nvsim_control_row nvsim_controls_engine[];
extern const u32 nvsim_controls_accepted[];
int nvsim_rm_control(struct nvsim_file *file, u8 *arg);

/* event.c */
void nvsim_raise(struct nvsim_gpu *gpu, struct nvsim_client *client);
void nvsim_raise_error(struct nvsim_gpu *gpu, struct nvsim_client *client);
void nvsim_raise_xid(struct nvsim_gpu *gpu, u32 xid);
u32 nvsim_event_data(struct nvsim_file *file, u8 *arg);
extern const struct nvsim_control_row nvsim_controls_event[];
extern const struct nvsim_control_row nvsim_controls_sensor[];

/* ledger.c */
u32 nvsim_uuid_text(char *to, u32 room, const u8 *uuid);

/* va.c */
struct nvsim_range *nvsim_space_find(struct nvsim_space *space, u64 va);
int nvsim_space_add(struct nvsim_space *space, u64 va, u64 bytes, u64 offset,
		    struct nvsim_mem *mem);
void nvsim_space_remove(struct nvsim_space *space, u64 va, u64 bytes);
void nvsim_space_free(struct nvsim_space *space);

#endif
