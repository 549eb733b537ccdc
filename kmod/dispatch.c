// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which escape goes where. What is not in the table does not exist for a
 * container.
 */
#include <linux/kernel.h>
#include <linux/uaccess.h>
#include "cgpu.h"

typedef long (*escape_fn)(struct cgpu_file *f, u32 cmd, u32 size,
			  void __user *arg);

enum where { CTL = 1, DEV = 2, ANY = CTL | DEV };

/*
 * struct escape - one row, found by its number
 * @where: on which kind of file
 * @locked: whether the file's lock is held: the table of objects must agree
 *	    with the driver, or the argument page is used
 * @run: what is done, NULL = the driver's own
 */
static const struct escape {
	enum where where;
	bool locked;
	escape_fn run;
} escapes[_IOC_NRMASK + 1] = {
	[NV_ESC_RM_CONTROL] = { CTL, true, cgpu_esc_control },
	[NV_ESC_RM_ALLOC] = { ANY, true, cgpu_esc_alloc },
	[NV_ESC_RM_FREE] = { CTL, true, cgpu_esc_free },
	[NV_ESC_RM_VID_HEAP_CONTROL] = { CTL, true, cgpu_esc_heap },
	[NV_ESC_RM_MAP_MEMORY] = { CTL, true, cgpu_esc_map },
	[NV_ESC_RM_DUP_OBJECT] = { CTL, true, cgpu_esc_dup },
	[NV_ESC_RM_ALLOC_MEMORY] = { DEV, true, cgpu_esc_memory },
	[NV_ESC_CARD_INFO] = { CTL, false, cgpu_esc_cards },
	[NV_ESC_REGISTER_FD] = { DEV, true, cgpu_esc_register },
	[NV_ESC_ATTACH_GPUS_TO_FD] = { CTL, false, cgpu_esc_attach },
	[NV_ESC_RM_UNMAP_MEMORY] = { CTL },
	[NV_ESC_RM_MAP_MEMORY_DMA] = { CTL },
	[NV_ESC_RM_UNMAP_MEMORY_DMA] = { CTL },
	[NV_ESC_RM_UPDATE_DEVICE_MAPPING] = { CTL },
	[NV_ESC_RM_SHARE] = { CTL },
	[NV_ESC_RM_IDLE_CHANNELS] = { CTL },
	[NV_ESC_RM_ACCESS_REGISTRY] = { CTL },
	[NV_ESC_RM_ALLOC_CONTEXT_DMA2] = { CTL },
	[NV_ESC_RM_BIND_CONTEXT_DMA] = { CTL },
	[NV_ESC_RM_LOCKLESS_DIAGNOSTIC] = { CTL },
	[NV_ESC_RM_GET_EVENT_DATA] = { ANY },
	[NV_ESC_ENV_INFO] = { ANY },
	[NV_ESC_ALLOC_OS_EVENT] = { ANY },
	[NV_ESC_FREE_OS_EVENT] = { ANY },
	[NV_ESC_STATUS_CODE] = { ANY },
	[NV_ESC_CHECK_VERSION_STR] = { CTL },
	[NV_ESC_SYS_PARAMS] = { CTL },
	[NV_ESC_NUMA_INFO] = { DEV },
	[NV_ESC_QUERY_DEVICE_INTR] = { DEV },
	[NV_ESC_WAIT_OPEN_COMPLETE] = { ANY },
};

static enum where place_of(const struct cgpu_file *f)
{
	return f->node->minor == NV_MINOR_CTL ? CTL : DEV;
}

static const struct escape *escape_of(const struct cgpu_file *f, u32 nr)
{
	return escapes[nr].where & place_of(f) ? &escapes[nr] : NULL;
}

static long run_locked(struct cgpu_file *f, const struct escape *e, u32 cmd,
		       u32 size, void __user *arg)
{
	long ret;

	if (mutex_lock_killable(&f->lock))
		return -EINTR;
	ret = e->run(f, cmd, size, arg);
	mutex_unlock(&f->lock);
	return ret;
}

static long run(struct cgpu_file *f, u32 cmd, u32 nr, u32 size,
		void __user *arg)
{
	const struct escape *e = escape_of(f, nr);

	if (!e) {
		pr_info_ratelimited("%s: escape %#x with %u bytes refused\n",
				    f->node->inst->id, nr, size);
		return -ENOTTY;
	}
	if (!e->run)
		return cgpu_forward(f, cmd, arg);
	return e->locked ? run_locked(f, e, cmd, size, arg) :
	       e->run(f, cmd, size, arg);
}

/* Unwrapped once and issued plain: the driver never reads the wrapper. */
static long run_wrapped(struct cgpu_file *f, u32 size, void __user *arg)
{
	struct nv_ioctl_xfer x;

	if (size != sizeof(x))
		return -EINVAL;
	if (copy_from_user(&x, arg, sizeof(x)))
		return -EFAULT;
	if (x.cmd > _IOC_NRMASK || x.cmd == NV_ESC_IOCTL_XFER_CMD ||
	    x.size > _IOC_SIZEMASK)
		return -EINVAL;
	return run(f, NV_IOCTL(x.cmd, x.size), x.cmd, x.size,
		   (void __user *)x.ptr);
}

/**
 * cgpu_passes() - whether a call goes to the driver as it is
 * @f: the file
 * @cmd: the ioctl
 *
 * Context: any.
 * Return: true if it does.
 */
bool cgpu_passes(struct cgpu_file *f, u32 cmd)
{
	const struct escape *e;

	if (f->node->minor == CGPU_NODE_UVM)
		return cgpu_uvm_passes(cmd);
	e = escape_of(f, _IOC_NR(cmd));
	return e && !e->run;
}

/**
 * cgpu_dispatch() - an ioctl on nvidiactl or nvidia<N>
 * @f: the file
 * @cmd: the ioctl
 * @arg: its argument
 *
 * Context: process.
 * Return: the driver's answer, or an errno of ours.
 */
long cgpu_dispatch(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	if (_IOC_NR(cmd) == NV_ESC_IOCTL_XFER_CMD)
		return run_wrapped(f, _IOC_SIZE(cmd), arg);
	return run(f, cmd, _IOC_NR(cmd), _IOC_SIZE(cmd), arg);
}
