// SPDX-License-Identifier: GPL-2.0-only
/*
 * Driver branches. Sizes and offsets are of the public headers of each branch
 * or measured with that branch's own libraries.
 */
#include "core.h"

const struct nvsim_branch nvsim_branches[] = {
	{
		.number = 418, .version = "418.226.00",
		.alloc_size = 0, .alloc32_status = 0x18,
		.heap_size = 192, .heap_shift = 8,
		.card_info_size = 80, .os_event_size = 20,
		.event_index = 0x10, .event_data = 0x18, .error_index = 34,
		.export_fd = 0x14,
		.uvm_map_size = 1080, .uvm_map_client = 0x424, .uvm_map_status = 0x10,
		.uvm_unmap_status = 0x18,
		.unmap_dma_size = 40,
		.numa_info_size = 552, .pid_stride = 40, .heap_tax = 1,
	}, {
		.number = 450, .version = "450.248.02",
		.alloc_size = 40, .alloc32_status = 0x18, .alloc_status = 0x20,
		.heap_size = 192, .heap_shift = 8,
		.card_info_size = 80, .os_event_size = 20,
		.event_index = 0x10, .event_data = 0x18, .error_index = 34,
		.export_fd = 0x14,
		.uvm_map_size = 1200, .uvm_map_client = 0x4a4, .uvm_map_status = 8,
		.uvm_unmap_status = 0x20,
		.unmap_dma_size = 40,
		.numa_info_size = 552, .pid_stride = 48, .heap_tax = 1,
	}, {
		.number = 460, .version = "460.106.00",
		.alloc_size = 40, .alloc32_status = 0x18, .alloc_status = 0x20,
		.heap_size = 184,
		.card_info_size = 72, .os_event_size = 16,
		.event_index = 0x10, .event_data = 0x18, .error_index = 34,
		.export_fd = 0x10,
		.uvm_map_size = 1200, .uvm_map_client = 0x4a4, .uvm_map_status = 8,
		.uvm_unmap_status = 0x20,
		.unmap_dma_size = 40,
		.numa_info_size = 552, .pid_stride = 48, .heap_tax = 1,
	}, {
		.number = 470, .version = "470.256.02",
		.alloc_size = 40, .alloc32_status = 0x18, .alloc_status = 0x20,
		.heap_size = 184,
		.card_info_size = 72, .os_event_size = 16,
		.event_index = 0x10, .event_data = 0x18, .error_index = 37,
		.export_fd = 0x10,
		.uvm_map_size = 1200, .uvm_map_client = 0x4a4, .uvm_map_status = 8,
		.uvm_unmap_status = 0x20,
		.unmap_dma_size = 40,
		.numa_info_size = 552, .pid_stride = 48, .heap_tax = 1,
		.register_fd = 1,
	}, {
		.number = 535, .version = "535.261.03",
		.alloc_size = 48, .alloc32_status = 0x1c, .alloc_status = 0x28,
		.heap_size = 184,
		.card_info_size = 72, .os_event_size = 16,
		.event_index = 0x0c, .event_data = 0x10, .error_index = 37,
		.export_fd = 0x10,
		.uvm_map_size = 1200, .uvm_map_client = 0x4a4, .uvm_map_status = 8,
		.uvm_unmap_status = 0x20,
		.unmap_dma_size = 40,
		.numa_info_size = 560, .pid_stride = 72,
		.register_fd = 1,
	}, {
		.number = 550, .version = "550.163.01",
		.alloc_size = 48, .alloc32_status = 0x1c, .alloc_status = 0x28,
		.heap_size = 184,
		.card_info_size = 72, .os_event_size = 16,
		.event_index = 0x0c, .event_data = 0x10, .error_index = 37,
		.export_fd = 0x10,
		.uvm_map_size = 9264, .uvm_map_client = 0x2424, .uvm_map_status = 8,
		.uvm_unmap_status = 0x20,
		.unmap_dma_size = 48,
		.numa_info_size = 560, .pid_stride = 72,
		.register_fd = 1, .genuine_file = 1,
	},
	{ }
};
