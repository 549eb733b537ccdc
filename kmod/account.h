/* SPDX-License-Identifier: GPL-2.0-only */
/* Bytes of one instance on one GPU. Arithmetic only; the caller locks. */
#ifndef CGPU_ACCOUNT_H
#define CGPU_ACCOUNT_H

#include <linux/types.h>

/**
 * struct cgpu_account - memory of one share
 * @limit: bytes that may be in use
 * @used: bytes in use
 * @peak: most bytes ever in use
 * @oom: refused charges
 */
struct cgpu_account {
	u64 limit;
	u64 used;
	u64 peak;
	u64 oom;
};

bool cgpu_try_charge(struct cgpu_account *a, u64 bytes);
void cgpu_charge_more(struct cgpu_account *a, u64 bytes);
void cgpu_uncharge(struct cgpu_account *a, u64 bytes);
int cgpu_set_limit(struct cgpu_account *a, u64 limit);
u64 cgpu_free(const struct cgpu_account *a);

#endif
