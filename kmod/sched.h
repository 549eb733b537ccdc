/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who may submit work to a GPU, and until when.
 *
 * Arithmetic only: no lock, no clock, no allocation. The caller (slices.c)
 * serialises the calls, says what time it is and opens and closes the gates.
 *
 * Turns go round, weighted: a turn is a grant of weight * slice. Work cannot
 * be taken back from a GPU, so a turn lasts until the work that was submitted
 * in it has left the GPU. What it took beyond its grant is its debt, what it
 * missed is a negative debt, and both change the next grants. Over the window
 * of debt_ns the shares therefore hold for every length of kernel.
 */
#ifndef CGPU_SCHED_H
#define CGPU_SCHED_H

#include <linux/types.h>

#define CGPU_MAX_INST		25
#define CGPU_NONE		(-1)
#define CGPU_ALL		(-2)

enum cgpu_policy {
	CGPU_FAIR,			/* 1/max_inst each, never more */
	CGPU_PREEMPTIVE,		/* equal among those with work */
	CGPU_WEIGHTED,			/* by weight among those that exist */
	CGPU_FIXED,			/* weight/max_inst each, never more */
	CGPU_SOFT,			/* preemptive, but a slice may run over */
	CGPU_NATIVE,			/* the driver decides */
	CGPU_POLICIES
};

/**
 * struct cgpu_sched_conf - what an administrator sets for one GPU
 * @policy: one of enum cgpu_policy
 * @max_inst: number of slices in a round of the policies without borrowing
 * @prio_ratio: percent of the GPU that high-priority instances may take
 * @slice_ns: length of one slice
 * @debt_ns: how much debt of one instance is remembered
 */
struct cgpu_sched_conf {
	u32 policy;
	u32 max_inst;
	u32 prio_ratio;
	u64 slice_ns;
	u64 debt_ns;
};

/**
 * struct cgpu_entity - one instance as the scheduler sees it
 * @present: the slot is taken
 * @highprio: belongs to the high-priority class
 * @busy: has work, or waits for its turn
 * @weight: slices in a turn; 0 gets none
 * @debt_ns: time taken beyond the grants; negative: time missed
 * @own_ns: of an instance that rests: what of it is owed for its own work
 * @changed_ns: when @busy changed last
 * @turns: turns given
 */
struct cgpu_entity {
	bool present;
	bool highprio;
	bool busy;
	u32 weight;
	s64 debt_ns;
	s64 own_ns;
	u64 changed_ns;
	u64 turns;
};

enum cgpu_sched_state {
	CGPU_IDLE,			/* nobody has the GPU */
	CGPU_OPEN,			/* @current may submit */
	CGPU_DRAIN,			/* gate closed, its work still runs */
};

/**
 * struct cgpu_sched - the turns of one GPU
 * @conf: settings
 * @entity: the instances; the last slot stands for the slices that nobody has
 * @state: what @current is allowed to do
 * @current_ent: whose turn it is, CGPU_NONE if nobody's
 * @pending: whose turn comes once the work of @current_ent is gone
 * @cursor: where the round of each class stands
 * @start_ns: when the turn began
 * @grant_ns: how long the turn is
 * @skipped_ns: time of the turn that is not charged
 * @closed_ns: when the gate was closed
 * @pending_debt: debt of @pending before it was granted a turn
 * @pending_grant: the turn that was granted to @pending
 * @credit_ns: what the high-priority class has had beyond prio_ratio
 * @preempt: an instance of high priority has woken
 */
struct cgpu_sched {
	struct cgpu_sched_conf conf;
	struct cgpu_entity entity[CGPU_MAX_INST + 1];
	enum cgpu_sched_state state;
	int current_ent;
	int pending;
	int cursor[2];
	u64 start_ns;
	u64 grant_ns;
	u64 skipped_ns;
	u64 closed_ns;
	s64 pending_debt;
	u64 pending_grant;
	s64 credit_ns;
	bool preempt;
};

/**
 * struct cgpu_turn - what to do now
 * @open: whose gate is open, CGPU_NONE or CGPU_ALL
 * @until_ns: when to ask again, 0 = only when something changes
 */
struct cgpu_turn {
	int open;
	u64 until_ns;
};

void cgpu_sched_init(struct cgpu_sched *s, const struct cgpu_sched_conf *conf);
void cgpu_sched_configure(struct cgpu_sched *s,
			  const struct cgpu_sched_conf *conf);
int cgpu_sched_add(struct cgpu_sched *s, u32 weight, bool highprio, u64 now);
void cgpu_sched_del(struct cgpu_sched *s, int ent);
void cgpu_sched_set_weight(struct cgpu_sched *s, int ent, u32 weight,
			   bool highprio);
void cgpu_sched_set_busy(struct cgpu_sched *s, int ent, bool busy, u64 now);
struct cgpu_turn cgpu_sched_next(struct cgpu_sched *s, u64 now, u64 gone);
void cgpu_sched_skip(struct cgpu_sched *s, s64 ns);
void cgpu_sched_park(struct cgpu_sched *s);

/* What is left of the turn, ns. */
static inline u64 cgpu_sched_left(const struct cgpu_sched *s, u64 now)
{
	u64 end = s->start_ns + s->grant_ns;

	return s->state == CGPU_OPEN && end > now ? end - now : 0;
}

#endif
