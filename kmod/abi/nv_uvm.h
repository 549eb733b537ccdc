/* SPDX-License-Identifier: GPL-2.0-only */
/* Unified memory: requests and their parameters. */
#ifndef CGPU_ABI_NV_UVM_H
#define CGPU_ABI_NV_UVM_H

#include "nv_assert.h"

/* ------- UVM: raw numbers, no size in them. [U] ------- */

#define UVM_INITIALIZE				0x30000001
#define UVM_DEINITIALIZE			0x30000002
#define UVM_CREATE_RANGE_GROUP			23
#define UVM_DESTROY_RANGE_GROUP			24
#define UVM_REGISTER_GPU_VASPACE		25
#define UVM_UNREGISTER_GPU_VASPACE		26
#define UVM_REGISTER_CHANNEL			27
#define UVM_UNREGISTER_CHANNEL			28
#define UVM_ENABLE_PEER_ACCESS			29
#define UVM_DISABLE_PEER_ACCESS			30
#define UVM_SET_RANGE_GROUP			31
#define UVM_MAP_EXTERNAL_ALLOCATION		33
#define UVM_FREE				34
#define UVM_REGISTER_GPU			37
#define UVM_UNREGISTER_GPU			38
#define UVM_PAGEABLE_MEM_ACCESS			39
#define UVM_SET_PREFERRED_LOCATION		42
#define UVM_UNSET_PREFERRED_LOCATION		43
#define UVM_ENABLE_READ_DUPLICATION		44
#define UVM_DISABLE_READ_DUPLICATION		45
#define UVM_SET_ACCESSED_BY			46
#define UVM_UNSET_ACCESSED_BY			47
#define UVM_MIGRATE				51
#define UVM_MIGRATE_RANGE_GROUP			53
#define UVM_TOOLS_INIT_EVENT_TRACKER		56
#define UVM_MAP_DYNAMIC_PARALLELISM_REGION	65
#define UVM_UNMAP_EXTERNAL			66
#define UVM_ALLOC_SEMAPHORE_POOL		68
#define UVM_PAGEABLE_MEM_ACCESS_ON_GPU		70
#define UVM_POPULATE_PAGEABLE			71
#define UVM_VALIDATE_VA_RANGE			72
#define UVM_CREATE_EXTERNAL_RANGE		73
#define UVM_MAP_EXTERNAL_SPARSE			74
#define UVM_MM_INITIALIZE			75
#define UVM_TOOLS_FIRST				56
#define UVM_ALLOC_DEVICE_P2P			78
#define UVM_IS_8_SUPPORTED			2047

#define UVM_INIT_FLAGS_DISABLE_HMM		0x1ULL
#define UVM_INIT_FLAGS_MULTI_PROCESS		0x2ULL

struct uvm_uuid {
	__u8 uuid[16];
};

NV_SIZE(uvm_uuid, 16);

struct uvm_initialize_params {
	__u64 flags;
	__u32 rm_status;
};

NV_SIZE(uvm_initialize_params, 16);

struct uvm_mm_initialize_params {
	__s32 uvm_fd;
	__u32 rm_status;
};

NV_SIZE(uvm_mm_initialize_params, 8);

struct uvm_is_8_supported_params {		/* 418 asks */
	__u32 is8_supported;
	__u32 rm_status;
};

NV_SIZE(uvm_is_8_supported_params, 8);

struct uvm_register_gpu_params {
	struct uvm_uuid gpu_uuid;
	__u8 numa_enabled;
	__s32 numa_node_id;
	__s32 rm_ctrl_fd;
	__u32 h_client;
	__u32 h_smc_part_ref;
	__u32 rm_status;
};

NV_SIZE(uvm_register_gpu_params, 40);

struct uvm_register_gpu_params_418 {
	struct uvm_uuid gpu_uuid;
	__u8 numa_enabled;
	__s32 numa_node_id;
	__u32 rm_status;
};

NV_SIZE(uvm_register_gpu_params_418, 28);

struct uvm_unregister_gpu_params {
	struct uvm_uuid gpu_uuid;
	__u32 rm_status;
};

NV_SIZE(uvm_unregister_gpu_params, 20);

struct uvm_register_gpu_vaspace_params {
	struct uvm_uuid gpu_uuid;
	__s32 rm_ctrl_fd;
	__u32 h_client;
	__u32 h_va_space;
	__u32 rm_status;
};

NV_SIZE(uvm_register_gpu_vaspace_params, 32);

struct uvm_unregister_gpu_vaspace_params {
	struct uvm_uuid gpu_uuid;
	__u32 rm_status;
};

