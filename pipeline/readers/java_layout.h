/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The layout of a Java machine, from the tables of its image. In the looker. */
#ifndef OPD_JAVA_LAYOUT_H
#define OPD_JAVA_LAYOUT_H

#include "libop/base/compiler.h"
#include "pipeline/readers/far_memory.h"
#include "pipeline/readers/java_format.h"

/* `start`: the first byte of the image. 0 or as struct opd_java_part says. */
int opd_java_read_layout(struct opd_far_memory *memory, uint64_t start,
			 struct opd_java_layout *ret_layout) OP_NONNULL OP_MUST_CHECK;

#endif
