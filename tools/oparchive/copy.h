/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The copy of one file into an archive, and its checksum. Holes stay holes and are not read, but a sum is of all bytes: files with more of them than OPR_HOLE_BYTES_MAX are cut where
 * their ELF headers say that they end, or refused.
 */
#ifndef OPR_ARCHIVE_COPY_H
#define OPR_ARCHIVE_COPY_H

#include <sys/stat.h>

#include "libop/base/stop.h"
#include "tools/profile/archive_sums.h"

#define OPR_HOLE_BYTES_MAX (1ull << 30)

struct opr_copy {
	int fd;
	const struct op_stop *stop; /* the caller's; NULL: nothing stops it */
	bool is_sparse;
	uint64_t end;       /* not copied from there on; UINT64_MAX: all of it */
	uint64_t nr_bytes;  /* that were copied, holes included */
	bool is_unreadable; /* the error is one of the file that is read */
	char digits[OPR_SUM_DIGITS + 1];
};

/* Looks at a regular file that is to be copied. 0; -EFBIG: it has too many holes, and no end before them; -EINTR; another -errno. Says nothing. */
int opr_copy_begin(struct opr_copy *copy, int fd, const struct stat *st, const struct op_stop *stop)
	OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;

/* Copies it to the empty file fd_to, -1: the sum alone is wanted. 0, -EINTR or another -errno. Says nothing. */
int opr_copy_run(struct opr_copy *copy, int fd_to) OP_NONNULL OP_MUST_CHECK;

#endif
