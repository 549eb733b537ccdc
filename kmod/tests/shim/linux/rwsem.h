/* SPDX-License-Identifier: GPL-2.0-only */
/* Its part of the kernel is in ../cgpu.h. */
