// SPDX-License-Identifier: GPL-2.0-only
/* The round: who takes part, what each owes, who is next. See sched.h. */
#include "sched_round.h"

#ifdef __KERNEL__
#include <linux/limits.h>
#include <linux/minmax.h>
#else
#include "tests/shim/host.h"
#endif

#define GRANT_MOST		4	/* turns that may be made up at once */
#define GRANT_LEAST		4	/* a turn is worth a switch from 1/4 */

/* Policies in which a turn passes whether its owner has work or not. */
bool cgpu_round_keeps_idle(const struct cgpu_sched *s)
{
	return s->conf.policy == CGPU_FAIR || s->conf.policy == CGPU_WEIGHTED ||
	       s->conf.policy == CGPU_FIXED;
}

/* Policies whose shares are parts of the wall time. */
static bool has_rest(const struct cgpu_sched *s)
{
	return s->conf.policy == CGPU_FAIR || s->conf.policy == CGPU_FIXED;
}

static u32 slices_of(const struct cgpu_sched *s, int ent)
{
	const struct cgpu_entity *e = &s->entity[ent];

	if (ent == REST || !e->weight)
		return e->weight;
	return s->conf.policy == CGPU_WEIGHTED || s->conf.policy == CGPU_FIXED ?
	       e->weight : 1;
}

u64 cgpu_round_quota(const struct cgpu_sched *s, int ent)
{
	return slices_of(s, ent) * s->conf.slice_ns;
}

/* The slices of a round that no instance has, held by the last slot. */
void cgpu_round_update(struct cgpu_sched *s)
{
	struct cgpu_entity *rest = &s->entity[REST];
	u32 taken = 0;
	int i;

	for (i = 0; i < REST; i++)
		if (s->entity[i].present)
			taken += slices_of(s, i);
	rest->weight = has_rest(s) && taken < s->conf.max_inst ?
		       s->conf.max_inst - taken : 0;
	rest->present = rest->weight > 0;
}

bool cgpu_round_takes_part(const struct cgpu_sched *s, int ent)
{
	const struct cgpu_entity *e = &s->entity[ent];

	if (!e->present || !slices_of(s, ent))
		return false;
	return e->busy || (cgpu_round_keeps_idle(s) && !e->highprio);
}

static bool class_takes_part(const struct cgpu_sched *s, bool highprio)
{
	int i;

	for (i = 0; i < SLOTS; i++)
		if (s->entity[i].highprio == highprio && cgpu_round_takes_part(s, i))
			return true;
	return false;
}

s64 cgpu_round_clamp(const struct cgpu_sched *s, s64 debt)
{
	s64 most = s->conf.debt_ns;

	return clamp_t(s64, debt, -most, most);
}

/* What the classes owe each other: only counted while both want the GPU. */
static void charge_class(struct cgpu_sched *s, int ent, u64 used)
{
	s64 part;

	if (s->entity[ent].highprio) {
		part = used * (100 - s->conf.prio_ratio) / 100;
		if (class_takes_part(s, false))
			s->credit_ns = cgpu_round_clamp(s, s->credit_ns + part);
		return;
	}
	part = used * s->conf.prio_ratio / 100;
	if (class_takes_part(s, true))
		s->credit_ns = cgpu_round_clamp(s, s->credit_ns - part);
	else if (s->credit_ns > 0)
		s->credit_ns = max_t(s64, 0, s->credit_ns - part);
}

void cgpu_round_charge(struct cgpu_sched *s, int ent, s64 debt, u64 used)
{
	struct cgpu_entity *e = &s->entity[ent];

	e->debt_ns = cgpu_round_clamp(s, e->debt_ns + debt);
	e->own_ns = cgpu_round_clamp(s, e->own_ns + debt);
	charge_class(s, ent, used);
}

static void owe(struct cgpu_sched *s, int ent, s64 ns)
{
	s->entity[ent].debt_ns = cgpu_round_clamp(s, s->entity[ent].debt_ns + ns);
}

static bool rests(const struct cgpu_sched *s, int ent)
{
	return ent != s->current_ent && !s->entity[ent].busy &&
	       cgpu_round_takes_part(s, ent);
}

/*
 * Time that nobody had comes out of the slices that nobody has, or out of those
 * of instances that rest; they do not owe it any more when they wake.
 */
void cgpu_round_lose(struct cgpu_sched *s, s64 lost)
{
	s64 all = 0;
	int i;

	if (s->entity[REST].present) {
		owe(s, REST, lost);
		return;
	}
	for (i = 0; i < REST; i++)
		if (rests(s, i))
			all += slices_of(s, i);
	for (i = 0; all && i < REST; i++)
		if (rests(s, i))
			owe(s, i, lost * slices_of(s, i) / all);
}

static s64 least_grant(u64 quota)
{
	return quota / GRANT_LEAST;
}

/* How many rounds until an instance may have a turn again. */
static u64 rounds_owed(const struct cgpu_sched *s, int ent)
{
	u64 quota = cgpu_round_quota(s, ent);
	s64 owed = s->entity[ent].debt_ns + least_grant(quota) - (s64)quota;

	return owed <= 0 ? 0 : (owed + quota - 1) / quota;
}

/* Lets the rounds pass in which everybody of a class would only pay debt. */
static void pass_rounds(struct cgpu_sched *s, bool highprio)
{
	u64 rounds = U64_MAX;
	int i;

	for (i = 0; i < SLOTS; i++)
		if (cgpu_round_takes_part(s, i) && s->entity[i].highprio == highprio)
			rounds = min_t(u64, rounds, rounds_owed(s, i));
	if (!rounds || rounds == U64_MAX)
		return;
	for (i = 0; i < SLOTS; i++)
		if (cgpu_round_takes_part(s, i) && s->entity[i].highprio == highprio)
			s->entity[i].debt_ns -= rounds * cgpu_round_quota(s, i);
}

u64 cgpu_round_grant(struct cgpu_sched *s, int ent)
{
	struct cgpu_entity *e = &s->entity[ent];
	s64 quota = cgpu_round_quota(s, ent);
	s64 length = min_t(s64, quota - e->debt_ns, GRANT_MOST * quota);

	e->debt_ns += length - quota;
	return length;
}

/* The next of a class in the round; who owes too much pays and is passed. */
static int pick_of_class(struct cgpu_sched *s, bool highprio)
{
	int step, ent;

	pass_rounds(s, highprio);
	for (step = 1; step <= 2 * SLOTS; step++) {
		ent = (s->cursor[highprio] + step) % SLOTS;
		if (!cgpu_round_takes_part(s, ent) || s->entity[ent].highprio != highprio)
			continue;
		if (!rounds_owed(s, ent)) {
			s->cursor[highprio] = ent;
			return ent;
		}
		s->entity[ent].debt_ns -= cgpu_round_quota(s, ent);
	}
	return CGPU_NONE;
}

/* Who was picked and gets no turn is the next of its class again. */
void cgpu_round_return(struct cgpu_sched *s, int ent)
{
	s->cursor[s->entity[ent].highprio] = (ent + SLOTS - 1) % SLOTS;
}

int cgpu_round_pick(struct cgpu_sched *s)
{
	bool high = class_takes_part(s, true);
	bool low = class_takes_part(s, false);

	if (high && (!low || s->credit_ns <= 0))
		return pick_of_class(s, true);
	return low ? pick_of_class(s, false) : CGPU_NONE;
}