NV_SIZE(uvm_unregister_gpu_vaspace_params, 20);

struct uvm_register_channel_params {
	struct uvm_uuid gpu_uuid;
	__s32 rm_ctrl_fd;
	__u32 h_client;
	__u32 h_channel;
	__u64 base;
	__u64 length;
	__u32 rm_status;
};

NV_SIZE(uvm_register_channel_params, 56);

struct uvm_unregister_channel_params {
	struct uvm_uuid gpu_uuid;
	__u32 h_client;
	__u32 h_channel;
	__u32 rm_status;
};

NV_SIZE(uvm_unregister_channel_params, 28);

/*
 * MAP_EXTERNAL_ALLOCATION and ALLOC_SEMAPHORE_POOL hold an array of mapping
 * attributes before their tail, so the tail moves with the branch.
 */
#define UVM_MAP_EXTERNAL_HEAD			0x18
#define UVM_MAP_EXTERNAL_SIZE_418		1080
#define UVM_MAP_EXTERNAL_STATUS_418		0x434
#define UVM_MAP_EXTERNAL_CLIENT_418		0x424
#define UVM_MAP_EXTERNAL_SIZE			1200
#define UVM_MAP_EXTERNAL_STATUS			0x4ac
#define UVM_MAP_EXTERNAL_CLIENT			0x4a4
#define UVM_MAP_EXTERNAL_SIZE_550		9264
#define UVM_MAP_EXTERNAL_STATUS_550		0x242c
#define UVM_MAP_EXTERNAL_CLIENT_550		0x2424
#define UVM_SEMAPHORE_POOL_SIZE_418		1056
#define UVM_SEMAPHORE_POOL_STATUS_418		0x418
#define UVM_SEMAPHORE_POOL_SIZE			1184
#define UVM_SEMAPHORE_POOL_STATUS		0x498
#define UVM_SEMAPHORE_POOL_SIZE_550		9248
#define UVM_SEMAPHORE_POOL_STATUS_550		0x2418

struct uvm_gpu_mapping_attributes {		/* from 450; 32 bytes on 418 */
	struct uvm_uuid gpu_uuid;
	__u32 gpu_mapping_type;
	__u32 gpu_caching_type;
	__u32 gpu_format_type;
	__u32 gpu_element_bits;
	__u32 gpu_compression_type;
};

NV_SIZE(uvm_gpu_mapping_attributes, 36);

struct uvm_map_external_allocation_params {
	__u64 base;
	__u64 length;
	__u64 offset;
	struct uvm_gpu_mapping_attributes per_gpu_attributes[32];
	__u64 gpu_attributes_count;
	__s32 rm_ctrl_fd;
	__u32 h_client;
	__u32 h_memory;
	__u32 rm_status;
};

NV_SIZE(uvm_map_external_allocation_params, UVM_MAP_EXTERNAL_SIZE);
NV_AT(uvm_map_external_allocation_params, rm_status, UVM_MAP_EXTERNAL_STATUS);

struct uvm_gpu_mapping_attributes_418 {
	struct uvm_uuid gpu_uuid;
	__u32 gpu_mapping_type;
	__u32 gpu_caching_type;
	__u32 gpu_format_type;
	__u32 gpu_element_bits;
};

NV_SIZE(uvm_gpu_mapping_attributes_418, 32);

struct uvm_map_external_allocation_params_418 {
	__u64 base;
	__u64 length;
	__u64 offset;
	struct uvm_gpu_mapping_attributes_418 per_gpu_attributes[32];
	__u64 gpu_attributes_count;
	__s32 rm_ctrl_fd;
	__u32 h_client;
	__u32 h_memory;
	__u32 unknown[2];
	__u32 rm_status;
};

NV_SIZE(uvm_map_external_allocation_params_418, UVM_MAP_EXTERNAL_SIZE_418);
NV_AT(uvm_map_external_allocation_params_418, rm_status, UVM_MAP_EXTERNAL_STATUS_418);

struct uvm_map_external_allocation_params_550 {
	__u64 base;
	__u64 length;
	__u64 offset;
	struct uvm_gpu_mapping_attributes per_gpu_attributes[256];
	__u64 gpu_attributes_count;
	__s32 rm_ctrl_fd;
	__u32 h_client;
	__u32 h_memory;
	__u32 rm_status;
};

NV_SIZE(uvm_map_external_allocation_params_550, UVM_MAP_EXTERNAL_SIZE_550);
NV_AT(uvm_map_external_allocation_params_550, rm_status, UVM_MAP_EXTERNAL_STATUS_550);

