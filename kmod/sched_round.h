/* SPDX-License-Identifier: GPL-2.0-only */
/* What sched.c uses of sched_round.c; nobody else does. */
#ifndef CGPU_SCHED_ROUND_H
#define CGPU_SCHED_ROUND_H

#include "sched.h"

#define REST			CGPU_MAX_INST	/* the slices that nobody has */
#define SLOTS			(CGPU_MAX_INST + 1)

bool cgpu_round_keeps_idle(const struct cgpu_sched *s);
void cgpu_round_update(struct cgpu_sched *s);
bool cgpu_round_takes_part(const struct cgpu_sched *s, int ent);
s64 cgpu_round_clamp(const struct cgpu_sched *s, s64 debt);
void cgpu_round_charge(struct cgpu_sched *s, int ent, s64 debt, u64 used);
void cgpu_round_lose(struct cgpu_sched *s, s64 lost);
u64 cgpu_round_grant(struct cgpu_sched *s, int ent);
int cgpu_round_pick(struct cgpu_sched *s);
void cgpu_round_return(struct cgpu_sched *s, int ent);
u64 cgpu_round_quota(const struct cgpu_sched *s, int ent);

#endif
