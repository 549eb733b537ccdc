// SPDX-License-Identifier: GPL-2.0-only
/* The number of the driver of unified memory, which is not fixed. */
#include <linux/fs.h>
#include <linux/slab.h>
#include "cgpu.h"

static int parse_major(const char *text, const char *name)
{
	const char *line;
	char word[32];
	int major;

	for (line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%d %31s", &major, word) == 2 &&
		    !strcmp(word, name))
			return major;
		if (!strncmp(line, "Block devices:", 14))
			break;
	}
	return 0;
}

/**
 * cgpu_find_major() - the number of a character device by its name
 * @name: as in /proc/devices
 *
 * Context: process.
 * Return: the number, 0 if there is none.
 */
int cgpu_find_major(const char *name)
{
	struct file *file = filp_open("/proc/devices", O_RDONLY, 0);
	char *text;
	loff_t at = 0;
	ssize_t n;
	int major = 0;

	if (IS_ERR(file))
		return 0;
	text = kzalloc(PAGE_SIZE, GFP_KERNEL);
	n = text ? kernel_read(file, text, PAGE_SIZE - 1, &at) : -ENOMEM;
	if (n > 0)
		major = parse_major(text, name);
	kfree(text);
	filp_close(file, NULL);
	return major;
}
