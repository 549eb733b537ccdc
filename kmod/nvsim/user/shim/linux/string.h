/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIM_STRING_H
#define SHIM_STRING_H

#include <linux/types.h>
#include <string.h>
#include <sys/types.h>

ssize_t shim_strscpy(char *to, const char *from, size_t room);
#define strscpy shim_strscpy

#endif
