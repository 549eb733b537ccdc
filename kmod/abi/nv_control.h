/* SPDX-License-Identifier: GPL-2.0-only */
/* Controls and their parameters. */
#ifndef CGPU_ABI_NV_CONTROL_H
#define CGPU_ABI_NV_CONTROL_H

#include "nv_escape.h"
#include "nv_numbers.h"

/* ------- controls. [O] ctrl/ctrl*.h ------- */

#define NV0000_CTRL_SYSTEM_GET_BUILD_VERSION	0x00000101
#define NV0000_CTRL_GPU_GET_ATTACHED_IDS	0x00000201
#define NV0000_CTRL_GPU_GET_ID_INFO		0x00000202
#define NV0000_CTRL_GPU_GET_ID_INFO_V2		0x00000205
#define NV0000_CTRL_GPU_GET_PROBED_IDS		0x00000214
#define NV0000_CTRL_GPU_ATTACH_IDS		0x00000215
#define NV0000_CTRL_GPU_DETACH_IDS		0x00000216
#define NV0000_CTRL_GPU_GET_PCI_INFO		0x0000021b
#define NV0000_CTRL_GPU_GET_ACTIVE_DEVICE_IDS	0x00000288
#define NV0000_CTRL_CLIENT_GET_ADDR_SPACE_TYPE	0x00000d01
#define NV0000_CTRL_CLIENT_GET_HANDLE_INFO	0x00000d02
#define NV0000_CTRL_CLIENT_SET_INHERITED_SHARE	0x00000d04
#define NV0000_CTRL_CLIENT_SHARE_OBJECT		0x00000d06
/* 418 numbers the client's controls 0x10xx. [M] */
#define NV0000_CTRL_418_GET_ADDR_SPACE_TYPE	0x00001001
#define NV0000_CTRL_418_SET_INHERITED_SHARE	0x00001004
#define NV0000_CTRL_418_SHARE_OBJECT		0x00001005
#define NV0000_CTRL_OS_UNIX_EXPORT_OBJECT_TO_FD		0x00003d05
#define NV0000_CTRL_OS_UNIX_IMPORT_OBJECT_FROM_FD	0x00003d06
#define NV0000_CTRL_OS_UNIX_GET_EXPORT_OBJECT_INFO	0x00003d08
#define NV0000_CTRL_OS_UNIX_CREATE_EXPORT_OBJECT_FD	0x00003d0a
#define NV0000_CTRL_OS_UNIX_EXPORT_OBJECTS_TO_FD	0x00003d0b
#define NV0000_CTRL_OS_UNIX_IMPORT_OBJECTS_FROM_FD	0x00003d0c
#define NV0080_CTRL_GPU_GET_CLASSLIST		0x00800201
#define NV0080_CTRL_418_GPU_GET_PIDS		0x00800202
#define NV0080_CTRL_418_GPU_GET_PID_INFO	0x00800203
#define NV0080_CTRL_GPU_GET_NUM_SUBDEVICES	0x00800280
#define NV0080_CTRL_GPU_GET_CLASSLIST_V2	0x00800292
#define NV0080_CTRL_FIFO_GET_CHANNELLIST	0x0080170d
#define NV0080_CTRL_FIFO_STOP_RUNLIST		0x00801711
#define NV0080_CTRL_FIFO_START_RUNLIST		0x00801712
#define NV2080_CTRL_GPU_GET_GID_INFO		0x2080014a
#define NV2080_CTRL_GPU_GET_PIDS		0x2080018d
#define NV2080_CTRL_GPU_GET_PID_INFO		0x2080018e
#define NV2080_CTRL_FIFO_DISABLE_CHANNELS	0x2080110b
#define NV2080_CTRL_FIFO_SET_SCHED_POLICY	0x20801115
#define NV2080_CTRL_GR_GET_INFO			0x20801201
#define NV2080_CTRL_FB_GET_INFO			0x20801301
#define NV2080_CTRL_FB_GET_INFO_V2		0x20801303
#define NV2080_CTRL_FB_GET_FB_REGION_INFO	0x20801320
#define NV2080_CTRL_MC_GET_ARCH_INFO		0x20801701
#define NV2080_CTRL_MC_SERVICE_INTERRUPTS	0x20801702
#define NV2080_CTRL_BUS_GET_PCI_INFO		0x20801801
#define NV2080_CTRL_PERF_GPUMON_UTIL_V2		0x20802096
#define NVA06C_CTRL_GPFIFO_SCHEDULE		0xa06c0101
#define NVA06C_CTRL_SET_TIMESLICE		0xa06c0103
#define NVA06C_CTRL_GET_TIMESLICE		0xa06c0104
#define NVA06C_CTRL_PREEMPT			0xa06c0105
#define NVA06C_CTRL_SET_INTERLEAVE_LEVEL	0xa06c0107
#define NVA06C_CTRL_MAKE_REALTIME		0xa06c0110
#define NVA06F_CTRL_GPFIFO_SCHEDULE		0xa06f0103
#define NVA06F_CTRL_RESTART_RUNLIST		0xa06f0111
#define NVA06F_CTRL_STOP_CHANNEL		0xa06f0112
#define NVC36F_CTRL_GPFIFO_GET_WORK_TOKEN	0xc36f0108

