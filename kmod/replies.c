// SPDX-License-Identifier: GPL-2.0-only
/* Replies with the container's own figures: see replies.h. */
#include "replies.h"

#ifdef __KERNEL__
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/string.h>
#else
#include "tests/shim/host.h"
#endif

static u64 left_of(const struct cgpu_view *v)
{
	return v->limit > v->used ? v->limit - v->used : 0;
}

/**
 * cgpu_view_has_gpu() - whether a GPU is one of the container's
 * @v: what the container may see
 * @gpu_id: the driver's number
 *
 * Context: any.
 * Return: true if it is.
 */
bool cgpu_view_has_gpu(const struct cgpu_view *v, u32 gpu_id)
{
	u32 i;

	for (i = 0; i < v->gpus; i++)
		if (v->gpu_ids[i] == gpu_id)
			return true;
	return false;
}

/**
 * cgpu_reply_fb() - one figure of FB_GET_INFO
 * @index: which
 * @kib: what the driver said
 * @v: what the container may see
 *
 * Sizes are the limit, none of it is set aside, and free is what is left of
 * it, so that every branch's way of adding them up gives the same.
 *
 * Context: any.
 * Return: KiB to tell.
 */
u32 cgpu_reply_fb(u32 index, u32 kib, const struct cgpu_view *v)
{
	u32 limit = v->limit >> 10, left = left_of(v) >> 10;

	switch (index) {
	case NV2080_FB_INFO_INDEX_RAM_SIZE:
	case NV2080_FB_INFO_INDEX_TOTAL_RAM_SIZE:
	case NV2080_FB_INFO_INDEX_HEAP_SIZE:
	case NV2080_FB_INFO_INDEX_USABLE_RAM_SIZE:
		return limit;
	case NV2080_FB_INFO_INDEX_FB_TAX_SIZE:
		return 0;
	case NV2080_FB_INFO_INDEX_HEAP_FREE:
		return left;
	case NV2080_FB_INFO_INDEX_MAPPABLE_SIZE:
	case NV2080_FB_INFO_INDEX_LARGEST_FREE:
	case NV2080_FB_INFO_INDEX_PROTECTED_FREE:
		return min(kib, left);
	case NV2080_FB_INFO_INDEX_PROTECTED_TOTAL:
		return min(kib, limit);
	}
	return kib;
}

static void change_fb_info(void *reply, u32 size, const struct cgpu_view *v)
{
	struct nv2080_ctrl_fb_get_info_v2_params *p = reply;
	struct nv2080_ctrl_fb_info *entry = p->fb_info_list;
	u32 most = (size - sizeof(p->fb_info_list_size)) / sizeof(*entry);
	u32 i, n = min(p->fb_info_list_size, most);

	for (i = 0; i < n; i++)
		entry[i].data = cgpu_reply_fb(entry[i].index, entry[i].data, v);
}

/* The regions add up to the limit: the last ones shrink or vanish. */
static void shrink_regions(void *reply, u32 stride, const struct cgpu_view *v)
{
	struct nv2080_ctrl_cmd_fb_get_fb_region_info_params *p = reply;
	u32 i, n = min_t(u32, p->num_fb_regions, ARRAY_SIZE(p->fb_region));
	u64 left = v->limit;

	for (i = 0; i < n && left; i++) {
		struct nv2080_ctrl_cmd_fb_get_fb_region_fb_region_info *r =
			(void *)((char *)p->fb_region + i * stride);
		u64 bytes = min(r->limit - r->base + 1, left);

		r->limit = r->base + bytes - 1;
		left -= bytes;
	}
	p->num_fb_regions = i;
}

static void change_regions(void *reply, u32 size, const struct cgpu_view *v)
{
	u32 stride = size == sizeof(struct nv2080_ctrl_cmd_fb_get_fb_region_info_params) ?
		sizeof(struct nv2080_ctrl_cmd_fb_get_fb_region_fb_region_info) :
		sizeof(struct nv2080_ctrl_cmd_fb_get_fb_region_fb_region_info_580);

	shrink_regions(reply, stride, v);
}

static void change_pids(void *reply, u32 size, const struct cgpu_view *v)
{
	struct nv2080_ctrl_gpu_get_pids_params *p = reply;
	u32 i, kept = 0, n = min_t(u32, p->pid_tbl_count, NV2080_GPU_MAX_PIDS);

	for (i = 0; i < n; i++)
		if (v->has_pid(v->arg, p->pid_tbl[i]))
			p->pid_tbl[kept++] = p->pid_tbl[i];
	memset(&p->pid_tbl[kept], 0, (n - kept) * sizeof(p->pid_tbl[0]));
	p->pid_tbl_count = kept;
}

/* Entries of others are told as empty: pid, index and result stay. */
static void hide_pid_info(void *reply, u32 size, u32 stride,
			  const struct cgpu_view *v)
{
	u32 i, n, head = 8, most = (size - head) / stride;
	u8 *entry = (u8 *)reply + head;
	u32 pid;

	memcpy(&n, reply, sizeof(n));
	n = min(n, most);
	for (i = 0; i < n; i++, entry += stride) {
		memcpy(&pid, entry, sizeof(pid));
		if (!v->has_pid(v->arg, pid))
			memset(entry + 16, 0, stride - 16);
	}
}

