/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The user's cache directory: $OPD_CACHE_DIR, else $XDG_CACHE_HOME/opd, else ~/.cache/opd; an empty OPD_CACHE_DIR is none. */
#ifndef OPR_CACHE_DIR_H
#define OPR_CACHE_DIR_H

#include <dirent.h>

#include "libop/base/compiler.h"

/* Opens a directory in it, and makes it where it is wanted. A descriptor; -1: there is none, or others may write to it. */
int opr_cache_dir_open(const char *subdir, bool make) OP_NONNULL OP_MUST_CHECK;

/* What is in it, to be closed with closedir(3); NULL: it cannot be read. */
DIR *opr_cache_dir_list(int dir_fd) OP_MUST_CHECK;

/* Removes the files that were changed the longest ago, until no more than so many bytes are left. */
void opr_cache_dir_prune(int dir_fd, uint64_t nr_bytes_max);

#endif
