// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a client is the container's. The driver chooses the handles of
 * clients, and tells them where other threads of the program can write: a
 * forged answer could name a neighbour's. So the driver is asked again, by a
 * control of the client, whose parameters it writes only if it takes the client
 * for the file's. What it writes is of no interest; that it writes cannot be forged.
 */
#include "grant.h"

/**
 * cgpu_client_is_ours() - whether the driver takes a client for the file's
 * @f: the control file
 * @client: the handle
 *
 * Context: process; f->lock is held.
 * Return: true if it does.
 */
bool cgpu_client_is_ours(struct cgpu_file *f, u32 client)
{
	struct nv0000_ctrl_gpu_get_attached_ids_params ids = { };
	struct nvos54_parameters args = {
		.h_client = client, .h_object = client,
		.cmd = NV0000_CTRL_GPU_GET_ATTACHED_IDS,
		.params_size = sizeof(ids),
	};
	struct cgpu_call call = {
		.f = f, .cmd = NV_IOCTL(NV_ESC_RM_CONTROL, sizeof(args)),
		.args = &args, .size = sizeof(args),
		.nested = &ids, .nested_size = sizeof(ids),
		.nested_at = offsetof(struct nvos54_parameters, params),
		.apart = true,
	};

	return !cgpu_call(&call) && call.answered;
}
