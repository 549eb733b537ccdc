// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cards: architecture and PCI numbers, the classes of their generation, and what
 * their data sheets say about watts and clocks (idle values and temperatures are
 * plausible ones).
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
		.rests = true, .idle_watts = 10, .watts = 70, .least_watts = 60,
		.idle_celsius = 36, .load_celsius = 74,
		.idle_mhz = 300, .mhz = 1590,
		.idle_memory_mhz = 405, .memory_mhz = 5000,
	}, {
		.name = "V100", .product = "Tesla V100-SXM2-16GB",
		.memory_mib = 16160,
		.arch = 0x140, .impl = 0, .device = 0x1db1, .subsystem = 0x1212,
		.sm = 0x700, .sms = 80, .warps = 64, .cores_per_sm = 64,
		.gpfifo = 0xc36f, .compute = 0xc3c0, .graphics = 0xc397,
		.copy = 0xc3b5, .usermode = 0xc361, .usermode_base = 0xc361,
		.idle_watts = 42, .watts = 300, .least_watts = 150,
		.idle_celsius = 38, .load_celsius = 68,
		.idle_mhz = 135, .mhz = 1530,
		.idle_memory_mhz = 877, .memory_mhz = 877,
	}, {
		.name = "A10", .product = "NVIDIA A10", .memory_mib = 23028,
		.arch = 0x170, .impl = 2, .device = 0x2236, .subsystem = 0x1482,
		.sm = 0x806, .sms = 72, .warps = 48, .cores_per_sm = 128,
		.gpfifo = 0xc56f, .compute = 0xc7c0, .graphics = 0xc797,
		.copy = 0xc7b5, .usermode = 0xc561, .usermode_base = 0xc461,
		.first_branch = 2,
		.rests = true, .idle_watts = 16, .watts = 150, .least_watts = 100,
		.idle_celsius = 34, .load_celsius = 70,
		.idle_mhz = 210, .mhz = 1695,
		.idle_memory_mhz = 405, .memory_mhz = 6251,
	}, {
		.name = "A100", .product = "NVIDIA A100-SXM4-40GB",
		.memory_mib = 40536,
		.arch = 0x170, .impl = 0, .device = 0x20b0, .subsystem = 0x1450,
		.sm = 0x800, .sms = 108, .warps = 64, .cores_per_sm = 64,
		.gpfifo = 0xc56f, .compute = 0xc6c0, .graphics = 0xc697,
		.copy = 0xc6b5, .usermode = 0xc561, .usermode_base = 0xc461,
		.first_branch = 1,
		.idle_watts = 52, .watts = 400, .least_watts = 100,
		.idle_celsius = 32, .load_celsius = 60,
		.idle_mhz = 210, .mhz = 1410,
		.idle_memory_mhz = 1215, .memory_mhz = 1215,
	}, {
		.name = "P4", .product = "Tesla P4", .memory_mib = 7611,
		.arch = 0x130, .impl = 4, .device = 0x1bb3, .subsystem = 0x11d8,
		.sm = 0x601, .sms = 20, .warps = 64, .cores_per_sm = 128,
		.gpfifo = 0xc06f, .compute = 0xc1c0, .graphics = 0xc197,
		.copy = 0xc0b5,
		.rests = true, .idle_watts = 7, .watts = 75, .least_watts = 60,
		.idle_celsius = 36, .load_celsius = 78,
		.idle_mhz = 455, .mhz = 1113,
		.idle_memory_mhz = 405, .memory_mhz = 3003,
	}, {
		.name = "P100", .product = "Tesla P100-PCIE-16GB",
		.memory_mib = 16280,
		.arch = 0x130, .impl = 0, .device = 0x15f8, .subsystem = 0x118f,
		.sm = 0x600, .sms = 56, .warps = 64, .cores_per_sm = 64,
		.gpfifo = 0xc06f, .compute = 0xc0c0, .graphics = 0xc097,
		.copy = 0xc0b5,
		.idle_watts = 27, .watts = 250, .least_watts = 125,
		.idle_celsius = 33, .load_celsius = 66,
		.idle_mhz = 405, .mhz = 1328,
		.idle_memory_mhz = 715, .memory_mhz = 715,
	}, {
		.name = "H100", .product = "NVIDIA H100 PCIe",
		.memory_mib = 81559,
		.arch = 0x180, .impl = 0, .device = 0x2331, .subsystem = 0x1626,
		.sm = 0x900, .sms = 114, .warps = 64, .cores_per_sm = 128,
		.gpfifo = 0xc86f, .compute = 0xcbc0, .graphics = 0xcb97,
		.copy = 0xc8b5, .usermode = 0xc661, .usermode_base = 0xc561,
		.first_branch = 4,
		.idle_watts = 47, .watts = 350, .least_watts = 200,
		.idle_celsius = 34, .load_celsius = 62,
		.idle_mhz = 345, .mhz = 1755,
		.idle_memory_mhz = 1593, .memory_mhz = 1593,
	},
	{ }
};
