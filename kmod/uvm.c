// SPDX-License-Identifier: GPL-2.0-only
/*
 * The requests on the node of unified memory: raw numbers, without sizes. What
 * is mapped there is managed.c's affair. A refused range is mapped, but to
 * nothing, and the request that validates it says "not supported", which CUDA
 * reports as an error.
 */
#include <linux/file.h>
#include <linux/uaccess.h>
#include "uvm.h"

/**
 * struct request - one request of the UVM driver
 * @cmd: its number
 * @run: what is done, NULL = the driver's own
 */
struct request {
	u32 cmd;
	long (*run)(struct cgpu_file *f, u32 cmd, void __user *arg);
};

static long initialize(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	struct uvm_initialize_params p;

	if (cgpu_branch < 535)
		return cgpu_forward(f, cmd, arg);
	if (copy_from_user(&p, arg, sizeof(p)))
		return -EFAULT;
	p.flags |= UVM_INIT_FLAGS_DISABLE_HMM | UVM_INIT_FLAGS_MULTI_PROCESS;
	if (copy_to_user(arg, &p, sizeof(p)))
		return -EFAULT;
	return cgpu_forward(f, cmd, arg);
}

/* The driver looks at the operations of that file, and they are ours. */
static long mm_initialize(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	struct uvm_mm_initialize_params p;
	struct cgpu_file *other;
	struct file *file;

	if (copy_from_user(&p, arg, sizeof(p)))
		return -EFAULT;
	other = cgpu_own_file(f, p.uvm_fd, &file);
	p.rm_status = IS_ERR(other) ? NV_ERR_INVALID_ARGUMENT : NV_OK;
	if (!IS_ERR(other))
		fput(file);
	return copy_to_user(arg, &p, sizeof(p)) ? -EFAULT : 0;
}

static long register_with(struct cgpu_file *f, u32 cmd, struct cgpu_node *node,
			  struct uvm_register_gpu_params *p)
{
	struct cgpu_call call = {
		.f = f, .cmd = cmd, .args = p, .size = sizeof(*p),
		.genuine = node->genuine,
	};

	return cgpu_call(&call);
}

/*
 * From 550 the driver looks for a file of the GPU in its caller's table. The
 * GPU is named by its UUID, so the container's are tried one after another.
 */
static long register_gpu(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	struct uvm_register_gpu_params asked, p;
	struct cgpu_node *node;
	int minor;
	long ret;

	if (cgpu_branch < 550)
		return cgpu_forward(f, cmd, arg);
	if (copy_from_user(&asked, arg, sizeof(asked)))
		return -EFAULT;
	p = asked;
	p.rm_status = NV_ERR_INVALID_DEVICE;
	for (minor = 0; p.rm_status && minor < NV_MAX_DEVICES; minor++) {
		node = cgpu_node_of(f, minor);
		if (!node)
			continue;
		p = asked;
		ret = register_with(f, cmd, node, &p);
		if (ret)
			return ret;
	}
	return copy_to_user(arg, &p, sizeof(p)) ? -EFAULT : 0;
}

/* Noted when the driver has been asked: what it would refuse is not to come. */
static long announce_pool(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	struct uvm_validate_va_range_params head;
	struct cgpu_range *r;
	long ret;

	if (copy_from_user(&head, arg, offsetof(typeof(head), rm_status)))
		return -EFAULT;
	ret = cgpu_forward(f, cmd, arg);
	if (ret)
		return ret;
	mutex_lock(&f->map_lock);
	r = cgpu_range_note(f, head.base, head.length, CGPU_RANGE_ANNOUNCED);
	mutex_unlock(&f->map_lock);
	return r ? 0 : -ENOMEM;
}

static long validate(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	struct uvm_read_duplication_params p;

	if (copy_from_user(&p, arg, sizeof(p)))
		return -EFAULT;
	if (!cgpu_range_refused(f, p.requested_base))
		return cgpu_forward(f, cmd, arg);
	p.rm_status = NV_ERR_NOT_SUPPORTED;
	return copy_to_user(arg, &p, sizeof(p)) ? -EFAULT : 0;
}

