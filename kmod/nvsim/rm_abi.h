/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Offsets (bytes) and numbers of the RM and UVM ioctl interface, as far as the
 * simulator reads or writes them.
 */
#ifndef NVSIM_RM_ABI_H
#define NVSIM_RM_ABI_H

/* RM status codes */
#define NV_OK				0x00
#define NV_ERR_GPU_IS_LOST		0x0f
#define NV_ERR_DUPLICATE		0x19
#define NV_ERR_NO_RESOURCES		0x1a
#define NV_ERR_NO_PERMISSION		0x1b
#define NV_ERR_INVALID_ADDRESS		0x1e
#define NV_ERR_INVALID_ARGUMENT		0x1f
#define NV_ERR_INVALID_CLASS		0x22
#define NV_ERR_INVALID_CLIENT		0x23
#define NV_ERR_INVALID_DEVICE		0x26
#define NV_ERR_INVALID_OBJECT		0x31
#define NV_ERR_INVALID_HANDLE		0x33
#define NV_ERR_INVALID_PARENT		0x36
#define NV_ERR_INVALID_PARAM_STRUCT	0x3a
#define NV_ERR_INVALID_POINTER		0x3d
#define NV_ERR_NO_MEMORY		0x51
#define NV_ERR_NOT_SUPPORTED		0x56
#define NV_ERR_NOT_FOUND		0x57
#define NV_ERR_STATE_IN_USE		0x63
#define NV_ERR_GENERIC			0xffff

/* Every RM call begins with client and object (or parent) */
#define RM_CLIENT			0x00
#define RM_OBJECT			0x04

/* NVOS00, free */
#define NVOS00_OLD			0x08
#define NVOS00_STATUS			0x0c

/* NVOS02, allocate memory */
#define NVOS02_NEW			0x08
#define NVOS02_CLASS			0x0c
#define NVOS02_FLAGS			0x10
#define NVOS02_MEMORY			0x18
#define NVOS02_LIMIT			0x20
#define NVOS02_STATUS			0x28
#define NVOS02_FD			0x30
#define NVOS02_FLAGS_MAPPING		(3u << 30)	/* 0: at once */

/* NVOS21 and NVOS64, allocate; status by branch and size */
#define NVOS21_NEW			0x08
#define NVOS21_CLASS			0x0c
#define NVOS21_PARAMS			0x10
#define NVOS21_SIZE			32

/* NVOS32, video heap; some offsets move by the branch's shift */
#define NVOS32_FUNCTION			0x08
#define NVOS32_STATUS			0x14
#define NVOS32_TOTAL			0x18
#define NVOS32_FREE			0x20
#define NVOS32_MEMORY			0x2c
#define NVOS32_FLAGS			0x34
#define NVOS32_ATTR			0x38
#define NVOS32_SIZE			0x58
#define NVOS32_OFFSET			0x68
#define NVOS32_LIMIT			0x70
#define NVOS32_FN_ALLOC_SIZE		2
#define NVOS32_FN_FREE			3
#define NVOS32_FN_INFO			5
#define NVOS32_FN_ALLOC_PITCH		6
#define NVOS32_FN_ALLOC_RANGE		14
#define NVOS32_FLAG_VIRTUAL		0x00080000

/* NVOS33 and NVOS34, map and unmap */
#define NVOS33_MEMORY			0x08
#define NVOS33_OFFSET			0x10
#define NVOS33_LENGTH			0x18
#define NVOS33_LINEAR			0x20
#define NVOS33_STATUS			0x28
#define NVOS33_FD			0x30
#define NVOS34_STATUS			0x18

/* NVOS46 and NVOS47, map and unmap in a GPU's address space */
#define NVOS46_MEMORY			0x0c
#define NVOS46_OFFSET			0x10
#define NVOS46_LENGTH			0x18
#define NVOS46_DMA_OFFSET		0x28
#define NVOS46_STATUS			0x30
#define NVOS47_DMA_OFFSET		0x18