#define NV0000_CTRL_GPU_INVALID_ID		0xffffffff

struct nv0000_ctrl_gpu_get_id_info_params {
	__u32 gpu_id;
	__u32 gpu_flags;
	__u32 device_instance;
	__u32 sub_device_instance;
	__u64 sz_name;
	__u32 sli_status;
	__u32 board_id;
	__u32 gpu_instance;
	__s32 numa_id;
};

NV_SIZE(nv0000_ctrl_gpu_get_id_info_params, 40);

struct nv0000_ctrl_gpu_get_id_info_v2_params {
	__u32 gpu_id;
	__u32 gpu_flags;
	__u32 device_instance;
	__u32 sub_device_instance;
	__u32 sli_status;
	__u32 board_id;
	__u32 gpu_instance;
	__s32 numa_id;
};

NV_SIZE(nv0000_ctrl_gpu_get_id_info_v2_params, 32);

struct nv0000_ctrl_gpu_get_attached_ids_params {
	__u32 gpu_ids[NV_MAX_DEVICES];
};

NV_SIZE(nv0000_ctrl_gpu_get_attached_ids_params, 128);

struct nv0000_ctrl_gpu_get_probed_ids_params {
	__u32 gpu_ids[NV_MAX_DEVICES];
	__u32 excluded_gpu_ids[NV_MAX_DEVICES];
};

NV_SIZE(nv0000_ctrl_gpu_get_probed_ids_params, 256);

struct nv0000_ctrl_gpu_get_probed_ids_params_580 {
	__u32 gpu_ids[NV_MAX_DEVICES];
	__u32 excluded_gpu_ids[NV_MAX_DEVICES];
	__u32 gpu_flags[NV_MAX_DEVICES];
};

NV_SIZE(nv0000_ctrl_gpu_get_probed_ids_params_580, 384);

struct nv0000_ctrl_gpu_get_pci_info_params {
	__u32 gpu_id;
	__u32 domain;
	__u16 bus;
	__u16 slot;
};

NV_SIZE(nv0000_ctrl_gpu_get_pci_info_params, 12);

struct nv0000_ctrl_client_get_handle_info_params {
	__u32 h_object;
	__u32 index;
	__u64 data;
};

NV_SIZE(nv0000_ctrl_client_get_handle_info_params, 16);

struct nv0000_ctrl_client_share_object_params {
	__u32 h_object;
	struct rs_share_policy share_policy;
};

NV_SIZE(nv0000_ctrl_client_share_object_params, 16);

