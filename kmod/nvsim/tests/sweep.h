/* SPDX-License-Identifier: GPL-2.0-only */
/* What the sweep and its host share. */
#ifndef NVSIM_SWEEP_H
#define NVSIM_SWEEP_H

#include "../engine.h"

#define PAGE		4096u
#define ARENA		(256u << 10)
#define CONTROLS	2	/* files of the control node; the card's comes behind them */
#define FILES		(CONTROLS + 1)
#define UVMS		2

/* The only memory that calls may point to. */
extern u8 *arena;
extern struct nvsim_file files[FILES];
extern struct nvsim_uvm uvms[UVMS];
/* What the core holds of the host; all 0 when every file is closed. */
extern int backings, tasks, file_refs;

struct nvsim_backing *backing_of(u64 bytes, u64 first);

#endif