struct uvm_unmap_external_params {
	__u64 base;
	__u64 length;
	struct uvm_uuid gpu_uuid;
	__u32 rm_status;
};

NV_SIZE(uvm_unmap_external_params, 40);

struct uvm_unmap_external_params_418 {
	__u64 base;
	struct uvm_uuid gpu_uuid;
	__u32 rm_status;
};

NV_SIZE(uvm_unmap_external_params_418, 32);

struct uvm_create_external_range_params {
	__u64 base;
	__u64 length;
	__u32 rm_status;
};

NV_SIZE(uvm_create_external_range_params, 24);

struct uvm_free_params {
	__u64 base;
	__u64 length;
	__u32 rm_status;
};

NV_SIZE(uvm_free_params, 24);

struct uvm_alloc_semaphore_pool_params {
	__u64 base;
	__u64 length;
	struct uvm_gpu_mapping_attributes per_gpu_attributes[32];
	__u64 gpu_attributes_count;
	__u32 rm_status;
};

NV_SIZE(uvm_alloc_semaphore_pool_params, UVM_SEMAPHORE_POOL_SIZE);
NV_AT(uvm_alloc_semaphore_pool_params, rm_status, UVM_SEMAPHORE_POOL_STATUS);

struct uvm_alloc_semaphore_pool_params_418 {
	__u64 base;
	__u64 length;
	struct uvm_gpu_mapping_attributes_418 per_gpu_attributes[32];
	__u64 gpu_attributes_count;
	__u32 rm_status;
};

NV_SIZE(uvm_alloc_semaphore_pool_params_418, UVM_SEMAPHORE_POOL_SIZE_418);
NV_AT(uvm_alloc_semaphore_pool_params_418, rm_status, UVM_SEMAPHORE_POOL_STATUS_418);

struct uvm_alloc_semaphore_pool_params_550 {
	__u64 base;
	__u64 length;
	struct uvm_gpu_mapping_attributes per_gpu_attributes[256];
	__u64 gpu_attributes_count;
	__u32 rm_status;
};

NV_SIZE(uvm_alloc_semaphore_pool_params_550, UVM_SEMAPHORE_POOL_SIZE_550);
NV_AT(uvm_alloc_semaphore_pool_params_550, rm_status, UVM_SEMAPHORE_POOL_STATUS_550);

struct uvm_validate_va_range_params {
	__u64 base;
	__u64 length;
	__u32 rm_status;
};

NV_SIZE(uvm_validate_va_range_params, 24);

struct uvm_read_duplication_params {		/* 44 and 45 */
	__u64 requested_base;
	__u64 length;
	__u32 rm_status;
};

NV_SIZE(uvm_read_duplication_params, 24);

struct uvm_pageable_mem_access_params {
	__u8 pageable_mem_access;
	__u32 rm_status;
};

NV_SIZE(uvm_pageable_mem_access_params, 8);

struct uvm_create_range_group_params {
	__u64 range_group_id;
	__u32 rm_status;
};

NV_SIZE(uvm_create_range_group_params, 16);

struct uvm_migrate_params {
	__u64 base;
	__u64 length;
	struct uvm_uuid destination_uuid;
	__u32 flags;
	__u64 semaphore_address;
	__u32 semaphore_payload;
	__u32 cpu_numa_node;
	__u64 user_space_start;
	__u64 user_space_length;
	__u32 rm_status;
};

NV_SIZE(uvm_migrate_params, 80);

struct uvm_map_dynamic_parallelism_region_params {
	__u64 base;
	__u64 length;
	struct uvm_uuid gpu_uuid;
	__u32 rm_status;
};

NV_SIZE(uvm_map_dynamic_parallelism_region_params, 40);

struct uvm_set_preferred_location_params {
	__u64 requested_base;
	__u64 length;
	struct uvm_uuid preferred_location;
	__u32 rm_status;
};

NV_SIZE(uvm_set_preferred_location_params, 40);

struct uvm_set_preferred_location_params_550 {
	__u64 requested_base;
	__u64 length;
	struct uvm_uuid preferred_location;
	__s32 preferred_cpu_numa_node;
	__u32 rm_status;
};

NV_SIZE(uvm_set_preferred_location_params_550, 40);

struct uvm_set_accessed_by_params {
	__u64 requested_base;
	__u64 length;
	struct uvm_uuid accessed_by_uuid;
	__u32 rm_status;
};

NV_SIZE(uvm_set_accessed_by_params, 40);

#endif
