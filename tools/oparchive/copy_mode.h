/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who may read the copy of a file in an archive: nobody who may not read the file itself. */
#ifndef OPR_ARCHIVE_MODE_H
#define OPR_ARCHIVE_MODE_H

#include <sys/stat.h>

#include "libop/base/compiler.h"

/* What was found of the directory that the last file was in. */
struct opr_archive_way {
	char *dir;
	bool is_open; /* others may go there */
};

/*
 * The mode of a copy, for a file that is open. Its owner, who made it, can read it; others can as far as they can read the file, of which each directory that leads to it must let
 * them pass; the group, which is another than the file's, can only what both its group and others can. What the kernel says in /proc depends on who asks, and is for the owner alone.
 */
mode_t opr_archive_mode(struct opr_archive_way *way, int fd, const struct stat *st) OP_NONNULL;

void opr_archive_way_free(struct opr_archive_way *way);

#endif
