// SPDX-License-Identifier: GPL-2.0-only
/* The texts of the proc files. */
#include "rm.h"

/**
 * nvsim_uuid_text() - A GPU's UUID as nvidia-smi shows it.
 * @to: text
 * @room: its bytes, at least 41
 * @uuid: 16 bytes
 *
 * Return: its length.
 */
u32 nvsim_uuid_text(char *to, u32 room, const u8 *uuid)
{
	u32 length = scnprintf(to, room, "GPU"), i;

	for (i = 0; i < 16; i++)
		length += scnprintf(to + length, room - length, "%s%02x",
				    i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ?
				    "-" : "", uuid[i]);
	return length;
}

void nvsim_proc_version(void *to)
{
	nvsim_host_print(to, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  %s", nvsim.version);
	nvsim_host_print(to, "  Thu Jan  1 00:00:00 UTC 1970\n");
	nvsim_host_print(to, "GCC version:  nvsim\n");
}

void nvsim_proc_params(void *to)
{
	nvsim_host_print(to, "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 0\n");
	nvsim_host_print(to, "DeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n");
}

void nvsim_proc_information(void *to, const struct nvsim_gpu *gpu)
{
	char uuid[48];

	nvsim_uuid_text(uuid, sizeof(uuid), gpu->uuid);
	nvsim_host_print(to, "Model: \t\t %s\nIRQ:   \t\t 11\nGPU UUID: \t %s\n",
			 gpu->card->product, uuid);
	nvsim_host_print(to, "Video BIOS: \t ??.??.??.??.??\nBus Type: \t PCIe\n");
	nvsim_host_print(to, "DMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\n");
	nvsim_host_print(to, "Bus Location: \t 0000:%02x:00.0\n", gpu->bus);
	nvsim_host_print(to, "Device Minor: \t %u\nGPU Firmware: \t N/A\n", gpu->minor);
	nvsim_host_print(to, "GPU Excluded:\t No\n");
}

static void print_client(void *to, const struct nvsim_client *client)
{
	u32 i, channels = 0;
	struct nvsim_object *object;

	list_for_each_entry(object, &client->objects, node)
		channels += !!object->channel;
	nvsim_host_print(to, "client %x pid %u objects %u channels %u", client->handle,
			 nvsim_host_task_global(client->task), client->count, channels);
	for (i = 0; i < nvsim.gpu_count; i++)
		nvsim_host_print(to, " fb%u %llu", i,
				 nvsim_memory_of(client, &nvsim.gpus[i], false));
	nvsim_host_print(to, "\n");
}

static void print_channel(void *to, const struct nvsim_channel *channel)
{
	nvsim_host_print(to, "channel %u id %u pid %u tsg %x busy_ns %llu launches %llu",
			 channel->gpu->minor, channel->id,
			 nvsim_host_task_global(channel->client->task), channel->tsg->handle,
			 channel->busy_ns, channel->launches);
	nvsim_host_print(to, " entries %llu get %u put %u dead %u\n", channel->entries_done,
			 channel->get, channel->put, channel->dead);
}

static void print_gpu(void *to, const struct nvsim_gpu *gpu)
{
	struct nvsim_channel *channel;
	struct nvsim_tsg *tsg;

	nvsim_host_print(to, "gpu %u card %s total %llu used %llu busy_ns %llu lost %u\n",
			 gpu->minor, gpu->card->name, gpu->total, gpu->used, gpu->gr.busy_ns,
			 gpu->lost);
	list_for_each_entry(tsg, &gpu->gr.tsgs, node)
		nvsim_host_print(to, "tsg %u pid %u handle %x timeslice_us %llu busy_ns %llu\n",
				 gpu->minor, nvsim_host_task_global(tsg->task), tsg->handle,
				 div_u64(tsg->timeslice_ns, 1000), tsg->busy_ns);
	list_for_each_entry(channel, &gpu->channels, node)
		print_channel(to, channel);
}

/**
 * nvsim_ledger() - /proc/nvsim: one fact a line, words then numbers.
 * @to: where
 *
 * Context: lock not held.
 */
void nvsim_ledger(void *to)
{
	struct nvsim_client *client;
	u32 i;

	nvsim_lock();
	nvsim_host_print(to, "nvsim branch %u version %s ioctls %llu faults %llu\n",
			 nvsim.branch->number, nvsim.version, nvsim.ioctls, nvsim.faults);
	for (i = 0; i < nvsim.gpu_count; i++)
		print_gpu(to, &nvsim.gpus[i]);
	list_for_each_entry(client, &nvsim.clients, node)
		print_client(to, client);
	nvsim_unlock();
}
