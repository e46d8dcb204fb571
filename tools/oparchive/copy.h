/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Copies one file into an archive and computes its checksum. Holes stay holes and are not read. But
 * a sum is over all bytes: a file with more than OPR_HOLE_BYTES_MAX bytes of holes is cut at the
 * end that its ELF headers name, or refused.
 */
#ifndef OPR_ARCHIVE_COPY_H
#define OPR_ARCHIVE_COPY_H

#include <sys/stat.h>

#include "libop/process/stop.h"
#include "tools/profile/archive_sums.h"

#define OPR_HOLE_BYTES_MAX (1ull << 30)

struct opr_copy {
	int fd;
	const struct op_stop *stop; /* the caller's; NULL: never stops */
	bool is_sparse;
	uint64_t end;       /* where the copy ends; UINT64_MAX: at the end of the file */
	uint64_t nr_bytes;  /* copied, with holes */
	bool is_unreadable; /* the error comes from reading */
	char digits[OPR_SUM_DIGITS + 1];
};

/*
 * Prepares the copy of a regular file. 0; -EFBIG: too many holes, and no end before them; -EINTR;
 * another -errno. No messages.
 */
int opr_copy_begin(struct opr_copy *copy, int fd, const struct stat *st, const struct op_stop *stop)
	OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;

/*
 * Copies to the empty file fd_to; -1: computes the sum only. 0, -EINTR or another -errno. No
 * messages.
 */
int opr_copy_run(struct opr_copy *copy, int fd_to) OP_NONNULL OP_MUST_CHECK;

/* The directory of the last file. All zeros at first. */
struct opr_archive_access {
	char *dir;
	bool others_enter; /* it and all above it let others pass */
};

/*
 * The mode of a copy of an open file. The owner may read it. Others may do what they may do with
 * the file, if they can pass all directories to it. The group is another one than the file's: it
 * may do what both the file's group and others may do. Copies from /proc, which shows each user
 * something else, are for the owner only.
 */
mode_t opr_archive_mode(struct opr_archive_access *access, int fd, const struct stat *st) OP_NONNULL;

void opr_archive_access_free(struct opr_archive_access *access);

#endif