struct nv0000_ctrl_os_unix_export_object {
	__u32 type;
	__u32 h_device;
	__u32 h_parent;
	__u32 h_object;
};

NV_SIZE(nv0000_ctrl_os_unix_export_object, 16);
#define NV_EXPORT_OBJECT_TYPE_RM		1

struct nv0000_ctrl_os_unix_export_object_to_fd_params {
	struct nv0000_ctrl_os_unix_export_object object;
	__s32 fd;
	__u32 flags;
};

NV_SIZE(nv0000_ctrl_os_unix_export_object_to_fd_params, 24);

struct nv0000_ctrl_os_unix_import_object_from_fd_params {
	__s32 fd;
	struct nv0000_ctrl_os_unix_export_object object;
};

NV_SIZE(nv0000_ctrl_os_unix_import_object_from_fd_params, 20);

struct nv0000_ctrl_os_unix_get_export_object_info_params {
	__s32 fd;
	__u32 device_instance;
	__u16 max_objects;
	__u8 metadata[64];
};

NV_SIZE(nv0000_ctrl_os_unix_get_export_object_info_params, 76);

struct nv0000_ctrl_os_unix_get_export_object_info_params_545 {
	__s32 fd;
	__u32 device_instance;
	__u32 gpu_instance_id;
	__u16 max_objects;
	__u8 metadata[64];
};

NV_SIZE(nv0000_ctrl_os_unix_get_export_object_info_params_545, 80);

struct nv0000_ctrl_os_unix_create_export_object_fd_params {
	__u32 h_device;
	__u16 max_objects;
	__u8 metadata[64];
	__s32 fd;
};

NV_SIZE(nv0000_ctrl_os_unix_create_export_object_fd_params, 76);

struct nv0000_ctrl_os_unix_export_objects_to_fd_params {
	__s32 fd;
	__u32 h_device;
	__u16 max_objects;
	__u8 metadata[64];
	__u32 objects[512];
	__u16 num_objects;
	__u16 index;
};

NV_SIZE(nv0000_ctrl_os_unix_export_objects_to_fd_params, 2128);
NV_AT(nv0000_ctrl_os_unix_export_objects_to_fd_params, objects, 0x4c);

struct nv0000_ctrl_os_unix_import_objects_from_fd_params {
	__s32 fd;
	__u32 h_parent;
	__u32 objects[128];
	__u8 object_types[128];
	__u16 num_objects;
	__u16 index;
};

NV_SIZE(nv0000_ctrl_os_unix_import_objects_from_fd_params, 652);
#define NV_IMPORT_OBJECT_TYPE_NONE		0
#define NV_IMPORT_OBJECT_TYPE_VIDMEM		1
#define NV_IMPORT_OBJECT_TYPE_SYSMEM		2
#define NV_IMPORT_OBJECT_TYPE_FABRIC		3
#define NV_IMPORT_OBJECT_TYPE_FABRIC_MC		4

/* FB_GET_INFO: {index, data} in KiB, except the BAR and cache entries */
#define NV2080_FB_INFO_INDEX_BAR1_SIZE		0x05
#define NV2080_FB_INFO_INDEX_RAM_SIZE		0x07
#define NV2080_FB_INFO_INDEX_TOTAL_RAM_SIZE	0x08
#define NV2080_FB_INFO_INDEX_HEAP_SIZE		0x09
#define NV2080_FB_INFO_INDEX_MAPPABLE_SIZE	0x0a
#define NV2080_FB_INFO_INDEX_FB_TAX_SIZE	0x10
#define NV2080_FB_INFO_INDEX_LARGEST_FREE	0x12
#define NV2080_FB_INFO_INDEX_HEAP_FREE		0x16
#define NV2080_FB_INFO_INDEX_L2CACHE_SIZE	0x1b
#define NV2080_FB_INFO_INDEX_BAR1_AVAIL		0x1d
#define NV2080_FB_INFO_INDEX_USABLE_RAM_SIZE	0x20
#define NV2080_FB_INFO_INDEX_OFFLINE_SIZE	0x27
#define NV2080_FB_INFO_INDEX_PROTECTED_TOTAL	0x33
#define NV2080_FB_INFO_INDEX_PROTECTED_FREE	0x34

