/* SPDX-License-Identifier: GPL-2.0-only */
/* Doubly linked lists with the kernel's names. */
#ifndef SHIM_LIST_H
#define SHIM_LIST_H

#include <linux/kernel.h>

struct list_head {
	struct list_head *next, *prev;
};

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

#define LIST_HEAD(name) struct list_head name = { &(name), &(name) }
#define INIT_HLIST_HEAD(head) ((head)->first = NULL)

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head->prev = head;
}

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline void list_insert(struct list_head *node, struct list_head *before)
{
	node->next = before;
	node->prev = before->prev;
	before->prev->next = node;
	before->prev = node;
}

static inline void list_add_tail(struct list_head *node, struct list_head *head)
{
	list_insert(node, head);
}

static inline void list_del(struct list_head *node)
{
	node->next->prev = node->prev;
	node->prev->next = node->next;
}

static inline void list_del_init(struct list_head *node)
{
	list_del(node);
	INIT_LIST_HEAD(node);
}

static inline void list_move_tail(struct list_head *node, struct list_head *head)
{
	list_del(node);
	list_add_tail(node, head);
}

static inline void list_splice_tail_init(struct list_head *from, struct list_head *to)
{
	while (!list_empty(from))
		list_move_tail(from->next, to);
}

#define list_splice_init(from, to) list_splice_tail_init(from, to)
#define list_entry(at, type, member) container_of(at, type, member)
#define list_first_entry(head, type, member) list_entry((head)->next, type, member)
#define list_next_entry(at, member) list_entry((at)->member.next, __typeof__(*(at)), member)
#define list_for_each_entry(at, head, member) \
	for (at = list_first_entry(head, __typeof__(*at), member); \
	     &at->member != (head); at = list_next_entry(at, member))
#define list_for_each_entry_safe(at, following, head, member) \
	for (at = list_first_entry(head, __typeof__(*at), member), \
	     following = list_next_entry(at, member); \
	     &at->member != (head); \
	     at = following, following = list_next_entry(following, member))

static inline void hlist_add_head(struct hlist_node *node, struct hlist_head *head)
{
	node->next = head->first;
	if (head->first)
		head->first->pprev = &node->next;
	head->first = node;
	node->pprev = &head->first;
}

static inline void hlist_del(struct hlist_node *node)
{
	*node->pprev = node->next;
	if (node->next)
		node->next->pprev = node->pprev;
}

#define hlist_entry_safe(at, type, member) \
	({ __typeof__(at) _at = (at); _at ? container_of(_at, type, member) : NULL; })
#define hlist_for_each_entry(at, head, member) \
	for (at = hlist_entry_safe((head)->first, __typeof__(*at), member); at; \
	     at = hlist_entry_safe(at->member.next, __typeof__(*at), member))

#endif
