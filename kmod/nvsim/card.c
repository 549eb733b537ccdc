// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cards: architecture and PCI numbers, and the classes of their generation.
 * first_branch counts in the order of nvsim_branches.
 */
#include "core.h"

const struct nvsim_card nvsim_cards[] = {
	{
		.name = "T4", .product = "Tesla T4", .memory_mib = 15109,
		.arch = 0x160, .impl = 4, .device = 0x1eb8, .subsystem = 0x12a2,
		.sm = 0x705, .sms = 40, .warps = 32, .cores_per_sm = 64,
		.gpfifo = 0xc46f, .compute = 0xc5c0, .graphics = 0xc597,
		.copy = 0xc5b5, .usermode = 0xc461, .usermode_base = 0xc361,
	}, {
		.name = "V100", .product = "Tesla V100-SXM2-16GB",
		.memory_mib = 16160,
		.arch = 0x140, .impl = 0, .device = 0x1db1, .subsystem = 0x1212,
		.sm = 0x700, .sms = 80, .warps = 64, .cores_per_sm = 64,
		.gpfifo = 0xc36f, .compute = 0xc3c0, .graphics = 0xc397,
		.copy = 0xc3b5, .usermode = 0xc361, .usermode_base = 0xc361,
	}, {
		.name = "A10", .product = "NVIDIA A10", .memory_mib = 23028,
		.arch = 0x170, .impl = 2, .device = 0x2236, .subsystem = 0x1482,
		.sm = 0x806, .sms = 72, .warps = 48, .cores_per_sm = 128,
		.gpfifo = 0xc56f, .compute = 0xc7c0, .graphics = 0xc797,
		.copy = 0xc7b5, .usermode = 0xc561, .usermode_base = 0xc461,
		.first_branch = 2,
	}, {
		.name = "A100", .product = "NVIDIA A100-SXM4-40GB",
		.memory_mib = 40536,
		.arch = 0x170, .impl = 0, .device = 0x20b0, .subsystem = 0x1450,
		.sm = 0x800, .sms = 108, .warps = 64, .cores_per_sm = 64,
		.gpfifo = 0xc56f, .compute = 0xc6c0, .graphics = 0xc697,
		.copy = 0xc6b5, .usermode = 0xc561, .usermode_base = 0xc461,
		.first_branch = 1,
	}, {
		.name = "P4", .product = "Tesla P4", .memory_mib = 7611,
		.arch = 0x130, .impl = 4, .device = 0x1bb3, .subsystem = 0x11d8,
		.sm = 0x601, .sms = 20, .warps = 64, .cores_per_sm = 128,
		.gpfifo = 0xc06f, .compute = 0xc1c0, .graphics = 0xc197,
		.copy = 0xc0b5,
	}, {
		.name = "P100", .product = "Tesla P100-PCIE-16GB",
		.memory_mib = 16280,
		.arch = 0x130, .impl = 0, .device = 0x15f8, .subsystem = 0x118f,
		.sm = 0x600, .sms = 56, .warps = 64, .cores_per_sm = 64,
		.gpfifo = 0xc06f, .compute = 0xc0c0, .graphics = 0xc097,
		.copy = 0xc0b5,
	}, {
		.name = "H100", .product = "NVIDIA H100 PCIe",
		.memory_mib = 81559,
		.arch = 0x180, .impl = 0, .device = 0x2331, .subsystem = 0x1626,
		.sm = 0x900, .sms = 114, .warps = 64, .cores_per_sm = 128,
		.gpfifo = 0xc86f, .compute = 0xcbc0, .graphics = 0xcb97,
		.copy = 0xc8b5, .usermode = 0xc661, .usermode_base = 0xc561,
		.first_branch = 4,
	},
	{ }
};