struct nv2080_ctrl_fb_info {
	__u32 index;
	__u32 data;
};

NV_SIZE(nv2080_ctrl_fb_info, 8);

struct nv2080_ctrl_fb_get_info_params {
	__u32 fb_info_list_size;
	__u64 fb_info_list;
};

NV_SIZE(nv2080_ctrl_fb_get_info_params, 16);

/* FB_GET_INFO_V2: a count and N entries; N grows with the branch. [M] [O] */
struct nv2080_ctrl_fb_get_info_v2_params {
	__u32 fb_info_list_size;
	struct nv2080_ctrl_fb_info fb_info_list[54];
};

NV_SIZE(nv2080_ctrl_fb_get_info_v2_params, 436);
#define NV2080_FB_INFO_ENTRIES_418		41
#define NV2080_FB_INFO_ENTRIES_450		47
#define NV2080_FB_INFO_ENTRIES_460		51
#define NV2080_FB_INFO_ENTRIES_515		54
#define NV2080_FB_INFO_ENTRIES_545		55
#define NV2080_FB_INFO_ENTRIES_560		57
#define NV2080_FB_INFO_ENTRIES_580		128

struct nv2080_ctrl_cmd_fb_get_fb_region_fb_region_info {
	__u64 base;
	__u64 limit;
	__u64 reserved;
	__u32 performance;
	__u8 support_compressed;
	__u8 support_iso;
	__u8 b_protected;
	__u8 black_list[17];
};

NV_SIZE(nv2080_ctrl_cmd_fb_get_fb_region_fb_region_info, 48);

struct nv2080_ctrl_cmd_fb_get_fb_region_fb_region_info_580 {
	__u64 base;
	__u64 limit;
	__u64 reserved;
	__u32 performance;
	__u8 support_compressed;
	__u8 support_iso;
	__u8 b_protected;
	__u8 black_list[18];
};

NV_SIZE(nv2080_ctrl_cmd_fb_get_fb_region_fb_region_info_580, 56);

struct nv2080_ctrl_cmd_fb_get_fb_region_info_params {
	__u32 num_fb_regions;
	struct nv2080_ctrl_cmd_fb_get_fb_region_fb_region_info fb_region[16];
};

NV_SIZE(nv2080_ctrl_cmd_fb_get_fb_region_info_params, 776);

struct nv2080_ctrl_cmd_fb_get_fb_region_info_params_580 {
	__u32 num_fb_regions;
	struct nv2080_ctrl_cmd_fb_get_fb_region_fb_region_info_580
		fb_region[16];
};

NV_SIZE(nv2080_ctrl_cmd_fb_get_fb_region_info_params_580, 904);

#define NV2080_GPU_MAX_PIDS			950
struct nv2080_ctrl_gpu_get_pids_params {	/* also 418's 0x800202 */
	__u32 id_type;
	__u32 id;
	__u32 pid_tbl_count;
	__u32 pid_tbl[NV2080_GPU_MAX_PIDS];
};

NV_SIZE(nv2080_ctrl_gpu_get_pids_params, 3812);

struct nv2080_ctrl_gpu_pid_info_video_memory_usage_data {
	__u64 mem_private;
	__u64 mem_shared_owned;
	__u64 mem_shared_duped;
	__u64 protected_mem_private;
	__u64 protected_mem_shared_owned;
	__u64 protected_mem_shared_duped;
};

NV_SIZE(nv2080_ctrl_gpu_pid_info_video_memory_usage_data, 48);

