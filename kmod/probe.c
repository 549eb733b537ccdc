// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the driver says about itself, asked once when the module loads: its
 * branch, its GPUs, their sizes as its nvidia-smi shows them. The questions
 * are those of any program; they need a page of the loading process.
 */
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "cgpu.h"

#define ASK_BYTES		(2 * PAGE_SIZE)
#define NESTED			PAGE_SIZE
#define DEVICE_HANDLE		0xca0f0080
#define SUBDEVICE_HANDLE	0xca0f2080

int cgpu_branch;
EXPORT_SYMBOL_GPL(cgpu_branch);
struct cgpu_gpu *cgpu_gpus[NV_MAX_DEVICES];
EXPORT_SYMBOL_GPL(cgpu_gpus);

/**
 * struct ask - how the driver is asked
 * @ctl: its control file
 * @page: address in the loading process
 * @client: RM client
 */
struct ask {
	struct file *ctl;
	unsigned long page;
	u32 client;
};

static long escape(struct ask *a, u32 nr, void *args, u32 size)
{
	void __user *at = (void __user *)a->page;
	long ret;

	if (copy_to_user(at, args, size))
		return -EFAULT;
	ret = a->ctl->f_op->unlocked_ioctl(a->ctl, NV_IOCTL(nr, size), a->page);
	if (ret)
		return ret;
	return copy_from_user(args, at, size) ? -EFAULT : 0;
}

static int put_nested(struct ask *a, const void *params, u32 size)
{
	return copy_to_user((void __user *)(a->page + NESTED), params, size) ?
	       -EFAULT : 0;
}

static int get_nested(struct ask *a, void *params, u32 size)
{
	return copy_from_user(params, (void __user *)(a->page + NESTED),
			      size) ? -EFAULT : 0;
}

static int alloc(struct ask *a, u32 parent, u32 handle, u32 class,
		 const void *params, u32 size)
{
	struct nvos21_parameters_535 args = {
		.h_root = a->client, .h_object_parent = parent,
		.h_object_new = handle, .h_class = class,
		.p_alloc_parms = size ? a->page + NESTED : 0,
	};
	u32 status;
	long ret;

	ret = size ? put_nested(a, params, size) : 0;
	if (!ret)
		ret = escape(a, NV_ESC_RM_ALLOC, &args, sizeof(args));
	if (ret)
		return ret;
	status = cgpu_branch < 535 ? args.params_size : args.status;
	if (status)
		return -EIO;
	if (class == NV01_ROOT_CLIENT)
		a->client = args.h_object_new;
	return 0;
}

static int control(struct ask *a, u32 object, u32 cmd, void *params, u32 size)
{
	struct nvos54_parameters args = {
		.h_client = a->client, .h_object = object, .cmd = cmd,
		.params = a->page + NESTED, .params_size = size,
	};
	long ret;

	ret = put_nested(a, params, size);
	if (!ret)
		ret = escape(a, NV_ESC_RM_CONTROL, &args, sizeof(args));
	if (ret)
		return ret;
	return args.status ? -EIO : get_nested(a, params, size);
}

/* ---- the branch ---- */

static int parse_branch(const char *version)
{
	int branch = 0;

	return version && sscanf(version, "%d.", &branch) == 1 ? branch : 0;
}

static int ask_branch(struct ask *a)
{
	struct nv_ioctl_rm_api_version v = {
		.cmd = NV_RM_API_VERSION_CMD_QUERY,
	};
	struct module *driver = a->ctl->f_op->owner;
	int branch = 0;

	if (!escape(a, NV_ESC_CHECK_VERSION_STR, &v, sizeof(v))) {
		v.version_string[sizeof(v.version_string) - 1] = 0;
		branch = parse_branch(v.version_string);
	}
	return branch ?: parse_branch(driver ? driver->version : NULL);
}

