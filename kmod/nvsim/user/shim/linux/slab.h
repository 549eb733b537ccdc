/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHIM_SLAB_H
#define SHIM_SLAB_H

#include <stdlib.h>

#define GFP_KERNEL 0
#define kzalloc(bytes, flags) calloc(1, bytes)
#define kvzalloc(bytes, flags) calloc(1, bytes)
#define kvcalloc(count, bytes, flags) calloc(count, bytes)
#define kfree(at) free(at)
#define kvfree(at) free(at)

#endif
