// SPDX-License-Identifier: GPL-2.0-only
/* /proc/driver/nvidia as the driver makes it, and /proc/nvsim. */
#include "module.h"

#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#define COMMAND_BYTES	64

void nvsim_host_print(void *to, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	seq_vprintf(to, format, arguments);
	va_end(arguments);
}

static int version_show(struct seq_file *seq, void *unused)
{
	nvsim_proc_version(seq);
	return 0;
}

static int params_show(struct seq_file *seq, void *unused)
{
	nvsim_proc_params(seq);
	return 0;
}

static int information_show(struct seq_file *seq, void *unused)
{
	nvsim_proc_information(seq, seq->private);
	return 0;
}

static int capability_show(struct seq_file *seq, void *unused)
{
	seq_printf(seq, "DeviceFileMinor: %lu\nDeviceFileMode: 256\nDeviceFileModify: 0\n",
		   (unsigned long)seq->private);
	return 0;
}

static int ledger_show(struct seq_file *seq, void *unused)
{
	nvsim_ledger(seq);
	return 0;
}

static int ledger_open(struct inode *inode, struct file *file)
{
	return single_open(file, ledger_show, NULL);
}

static int command(const char *text)
{
	u32 gpu, xid, pid;

	if (sscanf(text, "xid %u %u %u", &gpu, &xid, &pid) == 3)
		return nvsim_inject(gpu, xid, pid) ? 0 : -ESRCH;
	if (sscanf(text, "restore %u", &gpu) == 1)
		return nvsim_restore(gpu) ? 0 : -ENODEV;
	return -EINVAL;
}

/* "xid GPU CODE PID" or "restore GPU" */
static ssize_t ledger_write(struct file *file, const char __user *from,
			    size_t bytes, loff_t *at)
{
	char text[COMMAND_BYTES];
	int error;

	if (bytes >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, bytes))
		return -EFAULT;
	text[bytes] = 0;
	error = command(text);
	return error ? error : bytes;
}

static const struct proc_ops ledger_ops = {
	.proc_open = ledger_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_write = ledger_write,
	.proc_release = single_release,
};

static bool make_gpus(struct proc_dir_entry *gpus)
{
	struct proc_dir_entry *folder;
	char name[16];
	u32 i;

	for (i = 0; i < nvsim.gpu_count; i++) {
		struct nvsim_gpu *gpu = &nvsim.gpus[i];

		snprintf(name, sizeof(name), "0000:%02x:00.0", gpu->bus);
		folder = proc_mkdir(name, gpus);
		if (!folder || !proc_create_single_data("information", 0444, folder,
							information_show, gpu))
			return false;
	}
	return true;
}

static bool make_capabilities(struct proc_dir_entry *nvidia)
{
	struct proc_dir_entry *folder = proc_mkdir("capabilities", nvidia);

	if (folder)
		folder = proc_mkdir("mig", folder);
	return folder &&
	       proc_create_single_data("config", 0400, folder, capability_show,
				       (void *)1) &&
	       proc_create_single_data("monitor", 0444, folder, capability_show,
				       (void *)2);
}

static bool make_all(void)
{
	struct proc_dir_entry *nvidia = proc_mkdir("driver/nvidia", NULL);
	struct proc_dir_entry *gpus;

	if (!nvidia)
		return false;
	gpus = proc_mkdir("gpus", nvidia);
	return gpus && make_gpus(gpus) && make_capabilities(nvidia) &&
	       proc_create_single("version", 0444, nvidia, version_show) &&
	       proc_create_single("params", 0444, nvidia, params_show) &&
	       proc_create("nvsim", 0644, NULL, &ledger_ops);
}

int nvsim_procfs_init(void)
{
	if (make_all())
		return 0;
	nvsim_procfs_exit();
	return -ENOMEM;
}

void nvsim_procfs_exit(void)
{
	remove_proc_subtree("nvsim", NULL);
	remove_proc_subtree("driver/nvidia", NULL);
}