static int check_branch(int branch)
{
	if (branch >= 418 && branch < 590)
		return 0;
	if (branch && branch < 418) {
		pr_err("driver branch %d is not supported: 418 is the oldest that is\n",
		       branch);
		return -ENODEV;
	}
	if (cgpu_allow_unknown_driver) {
		pr_warn("driver branch %d is unknown: nothing is known to be isolated\n",
			branch);
		return 0;
	}
	pr_err("driver branch %d is unknown: 418 to 580 are known; load with allow_unknown_driver=1 to try without a promise\n",
	       branch);
	return -ENODEV;
}

/* ---- the GPUs ---- */

static int ask_instance(struct ask *a, struct cgpu_gpu *gpu)
{
	struct nv0000_ctrl_gpu_get_id_info_v2_params v2 = {
		.gpu_id = gpu->gpu_id,
	};
	struct nv0000_ctrl_gpu_get_id_info_params v1 = {
		.gpu_id = gpu->gpu_id,
	};
	int ret;

	ret = control(a, a->client, NV0000_CTRL_GPU_GET_ID_INFO_V2, &v2,
		      sizeof(v2));
	gpu->instance = v2.device_instance;
	if (!ret)
		return 0;
	ret = control(a, a->client, NV0000_CTRL_GPU_GET_ID_INFO, &v1,
		      sizeof(v1));
	gpu->instance = v1.device_instance;
	return ret;
}

static int ask_sizes(struct ask *a, struct cgpu_gpu *gpu)
{
	struct {
		struct nv2080_ctrl_fb_get_info_params p;
		struct nv2080_ctrl_fb_info list[3];
	} q = {
		.p.fb_info_list_size = ARRAY_SIZE(q.list),
		.p.fb_info_list = a->page + NESTED + sizeof(q.p),
		.list[0].index = NV2080_FB_INFO_INDEX_TOTAL_RAM_SIZE,
		.list[1].index = NV2080_FB_INFO_INDEX_HEAP_SIZE,
		.list[2].index = NV2080_FB_INFO_INDEX_FB_TAX_SIZE,
	};
	struct nvos54_parameters args = {
		.h_client = a->client, .h_object = SUBDEVICE_HANDLE,
		.cmd = NV2080_CTRL_FB_GET_INFO, .params = a->page + NESTED,
		.params_size = sizeof(q.p),
	};
	u64 kib;

	if (put_nested(a, &q, sizeof(q)) ||
	    escape(a, NV_ESC_RM_CONTROL, &args, sizeof(args)) || args.status ||
	    get_nested(a, &q, sizeof(q)))
		return -EIO;
	kib = cgpu_branch >= 510 ? q.list[0].data :
	      (u64)q.list[1].data + q.list[2].data;
	gpu->total = kib << 10;
	return gpu->total ? 0 : -EIO;
}

static int ask_device(struct ask *a, struct cgpu_gpu *gpu)
{
	struct nv0080_alloc_parameters device = { .device_id = gpu->instance };
	u32 subdevice = 0;
	int ret;

	ret = alloc(a, a->client, DEVICE_HANDLE, NV01_DEVICE_0, &device,
		    sizeof(device));
	if (!ret)
		ret = alloc(a, DEVICE_HANDLE, SUBDEVICE_HANDLE,
			    NV20_SUBDEVICE_0, &subdevice, sizeof(subdevice));
	return ret ?: ask_sizes(a, gpu);
}

static void free_client(struct ask *a)
{
	struct nvos00_parameters args = {
		.h_root = a->client, .h_object_old = a->client,
	};

	escape(a, NV_ESC_RM_FREE, &args, sizeof(args));
}

/* From 550 the driver looks for a file of the GPU in its caller's table. */
static int show_device(struct cgpu_gpu *gpu)
{
	struct file *file = cgpu_open_genuine(MKDEV(NV_MAJOR, gpu->minor));
	int fd;

	if (IS_ERR(file))
		return PTR_ERR(file);
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		fput(file);
	else
		fd_install(fd, file);
	return fd;
}

static int ask_gpu(struct ask *a, struct cgpu_gpu *gpu)
{
	int ret, fd = show_device(gpu);

	if (fd < 0)
		return fd;
	a->client = 0;
	ret = alloc(a, 0, 0, NV01_ROOT_CLIENT, NULL, 0);
	if (ret)
		goto close;
	ret = ask_instance(a, gpu);
	if (!ret)
		ret = ask_device(a, gpu);
	free_client(a);
close:
	close_fd(fd);
	return ret;
}

