/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The timeline as a part of a session (part.h). Its samples are also in the sample files. */
#ifndef OP_SESSION_TIMELINE_PART_H
#define OP_SESSION_TIMELINE_PART_H

#include "libop/session/part.h"

/* Adds nothing to the sums: the samples are those of the sample files and of the file of stacks. */
int op_timeline_part_read(int dir_fd, const char *path, struct op_part_reading *reading) OP_NONNULL OP_MUST_CHECK;
int op_timeline_part_recover(int dir_fd, const char *path, const char *tmp_path, uint64_t *ret_nr_dropped)
	OP_NONNULL OP_MUST_CHECK;

#endif
