/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Layouts and numbers of NVIDIA's RM interface, driver branches 418 to 580.
 *
 * Nothing but facts: ioctl numbers, argument layouts, status codes, classes
 * and controls that the module and the simulated driver need. No behaviour.
 *
 * Where they come from, block by block:
 *   [O]  the vendor's MIT licensed headers (open-gpu-kernel-modules 515 to
 *        595, src/common/sdk/nvidia/inc and kernel-open/common/inc)
 *   [U]  kernel-open/nvidia-uvm/uvm_ioctl.h and uvm_linux_ioctl.h
 *   [M]  measured: the vendor's libraries of the branch on a fake driver
 *
 * Names are the vendor's in snake case, so that tests/kmod/test_abi.py can
 * compare field by field with independent copies. A suffix is the first
 * branch that has the layout: nv_x_550 is 550 and later, nv_x the oldest.
 * Alignment is natural: every hole of the vendor's is one of ours.
 */
#ifndef CGPU_ABI_NVIDIA_RM_H
#define CGPU_ABI_NVIDIA_RM_H

#include "nv_numbers.h"
#include "nv_escape.h"
#include "nv_escape_os.h"
#include "nv_object.h"
#include "nv_control.h"
#include "nv_uvm.h"
#include "nv_offset.h"

#endif
