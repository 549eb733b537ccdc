// SPDX-License-Identifier: GPL-2.0-only
/* Turns: they open, are over, drain and are settled. See sched.h. */
#include "sched_round.h"

#ifdef __KERNEL__
#include <linux/minmax.h>
#include <linux/string.h>
#else
#include "tests/shim/host.h"
#endif

static bool is_contended(const struct cgpu_sched *s)
{
	int i;

	for (i = 0; i < SLOTS; i++)
		if (i != s->current_ent && cgpu_round_takes_part(s, i))
			return true;
	return false;
}

static void open_turn(struct cgpu_sched *s, int ent, u64 length, u64 now)
{
	s->current_ent = ent;
	s->pending = CGPU_NONE;
	s->start_ns = now;
	s->grant_ns = length;
	s->skipped_ns = 0;
	s->state = ent == CGPU_NONE ? CGPU_IDLE : CGPU_OPEN;
	if (ent != CGPU_NONE)
		s->entity[ent].turns++;
}

/* Chooses the next instance and remembers what that took from it. */
static void choose(struct cgpu_sched *s)
{
	s->pending = cgpu_round_pick(s);
	if (s->pending == CGPU_NONE)
		return;
	s->pending_debt = s->entity[s->pending].debt_ns;
	s->pending_grant = cgpu_round_grant(s, s->pending);
}

static void give_back_choice(struct cgpu_sched *s)
{
	if (s->pending != CGPU_NONE)
		s->entity[s->pending].debt_ns = s->pending_debt;
	s->pending = CGPU_NONE;
}

/* Somebody comes before the one that was chosen, who is the next of its class. */
static void choose_again(struct cgpu_sched *s)
{
	if (s->pending != CGPU_NONE)
		cgpu_round_return(s, s->pending);
	give_back_choice(s);
	choose(s);
}

/* Who has woken is of a higher class than whoever comes next. */
static bool outranks(const struct cgpu_sched *s, int ent)
{
	return s->preempt && (ent == CGPU_NONE || !s->entity[ent].highprio);
}

static bool may_run_over(const struct cgpu_sched *s, u64 used, bool inflight)
{
	return s->conf.policy == CGPU_SOFT && inflight && !s->preempt &&
	       used < s->grant_ns + s->conf.slice_ns;
}

static bool is_over(const struct cgpu_sched *s, u64 now, bool inflight)
{
	u64 used = now - s->start_ns;

	if (outranks(s, s->current_ent))
		return true;
	if (!cgpu_round_keeps_idle(s) && !inflight &&
	    !s->entity[s->current_ent].busy)
		return true;
	return used >= s->grant_ns && !may_run_over(s, used, inflight);
}

/* Ends the turn, unless the next one is the same instance's. */
static void end_turn(struct cgpu_sched *s, u64 now)
{
	u64 used = now - s->start_ns;
	int ent = s->current_ent;

	cgpu_round_charge(s, ent, (s64)used - (s64)s->grant_ns, used);
	s->preempt = false;
	choose(s);
	s->closed_ns = now;
	if (s->pending == ent)
		open_turn(s, ent, s->pending_grant, now);
	else
		s->state = CGPU_DRAIN;
}

/* Nobody else wants the GPU: what is used now is owed to nobody. */
static void renew_turn(struct cgpu_sched *s, u64 now)
{
	if (now - s->start_ns > s->grant_ns)
		s->start_ns = now - s->grant_ns;
	s->preempt = false;
}

static void run_open(struct cgpu_sched *s, u64 now, bool inflight)
{
	if (!is_contended(s))
		renew_turn(s, now);
	else if (is_over(s, now, inflight))
		end_turn(s, now);
}

static void run_drain(struct cgpu_sched *s, u64 now, u64 gone)
{
	u64 over = gone > s->closed_ns ? gone - s->closed_ns : 0;

	if (outranks(s, s->pending))
		choose_again(s);
	s->preempt = false;
	if (!gone)
		return;
	cgpu_round_charge(s, s->current_ent, over, over);
	cgpu_round_lose(s, now - max(gone, s->closed_ns));
	if (s->pending != CGPU_NONE && !cgpu_round_takes_part(s, s->pending))
		give_back_choice(s);
	if (s->pending == CGPU_NONE)
		choose(s);
	open_turn(s, s->pending, s->pending_grant, now);
}