static void change_pid_info(void *reply, u32 size, const struct cgpu_view *v)
{
	hide_pid_info(reply, size, sizeof(struct nv2080_ctrl_gpu_pid_info), v);
}

static void change_pid_info_450(void *reply, u32 size,
				const struct cgpu_view *v)
{
	hide_pid_info(reply, size, sizeof(struct nv2080_ctrl_gpu_pid_info_450), v);
}

static void change_pid_info_418(void *reply, u32 size,
				const struct cgpu_view *v)
{
	hide_pid_info(reply, size, sizeof(struct nv0080_ctrl_418_gpu_pid_info), v);
}

/* Samples name processes; which is whose cannot be told for all of them. */
static void change_gpumon(void *reply, u32 size, const struct cgpu_view *v)
{
	struct nv2080_ctrl_gpumon_head *p = reply;

	if (size > sizeof(*p))
		memset(p + 1, 0, size - sizeof(*p));
	p->count = 0;
}

static void change_gpu_ids(void *reply, u32 size, const struct cgpu_view *v)
{
	struct nv0000_ctrl_gpu_get_attached_ids_params *p = reply;
	u32 i, kept = 0;

	for (i = 0; i < ARRAY_SIZE(p->gpu_ids); i++)
		if (cgpu_view_has_gpu(v, p->gpu_ids[i]))
			p->gpu_ids[kept++] = p->gpu_ids[i];
	for (; kept < ARRAY_SIZE(p->gpu_ids); kept++)
		p->gpu_ids[kept] = NV0000_CTRL_GPU_INVALID_ID;
}

static const struct cgpu_reply replies[] = {
	{ NV2080_CTRL_FB_GET_INFO_V2, 0, change_fb_info },
	{ NV2080_CTRL_FB_GET_FB_REGION_INFO,
	  sizeof(struct nv2080_ctrl_cmd_fb_get_fb_region_info_params),
	  change_regions },
	{ NV2080_CTRL_FB_GET_FB_REGION_INFO,
	  sizeof(struct nv2080_ctrl_cmd_fb_get_fb_region_info_params_580),
	  change_regions },
	{ NV2080_CTRL_GPU_GET_PIDS,
	  sizeof(struct nv2080_ctrl_gpu_get_pids_params), change_pids },
	{ NV0080_CTRL_418_GPU_GET_PIDS,
	  sizeof(struct nv2080_ctrl_gpu_get_pids_params), change_pids },
	{ NV2080_CTRL_GPU_GET_PID_INFO,
	  sizeof(struct nv2080_ctrl_gpu_get_pid_info_params), change_pid_info },
	{ NV2080_CTRL_GPU_GET_PID_INFO, NV2080_GPU_PID_INFO_SIZE_450,
	  change_pid_info_450 },
	{ NV0080_CTRL_418_GPU_GET_PID_INFO, NV0080_418_GPU_PID_INFO_SIZE,
	  change_pid_info_418 },
	{ NV2080_CTRL_PERF_GPUMON_UTIL_V2, 0, change_gpumon },
	{ NV0000_CTRL_GPU_GET_ATTACHED_IDS,
	  sizeof(struct nv0000_ctrl_gpu_get_attached_ids_params),
	  change_gpu_ids },
	{ NV0000_CTRL_GPU_GET_PROBED_IDS,
	  sizeof(struct nv0000_ctrl_gpu_get_probed_ids_params),
	  change_gpu_ids },
	{ NV0000_CTRL_GPU_GET_PROBED_IDS,
	  sizeof(struct nv0000_ctrl_gpu_get_probed_ids_params_580),
	  change_gpu_ids },
};

/**
 * cgpu_reply_find() - whether the reply to a control must be changed
 * @cmd: the control
 * @size: bytes of its parameters
 *
 * Context: any.
 * Return: how, or NULL to leave it alone.
 */
const struct cgpu_reply *cgpu_reply_find(u32 cmd, u32 size)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(replies); i++)
		if (replies[i].cmd == cmd &&
		    (replies[i].size ? replies[i].size == size : size >= 16))
			return &replies[i];
	return NULL;
}

/* The two layouts of a card's entry: how long, and where its number stands. */
static const struct {
	u32 total, stride, gpu_id;
} cards[] = {
	{ NV_MAX_DEVICES * sizeof(struct nv_ioctl_card_info),
	  sizeof(struct nv_ioctl_card_info),
	  offsetof(struct nv_ioctl_card_info, gpu_id) },
	{ NV_MAX_DEVICES * sizeof(struct nv_ioctl_card_info_418),
	  sizeof(struct nv_ioctl_card_info_418),
	  offsetof(struct nv_ioctl_card_info_418, gpu_id) },
};

/**
 * cgpu_reply_cards() - leave only the container's GPUs in CARD_INFO
 * @reply: the entries
 * @size: bytes
 * @v: what the container may see
 *
 * Context: any.
 */
void cgpu_reply_cards(void *reply, u32 size, const struct cgpu_view *v)
{
	u32 i, at, gpu_id;

	for (i = 0; i < ARRAY_SIZE(cards); i++) {
		if (cards[i].total != size)
			continue;
		for (at = 0; at < size; at += cards[i].stride) {
			memcpy(&gpu_id, (u8 *)reply + at + cards[i].gpu_id, 4);
			if (!cgpu_view_has_gpu(v, gpu_id))
				memset((u8 *)reply + at, 0, cards[i].stride);
		}
	}
}