/* Its answer is ignored by every library, so a refused range is fine here. */
static long validate_va_range(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	struct uvm_validate_va_range_params p;

	if (copy_from_user(&p, arg, sizeof(p)))
		return -EFAULT;
	if (!cgpu_range_refused(f, p.base))
		return cgpu_forward(f, cmd, arg);
	p.rm_status = NV_OK;
	return copy_to_user(arg, &p, sizeof(p)) ? -EFAULT : 0;
}

static const struct request requests[] = {
	{ UVM_INITIALIZE, initialize },
	{ UVM_MM_INITIALIZE, mm_initialize },
	{ UVM_REGISTER_GPU, register_gpu },
	{ UVM_ALLOC_SEMAPHORE_POOL, announce_pool },
	{ UVM_ALLOC_DEVICE_P2P, announce_pool },
	{ UVM_FREE, cgpu_uvm_free },
	{ UVM_MAP_EXTERNAL_ALLOCATION, cgpu_uvm_map_external },
	{ UVM_UNMAP_EXTERNAL, cgpu_uvm_unmap_external },
	{ UVM_REGISTER_GPU_VASPACE, cgpu_uvm_register_space },
	{ UVM_REGISTER_CHANNEL, cgpu_uvm_register_channel },
	{ UVM_DISABLE_READ_DUPLICATION, validate },
	{ UVM_VALIDATE_VA_RANGE, validate_va_range },
	{ UVM_DEINITIALIZE },
	{ UVM_CREATE_RANGE_GROUP },
	{ UVM_DESTROY_RANGE_GROUP },
	{ UVM_SET_RANGE_GROUP },
	{ UVM_UNREGISTER_GPU_VASPACE },
	{ UVM_UNREGISTER_CHANNEL },
	{ UVM_ENABLE_PEER_ACCESS },
	{ UVM_DISABLE_PEER_ACCESS },
	{ UVM_UNREGISTER_GPU },
	{ UVM_PAGEABLE_MEM_ACCESS },
	{ UVM_PAGEABLE_MEM_ACCESS_ON_GPU },
	{ UVM_SET_PREFERRED_LOCATION },
	{ UVM_UNSET_PREFERRED_LOCATION },
	{ UVM_ENABLE_READ_DUPLICATION },
	{ UVM_SET_ACCESSED_BY },
	{ UVM_UNSET_ACCESSED_BY },
	{ UVM_MIGRATE },
	{ UVM_MIGRATE_RANGE_GROUP },
	{ UVM_MAP_DYNAMIC_PARALLELISM_REGION },
	{ UVM_CREATE_EXTERNAL_RANGE },
	{ UVM_MAP_EXTERNAL_SPARSE },
	{ UVM_IS_8_SUPPORTED },
};

static const struct request *request_of(u32 cmd)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(requests); i++)
		if (requests[i].cmd == cmd)
			return &requests[i];
	return NULL;
}

/**
 * cgpu_uvm_passes() - whether a request goes to the driver as it is
 * @cmd: the request
 *
 * Context: any.
 * Return: true if it does.
 */
bool cgpu_uvm_passes(u32 cmd)
{
	const struct request *r = request_of(cmd);

	return r && !r->run;
}

/**
 * cgpu_uvm_ioctl() - a request on nvidia-uvm
 * @f: the file
 * @cmd: the request
 * @arg: its parameters
 *
 * Context: process.
 * Return: the driver's answer, or an errno of ours.
 */
long cgpu_uvm_ioctl(struct cgpu_file *f, u32 cmd, void __user *arg)
{
	const struct request *r = request_of(cmd);
	long ret;

	if (!r) {
		pr_info_ratelimited("%s: UVM request %u refused\n",
				    f->node->inst->id, cmd);
		return -ENOTTY;
	}
	if (mutex_lock_killable(&f->lock))
		return -EINTR;
	ret = r->run(f, cmd, arg);
	mutex_unlock(&f->lock);
	return ret;
}
