/* SPDX-License-Identifier: GPL-2.0-only */
/* The part of the kernel's lists that the pure files use. */
#ifndef CGPU_SHIM_LIST_H
#define CGPU_SHIM_LIST_H

#include <stddef.h>

#define shim_entry(p, type, member) \
	((type *)((char *)(p) - offsetof(type, member)))

struct list_head {
	struct list_head *next, *prev;
};

#define LIST_HEAD(name)	struct list_head name = { &(name), &(name) }

static inline int list_empty(const struct list_head *h)
{
	return h->next == h;
}

static inline void list_add_tail(struct list_head *n, struct list_head *h)
{
	n->prev = h->prev;
	n->next = h;
	h->prev->next = n;
	h->prev = n;
}

static inline void list_del(struct list_head *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
}

static inline void list_splice_tail(struct list_head *l, struct list_head *h)
{
	while (!list_empty(l)) {
		struct list_head *n = l->next;

		list_del(n);
		list_add_tail(n, h);
	}
}

#define list_first_entry(h, type, member) \
	shim_entry((h)->next, type, member)
#define list_for_each_entry(p, h, member) \
	for (p = shim_entry((h)->next, __typeof__(*p), member); \
	     &p->member != (h); \
	     p = shim_entry(p->member.next, __typeof__(*p), member))

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

#define INIT_HLIST_HEAD(h)	((h)->first = NULL)

static inline void hlist_add_head(struct hlist_node *n, struct hlist_head *h)
{
	n->next = h->first;
	if (h->first)
		h->first->pprev = &n->next;
	h->first = n;
	n->pprev = &h->first;
}

static inline void hlist_del_init(struct hlist_node *n)
{
	if (!n->pprev)
		return;
	*n->pprev = n->next;
	if (n->next)
		n->next->pprev = n->pprev;
	n->next = NULL;
	n->pprev = NULL;
}

#define shim_hentry(p, type, member) \
	((p) ? shim_entry(p, type, member) : NULL)
#define hlist_for_each_entry(p, h, member) \
	for (p = shim_hentry((h)->first, __typeof__(*p), member); p; \
	     p = shim_hentry(p->member.next, __typeof__(*p), member))
#define hlist_for_each_entry_safe(p, n, h, member) \
	for (p = shim_hentry((h)->first, __typeof__(*p), member); \
	     p && ((n = p->member.next), 1); \
	     p = shim_hentry(n, __typeof__(*p), member))

#endif
