/* SPDX-License-Identifier: GPL-2.0-only */
/* The GPU and its programs in simulated time: sched_sim.c plays them, sched_cases.c says what must come out. */
#ifndef CGPU_SCHED_SIM_H
#define CGPU_SCHED_SIM_H

#include "shim/host.h"
#include "../sched.h"

#define MOST		20
#define US		1000ULL
#define MS		1000000ULL

struct program {
	u64 kernel_ns;
	u32 depth;
	u32 weight;
	bool highprio;
	bool idle;		/* exists, but has no work */
	u64 gap_ns;		/* between the end of a kernel and the next launch */
	u64 ready_ns;		/* when it launches next */
	u32 outstanding;
	u64 left_ns;		/* of the kernel that runs */
	u64 busy_ns;
	u64 launches;
};

struct world {
	struct cgpu_sched sched;
	struct program *p;
	int n;
	u64 now;
	u64 gone;
	int open;
	u64 gap_ns;		/* seen in the turn, not charged yet */
	u64 changes;
	u64 noise;
};

void start(struct world *w, struct program *p, int n, u32 policy);
void run(struct world *w, u64 until);

#endif
