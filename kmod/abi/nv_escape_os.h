/* SPDX-License-Identifier: GPL-2.0-only */
/* Arguments of the escapes that the operating system layer answers. */
#ifndef CGPU_ABI_NV_ESCAPE_OS_H
#define CGPU_ABI_NV_ESCAPE_OS_H

#include "nv_assert.h"

/* ------- escapes of the operating system layer. [O] nv-ioctl.h ------- */

struct nv_ioctl_xfer {
	__u32 cmd;
	__u32 size;
	__u64 ptr;
};

NV_SIZE(nv_ioctl_xfer, 16);

struct nv_pci_info {
	__u32 domain;
	__u8 bus;
	__u8 slot;
	__u8 function;
	__u16 vendor_id;
	__u16 device_id;
};

NV_SIZE(nv_pci_info, 12);

struct nv_ioctl_card_info {			/* 32 of them in one call */
	__u8 valid;
	struct nv_pci_info pci_info;
	__u32 gpu_id;
	__u16 interrupt_line;
	__u64 reg_address;
	__u64 reg_size;
	__u64 fb_address;
	__u64 fb_size;
	__u32 minor_number;
	__u8 dev_name[10];
};

NV_SIZE(nv_ioctl_card_info, 72);
NV_AT(nv_ioctl_card_info, gpu_id, 0x10);
NV_AT(nv_ioctl_card_info, minor_number, 0x38);

/* 418 and 450. [O] nv.h of the branch, [M] */
struct nv_ioctl_card_info_418 {
	__u16 flags;
	__u32 domain;
	__u8 bus;
	__u8 slot;
	__u8 function;
	__u16 vendor_id;
	__u16 device_id;
	__u8 valid;
	__u32 gpu_id;
	__u16 interrupt_line;
	__u64 reg_address;
	__u64 reg_size;
	__u64 fb_address;
	__u64 fb_size;
	__u32 minor_number;
	__u8 dev_name[10];
};

NV_SIZE(nv_ioctl_card_info_418, 80);
NV_AT(nv_ioctl_card_info_418, vendor_id, 0xc);
NV_AT(nv_ioctl_card_info_418, valid, 0x10);
NV_AT(nv_ioctl_card_info_418, gpu_id, 0x14);
NV_AT(nv_ioctl_card_info_418, minor_number, 0x40);

struct nv_ioctl_alloc_os_event {
	__u32 h_client;
	__u32 h_device;
	__u32 fd;
	__u32 status;
};

NV_SIZE(nv_ioctl_alloc_os_event, 16);

struct nv_ioctl_alloc_os_event_418 {		/* 418 and 450. [M] */
	__u32 h_client;
	__u32 h_device;
	__u32 h_os_event;
	__u32 fd;
	__u32 status;
};

NV_SIZE(nv_ioctl_alloc_os_event_418, 20);

struct nv_ioctl_free_os_event {
	__u32 h_client;
	__u32 h_device;
	__u32 fd;
	__u32 status;
};

NV_SIZE(nv_ioctl_free_os_event, 16);

struct nv_ioctl_status_code {
	__u32 domain;
	__u8 bus;
	__u8 slot;
	__u32 status;
};

NV_SIZE(nv_ioctl_status_code, 12);

struct nv_ioctl_rm_api_version {
	__u32 cmd;
	__u32 reply;
	char version_string[64];
};

NV_SIZE(nv_ioctl_rm_api_version, 72);
#define NV_RM_API_VERSION_CMD_STRICT		0
#define NV_RM_API_VERSION_CMD_RELAXED		'1'
#define NV_RM_API_VERSION_CMD_QUERY		'2'
#define NV_RM_API_VERSION_REPLY_UNRECOGNIZED	0
#define NV_RM_API_VERSION_REPLY_RECOGNIZED	1

struct nv_ioctl_sys_params {
	__u64 memblock_size;
};

NV_SIZE(nv_ioctl_sys_params, 8);

struct nv_ioctl_register_fd {
	__s32 ctl_fd;
};

NV_SIZE(nv_ioctl_register_fd, 4);

/* [M] 552 bytes on 418 to 470, 560 on 535 and 550 */
#define NV_NUMA_INFO_SIZE_418			552
#define NV_NUMA_INFO_SIZE_535			560
/* [O] 2600 bytes until 565, 2608 later */
#define NV_EXPORT_DMABUF_SIZE			2600
#define NV_EXPORT_DMABUF_SIZE_570		2608
#define NV_WAIT_OPEN_COMPLETE_SIZE		8

#endif
