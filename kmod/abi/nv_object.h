/* SPDX-License-Identifier: GPL-2.0-only */
/* Parameters of classes. */
#ifndef CGPU_ABI_NV_OBJECT_H
#define CGPU_ABI_NV_OBJECT_H

#include "nv_assert.h"

/* ------- parameters of classes. [O] nvos.h, class/, alloc/ ------- */

struct nv0005_alloc_parameters {		/* events 0x05, 0x78, 0x79 */
	__u32 h_parent_client;
	__u32 h_src_resource;
	__u32 h_class;
	__u32 notify_index;
	__u64 data;
};

NV_SIZE(nv0005_alloc_parameters, 24);

struct nv0005_alloc_parameters_418 {		/* 418 to 470. [M] */
	__u32 h_parent_client;
	__u32 unknown;
	__u32 h_src_resource;
	__u32 h_class;
	__u32 notify_index;
	__u64 data;
};

NV_SIZE(nv0005_alloc_parameters_418, 32);
NV_AT(nv0005_alloc_parameters_418, notify_index, 0x10);
NV_AT(nv0005_alloc_parameters_418, data, 0x18);

#define NV01_EVENT_NONSTALL_INTR		0x08000000
#define NV01_EVENT_WITHOUT_EVENT_DATA		0x10000000
/* the rest of a notify index, and EVENT_SET_NOTIFICATION's actions */
#define NV_EVENT_INDEX_MASK			0xffffff
#define NV_EVENT_ACTION_DISABLE			0
#define NV_EVENT_ACTION_SINGLE			1
#define NV_EVENT_ACTION_REPEAT			2

struct nv_unix_event {				/* what GET_EVENT_DATA fills */
	__u32 h_object;
	__u32 notify_index;
	__u32 info32;
	__u16 info16;
};

NV_SIZE(nv_unix_event, 16);

struct nv_notification {			/* [O] nvgputypes.h */
	struct {
		__u32 nanoseconds[2];
	} time_stamp;
	__u32 info32;
	__u16 info16;
	__u16 status;
};

NV_SIZE(nv_notification, 16);

struct nv0080_alloc_parameters {
	__u32 device_id;
	__u32 h_client_share;
	__u32 h_target_client;
	__u32 h_target_device;
	__u32 flags;
	__u64 va_space_size;
	__u64 va_start_internal;
	__u64 va_limit_internal;
	__u32 va_mode;
};

NV_SIZE(nv0080_alloc_parameters, 56);

struct nv2080_alloc_parameters {
	__u32 sub_device_id;
};

NV_SIZE(nv2080_alloc_parameters, 4);

struct nv_memory_allocation_params {		/* 0x3e 0x40 0x42 0x50a0 */
	__u32 owner;
	__u32 type;
	__u32 flags;
	__u32 width;
	__u32 height;
	__s32 pitch;
	__u32 attr;
	__u32 attr2;
	__u32 format;
	__u32 compr_covg;
	__u32 zcull_covg;
	__u64 range_lo;
	__u64 range_hi;
	__u64 size;
	__u64 alignment;
	__u64 offset;
	__u64 limit;
	__u64 address;
	__u32 ctag_offset;
	__u32 h_va_space;
	__u32 internalflags;
	__u32 tag;
};

NV_SIZE(nv_memory_allocation_params, 120);
NV_AT(nv_memory_allocation_params, size, 0x40);
NV_AT(nv_memory_allocation_params, limit, 0x58);

struct nv_memory_allocation_params_545 {
	__u32 owner;
	__u32 type;
	__u32 flags;
	__u32 width;
	__u32 height;
	__s32 pitch;
	__u32 attr;
	__u32 attr2;
	__u32 format;
	__u32 compr_covg;
	__u32 zcull_covg;
	__u64 range_lo;
	__u64 range_hi;
	__u64 size;
	__u64 alignment;
	__u64 offset;
	__u64 limit;
	__u64 address;
	__u32 ctag_offset;
	__u32 h_va_space;
	__u32 internalflags;
	__u32 tag;
	__s32 numa_node;
};

NV_SIZE(nv_memory_allocation_params_545, 128);

struct nv_memory_desc_params {
	__u64 base;
	__u64 size;
	__u32 address_space;
	__u32 cache_attrib;
};

NV_SIZE(nv_memory_desc_params, 24);

struct nv_channel_alloc_params {		/* the part all branches share */
	__u32 h_object_error;
	__u32 h_object_buffer;
	__u64 gp_fifo_offset;
	__u32 gp_fifo_entries;
	__u32 flags;
	__u32 h_context_share;
	__u32 h_va_space;
	__u32 h_userd_memory[8];
	__u64 userd_offset[8];
	__u32 engine_type;
	__u32 cid;
	__u32 sub_device_id;
	__u32 h_object_ecc_error;
	struct nv_memory_desc_params instance_mem;
	struct nv_memory_desc_params userd_mem;
	struct nv_memory_desc_params ramfc_mem;
	struct nv_memory_desc_params mthdbuf_mem;
	__u32 h_phys_channel_group;
	__u32 internal_flags;
	struct nv_memory_desc_params error_notifier_mem;
	struct nv_memory_desc_params ecc_error_notifier_mem;
	__u32 process_id;
	__u32 sub_process_id;
};

NV_SIZE(nv_channel_alloc_params, 304);
NV_AT(nv_channel_alloc_params, h_userd_memory, 0x20);
NV_AT(nv_channel_alloc_params, userd_offset, 0x40);
#define NV_CHANNEL_ALLOC_SIZE_535		360
#define NV_CHANNEL_ALLOC_SIZE_570		368

struct nv_channel_group_allocation_parameters {
	__u32 h_object_error;
	__u32 h_object_ecc_error;
	__u32 h_va_space;
	__u32 engine_type;
	__u8 b_is_calling_context_vgpu_plugin;
	__u8 pad[3];
};

NV_SIZE(nv_channel_group_allocation_parameters, 20);

struct nv_ctxshare_allocation_parameters {
	__u32 h_va_space;
	__u32 flags;
	__u32 subctx_id;
};

NV_SIZE(nv_ctxshare_allocation_parameters, 12);

struct nv_vaspace_allocation_parameters {
	__u32 index;
	__u32 flags;
	__u64 va_size;
	__u64 va_start_internal;
	__u64 va_limit_internal;
	__u32 big_page_size;
	__u64 va_base;
};

NV_SIZE(nv_vaspace_allocation_parameters, 48);
#define NV_VASPACE_ALLOC_SIZE_580		56

struct nv_memory_virtual_allocation_params {	/* 0x70 */
	__u64 offset;
	__u64 limit;
	__u32 h_va_space;
};

NV_SIZE(nv_memory_virtual_allocation_params, 24);

struct nv00f8_map {
	__u64 offset;
	__u32 h_vid_mem;
	__u32 flags;
};

NV_SIZE(nv00f8_map, 16);

struct nv00f8_allocation_parameters {		/* memory fabric, until 530 */
	__u64 alignment;
	__u64 alloc_size;
	__u32 page_size;
	__u32 alloc_flags;
	struct nv00f8_map map;
};

NV_SIZE(nv00f8_allocation_parameters, 40);

struct nv00f8_allocation_parameters_535 {
	__u64 alignment;
	__u64 alloc_size;
	__u64 page_size;
	__u32 alloc_flags;
	struct nv00f8_map map;
};

NV_SIZE(nv00f8_allocation_parameters_535, 48);

struct nv_hopper_usermode_a_params {
	__u8 b_bar1_mapping;
	__u8 b_priv;
};

NV_SIZE(nv_hopper_usermode_a_params, 2);

#endif
