// SPDX-License-Identifier: GPL-2.0-only
#include <kunit/test.h>
#include "../replies.h"

#define MIB	0x100000ULL

static bool is_odd(const void *arg, u32 pid)
{
	return pid & 1;
}

static const struct cgpu_view view = {
	.limit = 6043 * MIB, .used = 1000 * MIB, .gpu_ids = { 0x1e00 },
	.gpus = 1, .has_pid = is_odd,
};

static void run(u32 cmd, void *reply, u32 size)
{
	const struct cgpu_reply *r = cgpu_reply_find(cmd, size);

	if (r)
		r->change(reply, size, &view);
}

static void every_way_of_adding_up_gives_the_limit(struct kunit *test)
{
	static const u32 asked[] = { 7, 8, 9, 0x20, 0x10, 0x16, 0x12, 0x27 };
	struct nv2080_ctrl_fb_get_info_v2_params p = { .fb_info_list_size = 8 };
	struct nv2080_ctrl_fb_info *e = p.fb_info_list;
	u32 i;

	for (i = 0; i < 8; i++)
		e[i] = (struct nv2080_ctrl_fb_info){ asked[i], 15471616 };
	run(NV2080_CTRL_FB_GET_INFO_V2, &p, sizeof(p));
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, e[i].data, 6043 << 10);
	KUNIT_EXPECT_EQ(test, e[4].data, 0);
	KUNIT_EXPECT_EQ(test, e[5].data, 5043 << 10);
	KUNIT_EXPECT_EQ(test, e[6].data, 5043 << 10);
	KUNIT_EXPECT_EQ(test, e[7].data, 15471616);
}

static void a_count_beyond_the_buffer_is_cut(struct kunit *test)
{
	struct nv2080_ctrl_fb_get_info_v2_params p = {
		.fb_info_list_size = 0xffffffff,
	};

	run(NV2080_CTRL_FB_GET_INFO_V2, &p, sizeof(p));
	run(NV2080_CTRL_FB_GET_INFO_V2, &p, 20);
	KUNIT_EXPECT_EQ(test, p.fb_info_list_size, 0xffffffff);
}

static void only_own_processes_are_told(struct kunit *test)
{
	static struct nv2080_ctrl_gpu_get_pids_params p = {
		.pid_tbl_count = 4, .pid_tbl = { 1, 2, 3, 4 },
	};
	static struct nv2080_ctrl_gpu_get_pid_info_params q = {
		.pid_info_list_count = 2,
	};

	run(NV2080_CTRL_GPU_GET_PIDS, &p, sizeof(p));
	KUNIT_EXPECT_EQ(test, p.pid_tbl_count, 2);
	KUNIT_EXPECT_EQ(test, p.pid_tbl[1], 3);
	KUNIT_EXPECT_EQ(test, p.pid_tbl[2], 0);
	q.pid_info_list[0].pid = 1;
	q.pid_info_list[0].data.mem_private = 5;
	q.pid_info_list[1].pid = 2;
	q.pid_info_list[1].data.mem_private = 5;
	run(NV2080_CTRL_GPU_GET_PID_INFO, &q, sizeof(q));
	KUNIT_EXPECT_EQ(test, q.pid_info_list[0].data.mem_private, 5);
	KUNIT_EXPECT_EQ(test, q.pid_info_list[1].data.mem_private, 0);
}

static void only_own_gpus_are_told(struct kunit *test)
{
	struct nv0000_ctrl_gpu_get_attached_ids_params p = {
		.gpu_ids = { 0x100, 0x1e00, 0xffffffff },
	};
	static struct nv_ioctl_card_info cards[NV_MAX_DEVICES];

	run(NV0000_CTRL_GPU_GET_ATTACHED_IDS, &p, sizeof(p));
	KUNIT_EXPECT_EQ(test, p.gpu_ids[0], 0x1e00);
	KUNIT_EXPECT_EQ(test, p.gpu_ids[1], 0xffffffff);
	cards[0] = (struct nv_ioctl_card_info){ .valid = 1, .gpu_id = 0x100 };
	cards[1] = (struct nv_ioctl_card_info){ .valid = 1, .gpu_id = 0x1e00 };
	cgpu_reply_cards(cards, sizeof(cards), &view);
	KUNIT_EXPECT_FALSE(test, cards[0].valid);
	KUNIT_EXPECT_TRUE(test, cards[1].valid);
}

static void regions_add_up_to_the_limit(struct kunit *test)
{
	static struct nv2080_ctrl_cmd_fb_get_fb_region_info_params p = {
		.num_fb_regions = 3,
	};

	p.fb_region[0].limit = 6000 * MIB - 1;
	p.fb_region[1].base = 6000 * MIB;
	p.fb_region[1].limit = 8000 * MIB - 1;
	p.fb_region[2].base = 8000 * MIB;
	p.fb_region[2].limit = 9000 * MIB - 1;
	run(NV2080_CTRL_FB_GET_FB_REGION_INFO, &p, sizeof(p));
	KUNIT_EXPECT_EQ(test, p.num_fb_regions, 2);
	KUNIT_EXPECT_EQ(test, p.fb_region[1].limit, 6043 * MIB - 1);
}

static void other_controls_and_sizes_are_left_alone(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, cgpu_reply_find(0x20800110, 132));
	KUNIT_EXPECT_FALSE(test, cgpu_reply_find(NV2080_CTRL_GPU_GET_PIDS, 12));
}

static struct kunit_case replies_cases[] = {
	KUNIT_CASE(every_way_of_adding_up_gives_the_limit),
	KUNIT_CASE(a_count_beyond_the_buffer_is_cut),
	KUNIT_CASE(only_own_processes_are_told),
	KUNIT_CASE(only_own_gpus_are_told),
	KUNIT_CASE(regions_add_up_to_the_limit),
	KUNIT_CASE(other_controls_and_sizes_are_left_alone),
	{}
};

static struct kunit_suite replies_suite = {
	.name = "cgpu-replies", .test_cases = replies_cases,
};

kunit_test_suite(replies_suite);