static int add_gpu(struct ask *a, int minor, u32 gpu_id)
{
	struct cgpu_gpu *gpu;
	int ret;

	if (minor < 0 || minor >= NV_MAX_DEVICES || cgpu_gpus[minor])
		return -EINVAL;
	gpu = kzalloc(sizeof(*gpu), GFP_KERNEL);
	if (!gpu)
		return -ENOMEM;
	gpu->minor = minor;
	gpu->gpu_id = gpu_id;
	mutex_init(&gpu->lock);
	INIT_LIST_HEAD(&gpu->shares);
	init_waitqueue_head(&gpu->wq);
	ret = ask_gpu(a, gpu);
	if (ret) {
		pr_err("GPU %d does not answer: %d\n", minor, ret);
		kfree(gpu);
		return ret;
	}
	pr_info("GPU %d: %llu MiB\n", minor, gpu->total >> 20);
	cgpu_gpus[minor] = gpu;
	return 0;
}

static int add_cards_418(struct ask *a,
			 const struct nv_ioctl_card_info_418 *cards)
{
	int i, ret = 0;

	for (i = 0; !ret && i < NV_MAX_DEVICES; i++)
		if (cards[i].valid || cards[i].flags)
			ret = add_gpu(a, cards[i].minor_number,
				      cards[i].gpu_id);
	return ret;
}

static int add_cards(struct ask *a, const struct nv_ioctl_card_info *cards)
{
	int i, ret = 0;

	for (i = 0; !ret && i < NV_MAX_DEVICES; i++)
		if (cards[i].valid)
			ret = add_gpu(a, cards[i].minor_number,
				      cards[i].gpu_id);
	return ret;
}

static int ask_cards(struct ask *a)
{
	bool old = cgpu_branch < 460;
	u32 size = NV_MAX_DEVICES * (old ?
		   sizeof(struct nv_ioctl_card_info_418) :
		   sizeof(struct nv_ioctl_card_info));
	void *cards = kzalloc(size, GFP_KERNEL);
	int ret;

	if (!cards)
		return -ENOMEM;
	ret = escape(a, NV_ESC_CARD_INFO, cards, size);
	if (!ret)
		ret = old ? add_cards_418(a, cards) : add_cards(a, cards);
	kfree(cards);
	return ret;
}

static int ask_driver(struct ask *a)
{
	int ret;

	cgpu_branch = ask_branch(a);
	ret = check_branch(cgpu_branch);
	return ret ?: ask_cards(a);
}

static int ask_through(struct ask *a)
{
	int ret;

	a->page = vm_mmap(NULL, 0, ASK_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (IS_ERR_VALUE(a->page))
		return a->page;
	ret = ask_driver(a);
	vm_munmap(a->page, ASK_BYTES);
	return ret;
}

/**
 * cgpu_probe() - find the driver and its GPUs
 *
 * Context: module load, in a process.
 * Return: 0, -ENODEV without a driver that is known, or an errno.
 */
int cgpu_probe(void)
{
	struct ask a = { 0 };
	int ret;

	ret = cgpu_private_get();
	if (ret)
		return ret;
	a.ctl = cgpu_open_genuine(MKDEV(NV_MAJOR, NV_MINOR_CTL));
	if (IS_ERR(a.ctl)) {
		pr_err("no NVIDIA driver (%ld): load it before this module\n",
		       PTR_ERR(a.ctl));
		ret = -ENODEV;
		goto put;
	}
	ret = ask_through(&a);
	fput(a.ctl);
put:
	cgpu_private_put();
	return ret;
}

/**
 * cgpu_probe_undo() - forget the GPUs
 *
 * Context: module unload, or a load that failed.
 */
void cgpu_probe_undo(void)
{
	int minor;

	for (minor = 0; minor < NV_MAX_DEVICES; minor++) {
		kfree(cgpu_gpus[minor]);
		cgpu_gpus[minor] = NULL;
	}
}
