// SPDX-License-Identifier: GPL-2.0-only
/* Charges against a limit: see account.h. */
#include "account.h"

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/minmax.h>
#else
#include "tests/shim/host.h"
#endif

/**
 * cgpu_try_charge() - take bytes if the limit has room for them
 * @a: the account
 * @bytes: how many
 *
 * Context: the account's lock is held.
 * Return: whether they were taken; a refusal is counted.
 */
bool cgpu_try_charge(struct cgpu_account *a, u64 bytes)
{
	if (bytes > a->limit || a->used > a->limit - bytes) {
		a->oom++;
		return false;
	}
	cgpu_charge_more(a, bytes);
	return true;
}

/**
 * cgpu_charge_more() - take bytes that are in use already
 * @a: the account
 * @bytes: what the driver rounded an allocation up by
 *
 * Context: the account's lock is held.
 */
void cgpu_charge_more(struct cgpu_account *a, u64 bytes)
{
	a->used += bytes;
	a->peak = max(a->peak, a->used);
}

/**
 * cgpu_uncharge() - give bytes back
 * @a: the account
 * @bytes: how many, never more than are in use
 *
 * Context: the account's lock is held.
 */
void cgpu_uncharge(struct cgpu_account *a, u64 bytes)
{
	a->used -= min(bytes, a->used);
}

/**
 * cgpu_set_limit() - change the limit of a share in use
 * @a: the account
 * @limit: bytes
 *
 * Context: the account's lock is held.
 * Return: 0, or -EBUSY when more is in use.
 */
int cgpu_set_limit(struct cgpu_account *a, u64 limit)
{
	if (limit < a->used)
		return -EBUSY;
	a->limit = limit;
	return 0;
}

/**
 * cgpu_free() - what is left
 * @a: the account
 *
 * Context: the account's lock is held, or the answer is a snapshot.
 * Return: bytes, 0 when rounding has passed the limit.
 */
u64 cgpu_free(const struct cgpu_account *a)
{
	return a->limit > a->used ? a->limit - a->used : 0;
}
