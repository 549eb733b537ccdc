// SPDX-License-Identifier: GPL-2.0-only
#include <kunit/test.h>
#include "../objects.h"

#define CLIENT	0xc1d00001

static struct cgpu_objs table;
static struct cgpu_obj pool[64];
static int used;
static int file_a, file_b;

static struct cgpu_obj *enter(struct cgpu_obj what)
{
	struct cgpu_obj *o = &pool[used++];

	*o = what;
	o->owner = &file_a;
	o->gpu = -1;
	o->pid = 1;
	cgpu_objs_add(&table, o);
	return o;
}

static struct cgpu_obj *add(u32 client, u32 handle, u32 parent,
			    struct cgpu_phys *phys)
{
	if (phys)
		phys->refs++;
	return enter((struct cgpu_obj){
		.client = client, .handle = handle, .parent = parent,
		.phys = phys,
	});
}

static struct cgpu_obj *add_needing(u32 handle, u32 parent, u32 needs)
{
	return enter((struct cgpu_obj){
		.client = CLIENT, .handle = handle, .parent = parent,
		.needs = needs,
	});
}

static void fresh(void)
{
	used = 0;
	cgpu_objs_init(&table);
	add(CLIENT, CLIENT, 0, NULL);
	add(CLIENT, 1, CLIENT, NULL)->gpu = 3;
}

static int removed(u32 client, u32 handle)
{
	struct cgpu_obj *o;
	LIST_HEAD(freed);
	int n = 0;

	cgpu_objs_remove(&table, client, handle, &freed);
	list_for_each_entry(o, &freed, freed)
		n++;
	return n;
}

static void gpu_is_the_parents(struct kunit *test)
{
	fresh();
	KUNIT_EXPECT_EQ(test, add(CLIENT, 2, 1, NULL)->gpu, 3);
	KUNIT_EXPECT_EQ(test, add(CLIENT, 3, 99, NULL)->gpu, -1);
}

static void free_takes_children_and_dependants(struct kunit *test)
{
	fresh();
	add(CLIENT, 2, 1, NULL);
	add(CLIENT, 3, 2, NULL);
	add_needing(4, 1, 3);
	add(CLIENT, 5, 1, NULL);
	KUNIT_EXPECT_EQ(test, removed(CLIENT, 2), 3);
	KUNIT_EXPECT_TRUE(test, cgpu_objs_find(&table, CLIENT, 5));
	KUNIT_EXPECT_FALSE(test, cgpu_objs_find(&table, CLIENT, 4));
	KUNIT_EXPECT_EQ(test, removed(CLIENT, 2), 0);
}

static void an_orphan_falls_with_what_came_after_it(struct kunit *test)
{
	fresh();
	add(CLIENT, 3, 2, NULL);
	add_needing(4, 1, 5);
	add(CLIENT, 2, 1, NULL);
	add(CLIENT, 5, 1, NULL);
	KUNIT_EXPECT_EQ(test, removed(CLIENT, 2), 2);
	KUNIT_EXPECT_EQ(test, removed(CLIENT, 5), 2);
	KUNIT_EXPECT_EQ(test, table.count, 2);
	KUNIT_EXPECT_EQ(test, table.orphans, 0);
}

static void nobody_leans_on_a_leaf(struct kunit *test)
{
	struct cgpu_obj *device;

	fresh();
	device = cgpu_objs_find(&table, CLIENT, 1);
	add(CLIENT, 2, 1, NULL);
	add_needing(3, 1, 2);
	KUNIT_EXPECT_EQ(test, device->users, 2);
	KUNIT_EXPECT_EQ(test, removed(CLIENT, 3), 1);
	KUNIT_EXPECT_EQ(test, removed(CLIENT, 2), 1);
	KUNIT_EXPECT_EQ(test, device->users, 0);
}

static void client_takes_all_of_its_own_only(struct kunit *test)
{
	fresh();
	add(CLIENT, 2, 1, NULL);
	add(CLIENT + 1, CLIENT + 1, 0, NULL);
	add(CLIENT + 1, 2, CLIENT + 1, NULL);
	KUNIT_EXPECT_EQ(test, removed(CLIENT, CLIENT), 3);
	KUNIT_EXPECT_EQ(test, table.count, 2);
}

static void closing_a_file_takes_its_objects_only(struct kunit *test)
{
	LIST_HEAD(freed);

	fresh();
	add(CLIENT + 1, CLIENT + 1, 0, NULL)->owner = &file_b;
	cgpu_objs_remove_owner(&table, &file_a, &freed);
	KUNIT_EXPECT_EQ(test, table.count, 1);
}

static void shared_memory_is_given_back_once(struct kunit *test)
{
	struct cgpu_phys phys = { .bytes = 10, .gpu = 3 };

	fresh();
	add(CLIENT, 2, 1, &phys);
	add(CLIENT, 3, 1, &phys);
	KUNIT_EXPECT_EQ(test, cgpu_objs_bytes(&table, 1, 3), 10);
	removed(CLIENT, 2);
	KUNIT_EXPECT_FALSE(test, cgpu_phys_put(&phys));
	KUNIT_EXPECT_EQ(test, cgpu_objs_bytes(&table, 1, 3), 10);
	removed(CLIENT, 3);
	KUNIT_EXPECT_TRUE(test, cgpu_phys_put(&phys));
}

static void what_is_held_outlives_its_handles(struct kunit *test)
{
	struct cgpu_phys phys = { .bytes = 10, .gpu = 3, .holds = 1 };

	fresh();
	add(CLIENT, 2, 1, &phys);
	KUNIT_EXPECT_EQ(test, cgpu_objs_bytes(&table, 1, 3), 10);
	removed(CLIENT, 2);
	KUNIT_EXPECT_FALSE(test, cgpu_phys_put(&phys));
}

static struct kunit_case objects_cases[] = {
	KUNIT_CASE(gpu_is_the_parents),
	KUNIT_CASE(free_takes_children_and_dependants),
	KUNIT_CASE(an_orphan_falls_with_what_came_after_it),
	KUNIT_CASE(nobody_leans_on_a_leaf),
	KUNIT_CASE(client_takes_all_of_its_own_only),
	KUNIT_CASE(closing_a_file_takes_its_objects_only),
	KUNIT_CASE(shared_memory_is_given_back_once),
	KUNIT_CASE(what_is_held_outlives_its_handles),
	{}
};

static struct kunit_suite objects_suite = {
	.name = "cgpu-objects", .test_cases = objects_cases,
};

kunit_test_suite(objects_suite);