static void run_idle(struct cgpu_sched *s, u64 now)
{
	choose(s);
	s->preempt = false;
	open_turn(s, s->pending, s->pending_grant, now);
}

static u64 end_of_turn(const struct cgpu_sched *s, u64 now, bool inflight)
{
	u64 end = s->start_ns + s->grant_ns;

	if (may_run_over(s, end - s->start_ns, inflight) && now >= end)
		end += s->conf.slice_ns;
	return end > now ? end : now + 1;
}

/**
 * cgpu_sched_init() - prepare the turns of a GPU without instances
 * @s: the turns
 * @conf: settings; policy, max_inst and prio_ratio within their ranges
 *
 * Context: any; the caller serialises.
 */
void cgpu_sched_init(struct cgpu_sched *s, const struct cgpu_sched_conf *conf)
{
	memset(s, 0, sizeof(*s));
	s->conf = *conf;
	s->current_ent = CGPU_NONE;
	s->pending = CGPU_NONE;
	cgpu_round_update(s);
}

/**
 * cgpu_sched_configure() - change the settings; debts are kept
 * @s: the turns
 * @conf: new settings
 *
 * Context: any; the caller serialises and then asks cgpu_sched_next().
 */
void cgpu_sched_configure(struct cgpu_sched *s,
			  const struct cgpu_sched_conf *conf)
{
	int i;

	s->conf = *conf;
	for (i = 0; i < SLOTS; i++)
		s->entity[i].debt_ns = cgpu_round_clamp(s, s->entity[i].debt_ns);
	s->credit_ns = 0;
	cgpu_round_update(s);
}

/**
 * cgpu_sched_add() - a new instance
 * @s: the turns
 * @weight: slices in a turn, 0 = none
 * @highprio: whether it is of the high-priority class
 * @now: ns
 *
 * Context: any; the caller serialises.
 * Return: its number, or CGPU_NONE when all slots are taken.
 */
int cgpu_sched_add(struct cgpu_sched *s, u32 weight, bool highprio, u64 now)
{
	int i;

	for (i = 0; i < REST; i++) {
		if (s->entity[i].present)
			continue;
		s->entity[i] = (struct cgpu_entity) {
			.present = true, .highprio = highprio,
			.weight = weight, .changed_ns = now,
		};
		cgpu_round_update(s);
		return i;
	}
	return CGPU_NONE;
}

/**
 * cgpu_sched_del() - an instance is gone
 * @s: the turns
 * @ent: its number
 *
 * Context: any; the caller serialises and has closed its gate.
 */
void cgpu_sched_del(struct cgpu_sched *s, int ent)
{
	if (s->pending == ent)
		give_back_choice(s);
	memset(&s->entity[ent], 0, sizeof(s->entity[ent]));
	if (s->current_ent == ent) {
		give_back_choice(s);
		s->current_ent = CGPU_NONE;
		s->state = CGPU_IDLE;
	}
	cgpu_round_update(s);
}

/**
 * cgpu_sched_set_weight() - change weight and class of an instance
 * @s: the turns
 * @ent: its number
 * @weight: slices in a turn
 * @highprio: whether it is of the high-priority class
 *
 * Context: any; the caller serialises.
 */
void cgpu_sched_set_weight(struct cgpu_sched *s, int ent, u32 weight,
			   bool highprio)
{
	s->entity[ent].weight = weight;
	s->entity[ent].highprio = highprio;
	cgpu_round_update(s);
}

/*
 * What an instance was entitled to while it slept pays its debt. A credit
 * does not outlive a sleep of a whole round.
 */