/* NVOS54, control */
#define NVOS54_COMMAND			0x08
#define NVOS54_PARAMS			0x10
#define NVOS54_PARAMS_SIZE		0x18
#define NVOS54_STATUS			0x1c

/* NVOS55, duplicate */
#define NVOS55_NEW			0x08
#define NVOS55_CLIENT_SOURCE		0x0c
#define NVOS55_OBJECT_SOURCE		0x10
#define NVOS55_STATUS			0x18

#define NVOS56_STATUS			0x20
#define NVOS57_STATUS			0x14

/* NV_MEMORY_ALLOCATION_PARAMS */
#define NV_MEMORY_FLAGS			0x08
#define NV_MEMORY_ATTR			0x18
#define NV_MEMORY_SIZE			0x40
#define NV_MEMORY_LIMIT			0x58

/* NV_CHANNEL_ALLOC_PARAMS */
#define NV_CHANNEL_ERROR		0x00
#define NV_CHANNEL_GPFIFO		0x08
#define NV_CHANNEL_ENTRIES		0x10
#define NV_CHANNEL_CONTEXT_SHARE	0x18
#define NV_CHANNEL_VASPACE		0x1c
#define NV_CHANNEL_USERD		0x20
#define NV_CHANNEL_USERD_OFFSET		0x40
#define NV_CHANNEL_ENGINE		0x80

/* Classes */
#define NV01_ROOT			0x0000
#define NV01_ROOT_NON_PRIV		0x0001
#define NV01_EVENT			0x0005
#define NV01_MEMORY_SYSTEM		0x003e
#define NV01_MEMORY_LOCAL_PRIVILEGED	0x003f
#define NV01_MEMORY_LOCAL_USER		0x0040
#define NV01_ROOT_CLIENT		0x0041
#define NV01_MEMORY_VIRTUAL		0x0070
#define NV01_MEMORY_OS_DESCRIPTOR	0x0071
#define NV01_EVENT_KERNEL_CALLBACK	0x0078
#define NV01_EVENT_OS_EVENT		0x0079
#define NV01_DEVICE_0			0x0080
#define RM_USER_SHARED_DATA		0x00de
#define NV20_SUBDEVICE_0		0x2080
#define NV50_MEMORY_VIRTUAL		0x50a0
#define FERMI_CONTEXT_SHARE_A		0x9067
#define FERMI_VASPACE_A			0x90f1
#define KEPLER_CHANNEL_GROUP_A		0xa06c

/* The low byte of a class that comes in generations */
#define GENERATION_USERMODE		0x61
#define GENERATION_GPFIFO		0x6f
#define GENERATION_COPY			0xb5
#define GENERATION_COMPUTE		0xc0

/* NVOS41, event data, and the NvUnixEvent it points to */
#define NVOS41_EVENT			0x00
#define NVOS41_MORE			0x08
#define NVOS41_STATUS			0x0c
#define NV_UNIX_EVENT_OBJECT		0x00
#define NV_UNIX_EVENT_INDEX		0x04
#define NV_UNIX_EVENT_INFO32		0x08
#define NV_UNIX_EVENT_INFO16		0x0c
#define NV_UNIX_EVENT_BYTES		0x10

#define NV_NOTIFICATION_INFO32		0x08
#define NV_NOTIFICATION_INFO16		0x0c
#define NV_NOTIFICATION_STATUS		0x0e
#define NV_NOTIFICATION_BYTES		0x10

#define USERMODE_DOORBELL		0x90
#define USERMODE_BYTES			0x10000
#define USERD_GP_GET			0x88
#define USERD_GP_PUT			0x8c
#define USERD_BYTES			0x200

#define EVENT_INDEX_NONSTALL		BIT(27)
#define EVENT_INDEX_WITHOUT_DATA	BIT(28)
#define EVENT_INDEX_MASK		0xffffffu

/* EVENT_SET_NOTIFICATION */
#define EVENT_ACTION_DISABLE		0
#define EVENT_ACTION_SINGLE		1
#define EVENT_ACTION_REPEAT		2

#endif