struct nv2080_ctrl_gpu_pid_info {		/* from 515 */
	__u32 pid;
	__u32 index;
	__u32 result;
	struct nv2080_ctrl_gpu_pid_info_video_memory_usage_data data;
	__u32 smc_subscription[2];
};

NV_SIZE(nv2080_ctrl_gpu_pid_info, 72);

#define NV2080_GPU_MAX_PID_INFO			200
struct nv2080_ctrl_gpu_get_pid_info_params {
	__u32 pid_info_list_count;
	struct nv2080_ctrl_gpu_pid_info pid_info_list[NV2080_GPU_MAX_PID_INFO];
};

NV_SIZE(nv2080_ctrl_gpu_get_pid_info_params, 14408);
NV_AT(nv2080_ctrl_gpu_get_pid_info_params, pid_info_list, 8);

struct nv2080_ctrl_gpu_pid_info_450 {		/* 450 to 470. [M] */
	__u32 pid;
	__u32 index;
	__u32 result;
	__u64 mem_private;
	__u64 mem_shared_owned;
	__u64 mem_shared_duped;
	__u32 smc_subscription[2];
};

NV_SIZE(nv2080_ctrl_gpu_pid_info_450, 48);
#define NV2080_GPU_PID_INFO_SIZE_450		9608

struct nv0080_ctrl_418_gpu_pid_info {		/* 418. [M] */
	__u32 pid;
	__u32 index;
	__u32 result;
	__u64 mem_private;
	__u64 mem_shared_owned;
	__u64 mem_shared_duped;
};

NV_SIZE(nv0080_ctrl_418_gpu_pid_info, 40);
#define NV0080_418_GPU_PID_INFO_SIZE		8008

/* GPUMON: 72 samples behind a 16 byte head; stride by branch. [O] */
struct nv2080_ctrl_gpumon_head {
	__u8 type;
	__u32 buf_size;
	__u32 count;
	__u32 tracker;
};

NV_SIZE(nv2080_ctrl_gpumon_head, 16);
#define NV2080_GPUMON_SAMPLES			72
#define NV2080_GPUMON_STRIDE_515		472
#define NV2080_GPUMON_STRIDE_550		704
#define NV2080_GPUMON_STRIDE_570		776

struct nv2080_ctrl_gpu_get_gid_info_params {
	__u32 index;
	__u32 flags;
	__u32 length;
	__u8 data[256];
};

NV_SIZE(nv2080_ctrl_gpu_get_gid_info_params, 268);

struct nv2080_ctrl_fifo_disable_channels_params {
	__u8 b_disable;
	__u32 num_channels;
	__u8 b_only_disable_scheduling;
	__u8 b_rewind_gp_put;
	__u64 p_runlist_preempt_event;
	__u32 h_client_list[64];
	__u32 h_channel_list[64];
};

NV_SIZE(nv2080_ctrl_fifo_disable_channels_params, 536);

struct nva06c_ctrl_timeslice_params {
	__u64 timeslice_us;
};

NV_SIZE(nva06c_ctrl_timeslice_params, 8);

struct nva06c_ctrl_preempt_params {
	__u8 b_wait;
	__u8 b_manual_timeout;
	__u32 timeout_us;
};

NV_SIZE(nva06c_ctrl_preempt_params, 8);

struct nva06f_ctrl_gpfifo_schedule_params {
	__u8 b_enable;
	__u8 b_skip_submit;
};

NV_SIZE(nva06f_ctrl_gpfifo_schedule_params, 2);

struct nva06f_ctrl_gpfifo_schedule_params_580 {
	__u8 b_enable;
	__u8 b_skip_submit;
	__u8 b_skip_enable;
};

NV_SIZE(nva06f_ctrl_gpfifo_schedule_params_580, 3);

struct nvc36f_ctrl_cmd_gpfifo_get_work_submit_token_params {
	__u32 work_submit_token;
};

NV_SIZE(nvc36f_ctrl_cmd_gpfifo_get_work_submit_token_params, 4);

#endif