static void settle_sleep(struct cgpu_sched *s, int ent, u64 now)
{
	struct cgpu_entity *e = &s->entity[ent];
	u64 slept = now - e->changed_ns;
	u64 all = cgpu_round_quota(s, ent), mine = all;
	int i;

	for (i = 0; i < REST; i++)
		if (i != ent && cgpu_round_takes_part(s, i))
			all += cgpu_round_quota(s, i);
	if (e->debt_ns > 0 && all)
		e->debt_ns = max_t(s64, 0, e->debt_ns -
				   (s64)(min(slept, s->conf.debt_ns * 25) /
					 all * mine));
	else if (slept > all)
		e->debt_ns = max_t(s64, 0, e->debt_ns);
}

/**
 * cgpu_sched_set_busy() - an instance has work now, or has none any more
 * @s: the turns
 * @ent: its number
 * @busy: whether it has work or waits for its gate
 * @now: ns
 *
 * Context: any; the caller serialises and then asks cgpu_sched_next().
 */
void cgpu_sched_set_busy(struct cgpu_sched *s, int ent, bool busy, u64 now)
{
	struct cgpu_entity *e = &s->entity[ent];

	if (e->busy == busy)
		return;
	if (s->state == CGPU_OPEN && !is_contended(s))
		renew_turn(s, now);
	if (busy && cgpu_round_keeps_idle(s))
		e->debt_ns = min(e->debt_ns, e->own_ns);
	else if (busy)
		settle_sleep(s, ent, now);
	e->own_ns = max_t(s64, 0, e->debt_ns);
	e->busy = busy;
	e->changed_ns = now;
	if (busy && e->highprio && s->credit_ns <= 0)
		s->preempt = true;
}

/**
 * cgpu_sched_next() - what to do now
 * @s: the turns
 * @now: ns, never less than before
 * @gone: when the last work of the instance whose turn it is left the GPU,
 *	  as well as it is known; 0 while it runs
 *
 * To be asked when the time of the last answer has come, when an instance
 * became busy or idle, and in the state CGPU_DRAIN when the work is gone.
 *
 * Context: any; the caller serialises.
 * Return: whose gate must be open (all others closed), and until when.
 */
struct cgpu_turn cgpu_sched_next(struct cgpu_sched *s, u64 now, u64 gone)
{
	struct cgpu_turn turn = { .open = CGPU_NONE };
	bool inflight = !gone;

	if (s->conf.policy == CGPU_NATIVE) {
		turn.open = CGPU_ALL;
		return turn;
	}
	if (s->state == CGPU_OPEN)
		run_open(s, now, inflight);
	if (s->state == CGPU_DRAIN)
		run_drain(s, now, gone);
	if (s->state == CGPU_IDLE)
		run_idle(s, now);
	if (s->state != CGPU_OPEN)
		return turn;
	turn.open = s->current_ent == REST ? CGPU_NONE : s->current_ent;
	if (is_contended(s))
		turn.until_ns = end_of_turn(s, now, inflight);
	return turn;
}

/**
 * cgpu_sched_skip() - time of the turn is not charged
 * @s: the turns
 * @ns: how much; negative: so much more is charged
 *
 * For the time that a thread takes to wake up when its turn begins, and for
 * gaps between kernels, up to the length of the turn. In a round of fixed
 * slices it comes out of the slices that nobody has. Once the turn is over it
 * is given back.
 *
 * Context: any; the caller serialises.
 */
void cgpu_sched_skip(struct cgpu_sched *s, s64 ns)
{
	s64 skipped = s->skipped_ns;

	if (s->state == CGPU_IDLE)
		return;
	ns = min_t(s64, ns, max_t(s64, 0, (s64)s->grant_ns - skipped));
	cgpu_round_lose(s, ns);
	s->skipped_ns = max_t(s64, 0, skipped + ns);
	if (s->state == CGPU_OPEN)
		s->start_ns += ns;
	else
		cgpu_round_charge(s, s->current_ent, -ns, 0);
}

/**
 * cgpu_sched_park() - nobody has work: time stands still until somebody has
 * @s: the turns
 *
 * Context: any; the caller serialises and has closed all gates.
 */
void cgpu_sched_park(struct cgpu_sched *s)
{
	give_back_choice(s);
	s->current_ent = CGPU_NONE;
	s->state = CGPU_IDLE;
}
