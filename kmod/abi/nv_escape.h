/* SPDX-License-Identifier: GPL-2.0-only */
/* Arguments of the escapes. */
#ifndef CGPU_ABI_NV_ESCAPE_H
#define CGPU_ABI_NV_ESCAPE_H

#include "nv_assert.h"

/* ------- escapes of the RM. [O] nvos.h ------- */

struct nvos00_parameters {			/* FREE */
	__u32 h_root;
	__u32 h_object_parent;
	__u32 h_object_old;
	__u32 status;
};

NV_SIZE(nvos00_parameters, 16);

struct nvos02_parameters {			/* ALLOC_MEMORY */
	__u32 h_root;
	__u32 h_object_parent;
	__u32 h_object_new;
	__u32 h_class;
	__u32 flags;
	__u64 p_memory;
	__u64 limit;
	__u32 status;
};

NV_SIZE(nvos02_parameters, 48);

struct nv_ioctl_nvos02_parameters_with_fd {
	struct nvos02_parameters params;
	__s32 fd;
};

NV_SIZE(nv_ioctl_nvos02_parameters_with_fd, 56);
#define NVOS02_FLAGS_LOCATION(flags)	(((flags) >> 8) & 0xf)
#define NVOS02_FLAGS_LOCATION_VIDMEM	2
#define NVOS02_FLAGS_NO_MAPPING		0xc0000000	/* 0: at once */

struct nvos05_parameters {			/* ALLOC_OBJECT */
	__u32 h_root;
	__u32 h_object_parent;
	__u32 h_object_new;
	__u32 h_class;
	__u32 status;
};

NV_SIZE(nvos05_parameters, 20);

/*
 * RM_ALLOC, short form. The one case where the size does not tell the layout:
 * 32 bytes on every branch, status at 0x18 until 530 and at 0x1c from 535. [M]
 */
struct nvos21_parameters {
	__u32 h_root;
	__u32 h_object_parent;
	__u32 h_object_new;
	__u32 h_class;
	__u64 p_alloc_parms;
	__u32 status;
};

NV_SIZE(nvos21_parameters, 32);
NV_AT(nvos21_parameters, status, 0x18);

struct nvos21_parameters_535 {
	__u32 h_root;
	__u32 h_object_parent;
	__u32 h_object_new;
	__u32 h_class;
	__u64 p_alloc_parms;
	__u32 params_size;
	__u32 status;
};

NV_SIZE(nvos21_parameters_535, 32);
NV_AT(nvos21_parameters_535, status, 0x1c);

struct nvos64_parameters {			/* RM_ALLOC with rights */
	__u32 h_root;
	__u32 h_object_parent;
	__u32 h_object_new;
	__u32 h_class;
	__u64 p_alloc_parms;
	__u64 p_rights_requested;
	__u32 status;
};

NV_SIZE(nvos64_parameters, 40);
NV_AT(nvos64_parameters, status, 0x20);

struct nvos64_parameters_535 {
	__u32 h_root;
	__u32 h_object_parent;
	__u32 h_object_new;
	__u32 h_class;
	__u64 p_alloc_parms;
	__u64 p_rights_requested;
	__u32 params_size;
	__u32 flags;
	__u32 status;
};

NV_SIZE(nvos64_parameters_535, 48);
NV_AT(nvos64_parameters_535, status, 0x28);

struct nvos30_parameters {			/* IDLE_CHANNELS */
	__u32 h_client;
	__u32 h_device;
	__u32 h_channel;
	__u32 num_channels;
	__u64 ph_clients;
	__u64 ph_devices;
	__u64 ph_channels;
	__u32 flags;
	__u32 timeout;
	__u32 status;
};

NV_SIZE(nvos30_parameters, 56);

/* VID_HEAP_CONTROL functions. [O] */
#define NVOS32_FUNCTION_ALLOC_DEPTH		1
#define NVOS32_FUNCTION_ALLOC_SIZE		2
#define NVOS32_FUNCTION_FREE			3
#define NVOS32_FUNCTION_INFO			5
#define NVOS32_FUNCTION_ALLOC_TILED_PITCH	6
#define NVOS32_FUNCTION_DUMP			11
#define NVOS32_FUNCTION_ALLOC_SIZE_RANGE	14
#define NVOS32_FUNCTION_REACQUIRE_COMPR		15
#define NVOS32_FUNCTION_RELEASE_COMPR		16
#define NVOS32_FUNCTION_GET_MEM_ALIGNMENT	18
#define NVOS32_FUNCTION_HW_ALLOC		19
#define NVOS32_FUNCTION_HW_FREE			20
#define NVOS32_FUNCTION_ALLOC_OS_DESC		27

