/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where fields are, for code that plays every branch on arguments of bytes. The
 * layouts themselves are in the other headers; what moves with the branch is
 * not here.
 */
#ifndef CGPU_ABI_NV_OFFSET_H
#define CGPU_ABI_NV_OFFSET_H

#include "nv_escape.h"
#include "nv_object.h"

#define NV_OFFSET(type, field)		offsetof(struct type, field)

/* Every call begins with client and object (or parent) */
#define RM_CLIENT			NV_OFFSET(nvos54_parameters, h_client)
#define RM_OBJECT			NV_OFFSET(nvos54_parameters, h_object)

#define NVOS00_OLD			NV_OFFSET(nvos00_parameters, h_object_old)
#define NVOS00_STATUS			NV_OFFSET(nvos00_parameters, status)

#define NVOS02_NEW			NV_OFFSET(nvos02_parameters, h_object_new)
#define NVOS02_CLASS			NV_OFFSET(nvos02_parameters, h_class)
#define NVOS02_FLAGS			NV_OFFSET(nvos02_parameters, flags)
#define NVOS02_MEMORY			NV_OFFSET(nvos02_parameters, p_memory)
#define NVOS02_LIMIT			NV_OFFSET(nvos02_parameters, limit)
#define NVOS02_STATUS			NV_OFFSET(nvos02_parameters, status)
#define NVOS02_FD			NV_OFFSET(nv_ioctl_nvos02_parameters_with_fd, fd)

#define NVOS21_NEW			NV_OFFSET(nvos21_parameters, h_object_new)
#define NVOS21_CLASS			NV_OFFSET(nvos21_parameters, h_class)
#define NVOS21_PARAMS			NV_OFFSET(nvos21_parameters, p_alloc_parms)
#define NVOS21_SIZE			sizeof(struct nvos21_parameters)

#define NVOS32_FUNCTION			NV_OFFSET(nvos32_parameters, function)
#define NVOS32_STATUS			NV_OFFSET(nvos32_parameters, status)
#define NVOS32_TOTAL			NV_OFFSET(nvos32_parameters, total)
#define NVOS32_FREE			NV_OFFSET(nvos32_parameters, free)
#define NVOS32_MEMORY			NV_OFFSET(nvos32_parameters, data.alloc_size.h_memory)
#define NVOS32_FLAGS			NV_OFFSET(nvos32_parameters, data.alloc_size.flags)
/* these move on 418 and 450 */
#define NVOS32_ATTR			NV_OFFSET(nvos32_parameters, data.alloc_size.attr)
#define NVOS32_SIZE			NV_OFFSET(nvos32_parameters, data.alloc_size.size)
#define NVOS32_LIMIT			NV_OFFSET(nvos32_parameters, data.alloc_size.limit)

#define NVOS33_MEMORY			NV_OFFSET(nvos33_parameters, h_memory)
#define NVOS33_OFFSET			NV_OFFSET(nvos33_parameters, offset)
#define NVOS33_LENGTH			NV_OFFSET(nvos33_parameters, length)
#define NVOS33_LINEAR			NV_OFFSET(nvos33_parameters, p_linear_address)
#define NVOS33_STATUS			NV_OFFSET(nvos33_parameters, status)
#define NVOS33_FD			NV_OFFSET(nv_ioctl_nvos33_parameters_with_fd, fd)
#define NVOS34_STATUS			NV_OFFSET(nvos34_parameters, status)

#define NVOS41_EVENT			NV_OFFSET(nvos41_parameters, p_event)
#define NVOS41_MORE			NV_OFFSET(nvos41_parameters, more_events)
#define NVOS41_STATUS			NV_OFFSET(nvos41_parameters, status)
#define NV_UNIX_EVENT_OBJECT		NV_OFFSET(nv_unix_event, h_object)
#define NV_UNIX_EVENT_INDEX		NV_OFFSET(nv_unix_event, notify_index)
#define NV_UNIX_EVENT_INFO32		NV_OFFSET(nv_unix_event, info32)
#define NV_UNIX_EVENT_INFO16		NV_OFFSET(nv_unix_event, info16)
#define NV_UNIX_EVENT_BYTES		sizeof(struct nv_unix_event)

#define NVOS46_MEMORY			NV_OFFSET(nvos46_parameters, h_memory)
#define NVOS46_OFFSET			NV_OFFSET(nvos46_parameters, offset)
#define NVOS46_LENGTH			NV_OFFSET(nvos46_parameters, length)
#define NVOS47_DMA_OFFSET		NV_OFFSET(nvos47_parameters, dma_offset)

#define NVOS54_COMMAND			NV_OFFSET(nvos54_parameters, cmd)
#define NVOS54_PARAMS			NV_OFFSET(nvos54_parameters, params)
#define NVOS54_PARAMS_SIZE		NV_OFFSET(nvos54_parameters, params_size)
#define NVOS54_STATUS			NV_OFFSET(nvos54_parameters, status)

#define NVOS55_NEW			NV_OFFSET(nvos55_parameters, h_object)
#define NVOS55_CLIENT_SOURCE		NV_OFFSET(nvos55_parameters, h_client_src)
#define NVOS55_OBJECT_SOURCE		NV_OFFSET(nvos55_parameters, h_object_src)
#define NVOS55_STATUS			NV_OFFSET(nvos55_parameters, status)

#define NVOS56_STATUS			NV_OFFSET(nvos56_parameters, status)
#define NVOS57_STATUS			NV_OFFSET(nvos57_parameters, status)

#define NV_MEMORY_SIZE			NV_OFFSET(nv_memory_allocation_params, size)
#define NV_MEMORY_LIMIT			NV_OFFSET(nv_memory_allocation_params, limit)

#define NV_CHANNEL_ERROR		NV_OFFSET(nv_channel_alloc_params, h_object_error)
#define NV_CHANNEL_GPFIFO		NV_OFFSET(nv_channel_alloc_params, gp_fifo_offset)
#define NV_CHANNEL_ENTRIES		NV_OFFSET(nv_channel_alloc_params, gp_fifo_entries)
#define NV_CHANNEL_CONTEXT_SHARE	NV_OFFSET(nv_channel_alloc_params, h_context_share)
#define NV_CHANNEL_VASPACE		NV_OFFSET(nv_channel_alloc_params, h_va_space)
#define NV_CHANNEL_USERD		NV_OFFSET(nv_channel_alloc_params, h_userd_memory)
#define NV_CHANNEL_USERD_OFFSET		NV_OFFSET(nv_channel_alloc_params, userd_offset)
#define NV_CHANNEL_ENGINE		NV_OFFSET(nv_channel_alloc_params, engine_type)

#define NV_NOTIFICATION_INFO32		NV_OFFSET(nv_notification, info32)
#define NV_NOTIFICATION_INFO16		NV_OFFSET(nv_notification, info16)
#define NV_NOTIFICATION_STATUS		NV_OFFSET(nv_notification, status)
#define NV_NOTIFICATION_BYTES		sizeof(struct nv_notification)

#endif
