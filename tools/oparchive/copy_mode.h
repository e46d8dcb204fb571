/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The mode of a copy in an archive: only users who may read the file may read its copy. */
#ifndef OPR_ARCHIVE_MODE_H
#define OPR_ARCHIVE_MODE_H

#include <sys/stat.h>

#include "libop/base/compiler.h"

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