#define NVOS32_FLAGS_MEMORY_HANDLE_PROVIDED	0x00004000
#define NVOS32_FLAGS_VIRTUAL			0x00080000
#define NVOS32_ATTR_LOCATION(attr)		(((attr) >> 25) & 3)
#define NVOS32_ATTR_LOCATION_VIDMEM		0
#define NVOS32_ATTR_LOCATION_PCI		1
#define NVOS32_ATTR2_USE_EGM			0x01000000

struct nvos32_alloc_depth {
	__u32 owner;
	__u32 h_memory;
	__u32 type;
	__u32 flags;
	__u32 depth;
	__u32 width;
	__u32 height;
	__u32 attr;
	__u32 format;
	__u32 compr_covg;
	__u32 zcull_covg;
	__u32 partition_stride;
	__u64 size;
	__u64 alignment;
	__u64 offset;
	__u64 limit;
	__u64 address;
	__u64 range_begin;
	__u64 range_end;
	__u32 attr2;
	__u32 ctag_offset;
};

NV_SIZE(nvos32_alloc_depth, 112);

struct nvos32_alloc_size {
	__u32 owner;
	__u32 h_memory;
	__u32 type;
	__u32 flags;
	__u32 attr;
	__u32 format;
	__u32 compr_covg;
	__u32 zcull_covg;
	__u32 partition_stride;
	__u32 width;
	__u32 height;
	__u64 size;
	__u64 alignment;
	__u64 offset;
	__u64 limit;
	__u64 address;
	__u64 range_begin;
	__u64 range_end;
	__u32 attr2;
	__u32 ctag_offset;
};

NV_SIZE(nvos32_alloc_size, 112);

struct nvos32_alloc_tiled {
	__u32 owner;
	__u32 h_memory;
	__u32 type;
	__u32 flags;
	__u32 height;
	__s32 pitch;
	__u32 attr;
	__u32 width;
	__u32 format;
	__u32 compr_covg;
	__u32 zcull_covg;
	__u32 partition_stride;
	__u64 size;
	__u64 alignment;
	__u64 offset;
	__u64 limit;
	__u64 address;
	__u64 range_begin;
	__u64 range_end;
	__u32 attr2;
	__u32 ctag_offset;
};

NV_SIZE(nvos32_alloc_tiled, 112);

struct nvos32_alloc_range {
	__u32 owner;
	__u32 h_memory;
	__u32 type;
	__u32 flags;
	__u32 attr;
	__u32 format;
	__u32 compr_covg;
	__u32 zcull_covg;
	__u32 partition_stride;
	__u64 size;
	__u64 alignment;
	__u64 offset;
	__u64 limit;
	__u64 range_begin;
	__u64 range_end;
	__u64 address;
	__u32 attr2;
	__u32 ctag_offset;
};

NV_SIZE(nvos32_alloc_range, 104);

struct nvos32_free {
	__u32 owner;
	__u32 h_memory;
	__u32 flags;
};

NV_SIZE(nvos32_free, 12);

struct nvos32_info {
	__u32 attr;
	__u64 offset;
	__u64 size;
	__u64 base;
};

NV_SIZE(nvos32_info, 32);

struct nvos32_parameters {			/* VID_HEAP_CONTROL, 460 on */
	__u32 h_root;
	__u32 h_object_parent;
	__u32 function;
	__u32 h_va_space;
	__s16 ivc_heap_number;
	__u32 status;
	__u64 total;
	__u64 free;
	union {
		struct nvos32_alloc_depth alloc_depth_width_height;
		struct nvos32_alloc_size alloc_size;
		struct nvos32_alloc_tiled alloc_tiled_pitch_height;
		struct nvos32_alloc_range alloc_size_range;
		struct nvos32_free free;
		struct nvos32_info info;
		__u8 pad[144];
	} data;
};

NV_SIZE(nvos32_parameters, 184);
NV_AT(nvos32_parameters, status, 0x14);
NV_AT(nvos32_parameters, data, 0x28);
NV_AT(nvos32_parameters, data.alloc_size.size, 0x58);
NV_AT(nvos32_parameters, data.alloc_size.limit, 0x70);
NV_AT(nvos32_parameters, data.alloc_size_range.limit, 0x68);
NV_AT(nvos32_parameters, data.alloc_tiled_pitch_height.attr, 0x40);

/* The 192 byte form of 418 and 450: 8 unknown bytes after flags. [M] */
struct nvos32_alloc_size_418 {
	__u32 owner;
	__u32 h_memory;
	__u32 type;
	__u32 flags;
	__u64 unknown;
	__u32 attr;
	__u32 format;
	__u32 compr_covg;
	__u32 zcull_covg;
	__u32 partition_stride;
	__u32 width;
	__u32 height;
	__u64 size;
	__u64 alignment;
	__u64 offset;
	__u64 limit;
	__u64 address;
	__u64 range_begin;
	__u64 range_end;
	__u32 attr2;
	__u32 ctag_offset;
};

