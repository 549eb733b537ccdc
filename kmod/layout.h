/* SPDX-License-Identifier: GPL-2.0-only */
/* What the front and a core must have in common: see core.h. */
#ifndef CGPU_LAYOUT_H
#define CGPU_LAYOUT_H

#include "core.h"

/* To be raised when a structure below changes its meaning and not its size. */
#ifndef CGPU_LAYOUT
#define CGPU_LAYOUT		1
#endif

#define BYTES_OF(type)		{ "struct " #type, sizeof(struct type) }

static const struct cgpu_layout cgpu_layouts[] = {
	{ "layout", CGPU_LAYOUT },
	BYTES_OF(cgpu_core),
	BYTES_OF(cgpu_gpu),
	BYTES_OF(cgpu_share),
	BYTES_OF(cgpu_inst),
	BYTES_OF(cgpu_node),
	BYTES_OF(cgpu_file),
	BYTES_OF(cgpu_range),
	BYTES_OF(cgpu_call),
	BYTES_OF(cgpu_obj),
	BYTES_OF(cgpu_objs),
	BYTES_OF(cgpu_phys),
	BYTES_OF(cgpu_account),
	BYTES_OF(cgpu_sched),
	BYTES_OF(cgpu_entity),
	BYTES_OF(cgpu_turn),
};

#undef BYTES_OF
#endif
