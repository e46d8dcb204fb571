/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens a perf.data file: header, events and features. */
#ifndef OP_PERF_OPEN_H
#define OP_PERF_OPEN_H

#include "libop/perf/data.h"

/*
 * Opens a file, a pipe or a directory; fd stays the caller's. A file that comes through a pipe is
 * first copied to an unnamed file in $TMPDIR. The records of several files come in the order of
 * time, as far as each file has them in order. `stop`, which may be NULL, ends waiting for a pipe,
 * now and later.
 *
 * 0 and the reader, which op_perf_data_close frees; -EBADMSG and *ret_why, a constant text: not
 * such a file, or nothing of it can be used; -ENOMEM; -EINTR: stopped; another -errno, with
 * *ret_why set only when more is known.
 */
int op_perf_data_open(int fd, const struct op_stop *stop, struct op_perf_data **ret_data, const char **ret_why)
	OP_NONNULL_ARGS(3, 4) OP_MUST_CHECK;

#endif