struct nvos32_parameters_418 {
	__u32 h_root;
	__u32 h_object_parent;
	__u32 function;
	__u32 h_va_space;
	__s16 ivc_heap_number;
	__u32 status;
	__u64 total;
	__u64 free;
	union {
		struct nvos32_alloc_size_418 alloc_size;
		struct nvos32_free free;
		struct nvos32_info info;
		__u8 pad[152];
	} data;
};

NV_SIZE(nvos32_parameters_418, 192);
NV_AT(nvos32_parameters_418, data.alloc_size.attr, 0x40);
NV_AT(nvos32_parameters_418, data.alloc_size.size, 0x60);
NV_AT(nvos32_parameters_418, data.alloc_size.offset, 0x70);
NV_AT(nvos32_parameters_418, data.alloc_size.limit, 0x78);
NV_AT(nvos32_parameters_418, data.alloc_size.attr2, 0x98);

struct nvos33_parameters {			/* MAP_MEMORY */
	__u32 h_client;
	__u32 h_device;
	__u32 h_memory;
	__u64 offset;
	__u64 length;
	__u64 p_linear_address;
	__u32 status;
	__u32 flags;
};

NV_SIZE(nvos33_parameters, 48);

struct nv_ioctl_nvos33_parameters_with_fd {
	struct nvos33_parameters params;
	__s32 fd;
};

NV_SIZE(nv_ioctl_nvos33_parameters_with_fd, 56);

struct nvos34_parameters {			/* UNMAP_MEMORY */
	__u32 h_client;
	__u32 h_device;
	__u32 h_memory;
	__u64 p_linear_address;
	__u32 status;
	__u32 flags;
};

NV_SIZE(nvos34_parameters, 32);

struct nvos39_parameters {			/* ALLOC_CONTEXT_DMA2 */
	__u32 h_object_parent;
	__u32 h_sub_device;
	__u32 h_object_new;
	__u32 h_class;
	__u32 flags;
	__u32 selector;
	__u32 h_memory;
	__u64 offset;
	__u64 limit;
	__u32 status;
};

NV_SIZE(nvos39_parameters, 56);

struct nvos41_parameters {			/* GET_EVENT_DATA */
	__u64 p_event;
	__u32 more_events;
	__u32 status;
};

NV_SIZE(nvos41_parameters, 16);

struct nvos46_parameters {			/* MAP_MEMORY_DMA */
	__u32 h_client;
	__u32 h_device;
	__u32 h_dma;
	__u32 h_memory;
	__u64 offset;
	__u64 length;
	__u32 flags;
	__u64 dma_offset;
	__u32 status;
};

NV_SIZE(nvos46_parameters, 56);

struct nvos46_parameters_580 {
	__u32 h_client;
	__u32 h_device;
	__u32 h_dma;
	__u32 h_memory;
	__u64 offset;
	__u64 length;
	__u32 flags;
	__u32 flags2;
	__u32 kind_override;
	__u64 dma_offset;
	__u32 status;
};

NV_SIZE(nvos46_parameters_580, 64);

struct nvos47_parameters {			/* UNMAP_MEMORY_DMA */
	__u32 h_client;
	__u32 h_device;
	__u32 h_dma;
	__u32 h_memory;
	__u32 flags;
	__u64 dma_offset;
	__u32 status;
};

NV_SIZE(nvos47_parameters, 40);

struct nvos47_parameters_550 {
	__u32 h_client;
	__u32 h_device;
	__u32 h_dma;
	__u32 h_memory;
	__u32 flags;
	__u64 dma_offset;
	__u64 size;
	__u32 status;
};

NV_SIZE(nvos47_parameters_550, 48);

struct nvos54_parameters {			/* CONTROL */
	__u32 h_client;
	__u32 h_object;
	__u32 cmd;
	__u32 flags;
	__u64 params;
	__u32 params_size;
	__u32 status;
};

NV_SIZE(nvos54_parameters, 32);

struct nvos55_parameters {			/* DUP_OBJECT */
	__u32 h_client;
	__u32 h_parent;
	__u32 h_object;
	__u32 h_client_src;
	__u32 h_object_src;
	__u32 flags;
	__u32 status;
};

NV_SIZE(nvos55_parameters, 28);

struct nvos56_parameters {			/* UPDATE_DEVICE_MAPPING */
	__u32 h_client;
	__u32 h_device;
	__u32 h_memory;
	__u64 p_old_cpu_address;
	__u64 p_new_cpu_address;
	__u32 status;
};

NV_SIZE(nvos56_parameters, 40);

struct rs_share_policy {
	__u32 target;
	__u32 access_mask;
	__u16 type;
	__u8 action;
};

NV_SIZE(rs_share_policy, 12);

struct nvos57_parameters {			/* SHARE */
	__u32 h_client;
	__u32 h_object;
	struct rs_share_policy share_policy;
	__u32 status;
};

NV_SIZE(nvos57_parameters, 24);

#endif
