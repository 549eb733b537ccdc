/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The core's host in user space: a library that is preloaded into a program and
 * plays the driver for it alone.
 */
#ifndef NVSIM_USER_H
#define NVSIM_USER_H

#include "../core.h"

#define USER_FILES	4096
#define UVM_MAJOR	510
#define CAPS_MAJOR	511

enum node_kind { NODE_NONE, NODE_CONTROL, NODE_DEVICE, NODE_UVM, NODE_CAPS };

struct user_file {
	enum node_kind kind;
	int refs, wake;		/* an eventfd that shares the file's number */
	struct nvsim_file file;
	struct nvsim_uvm uvm;
};

struct nvsim_backing {
	int refs, memory;	/* memfd, or -1 for the program's own memory */
	u64 bytes;
	char *at;
};

/* host.c */
void user_start(void);
struct user_file *user_file(int fd);
void user_file_set(int fd, struct user_file *file);
void user_engine_start(void);

/* files.c */
enum node_kind node_of(const char *path, unsigned int *minor);

/* proc.c: files below /proc and /sys that the driver would have made */
const char *proc_redirect(const char *path, char *to, size_t room);

#endif
