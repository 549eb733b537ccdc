/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIM_STRING_H
#define SHIM_STRING_H

#include <linux/kernel.h>
#include <string.h>

#define strscpy(to, from, room) scnprintf(to, room, "%s", from)

#endif
