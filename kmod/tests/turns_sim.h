/* SPDX-License-Identifier: GPL-2.0-only */
/* The GPU and its programs in simulated time: turns_sim.c plays them, turns_cases.c says what must come out. */
#ifndef CGPU_TURNS_SIM_H
#define CGPU_TURNS_SIM_H

#include "shim/cgpu.h"

#define MOST		20
#define US		1000ULL
#define MS		1000000ULL
#define NEVER		U64_MAX

enum doing { LAUNCHES, KNOCKS, AWAITS };

/*
 * struct program - one instance's
 * @kernel_ns: how long a kernel takes; short ones are launched in rows, two of them in flight
 * @launch_ns: how long it takes to launch one
 * @sleep_ns: of high priority: between a kernel and the next one; 0 = always has work
 * @highprio: of high priority, and always has work
 * @rests: exists, and has no work
 * @events: a row ends with an entry that takes next to nothing
 * @woke_ns: when it woke, and the longest that a kernel took from there
 * @next_ns: when it goes on with what it is @doing
 * @rows: launched so far
 * @left_ns: of the kernel that runs
 */
struct program {
	u64 kernel_ns;
	u32 weight;
	u64 launch_ns;
	u64 sleep_ns;
	bool highprio;
	bool rests;
	bool events;
	u64 woke_ns, worst_ns;
	struct cgpu_share share;
	enum doing doing;
	u64 next_ns;
	u32 written, latched, done, until;
	bool bell;
	u32 rows;
	u32 in_row;
	u64 stamp;
	u64 left_ns;
	u64 busy_ns;
};

/*
 * struct world - the GPU
 * @given: how often it was given to an instance
 * @allowed: beside the contract's tolerance
 */
struct world {
	struct cgpu_gpu gpu;
	struct program *p;
	int n;
	u64 now;
	u64 look_ns, engine_ns, time_ns;
	int owner;
	bool kicked;
	u64 noise;
	u32 policy;
	u64 given;
	const struct cgpu_share *had;
	double allowed;
};

extern struct world w;

u64 noise(u64 most);
void start(struct program *p, int n, u32 policy);
void run(u64 until);

#endif
