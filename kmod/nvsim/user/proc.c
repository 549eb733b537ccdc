// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver's files below /proc, written once into the folder NVSIM_ROOT, to
 * which paths of programs are redirected.
 */
#define _GNU_SOURCE
#include "user.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const redirected[] = {
	"/proc/driver/nvidia", "/proc/devices", "/sys/module/nvidia", "/proc/nvsim",
};

void nvsim_host_print(void *to, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(to, format, arguments);
	va_end(arguments);
}

static void make_folders(char *path)
{
	char *at;

	for (at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		mkdir(path, 0755);
		*at = '/';
	}
}

static FILE *create(const char *root, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s%s", root, name);
	make_folders(path);
	return fopen(path, "we");
}

static void write_gpu(const char *root, const struct nvsim_gpu *gpu)
{
	char name[128];
	FILE *to;

	snprintf(name, sizeof(name),
		 "/proc/driver/nvidia/gpus/0000:%02x:00.0/information", gpu->bus);
	to = create(root, name);
	nvsim_proc_information(to, gpu);
	fclose(to);
}

static void write_devices(const char *root)
{
	FILE *to = create(root, "/proc/devices");

	fprintf(to, "Character devices:\n195 nvidia\n195 nvidiactl\n");
	fprintf(to, "%d nvidia-uvm\n%d nvidia-caps\n\nBlock devices:\n", UVM_MAJOR,
		CAPS_MAJOR);
	fclose(to);
}

static void write_all(const char *root)
{
	FILE *to;
	u32 i;

	for (i = 0; i < nvsim.gpu_count; i++)
		write_gpu(root, &nvsim.gpus[i]);
	write_devices(root);
	to = create(root, "/proc/driver/nvidia/params");
	nvsim_proc_params(to);
	fclose(to);
	to = create(root, "/proc/driver/nvidia/version");
	nvsim_proc_version(to);
	fclose(to);
}

static void write_ledger(const char *root)
{
	FILE *to = create(root, "/proc/nvsim");

	nvsim_ledger(to);
	fclose(to);
}

const char *proc_redirect(const char *path, char *to, size_t room)
{
	static bool written;
	const char *root = getenv("NVSIM_ROOT");
	u32 i;

	if (!path || !root)
		return path;
	for (i = 0; i < ARRAY_SIZE(redirected); i++) {
		if (strncmp(path, redirected[i], strlen(redirected[i])))
			continue;
		user_start();
		if (!written) {
			written = true;
			write_all(root);
		}
		if (!strcmp(path, "/proc/nvsim"))
			write_ledger(root);
		snprintf(to, room, "%s%s", root, path);
		return to;
	}
	return path;
}
