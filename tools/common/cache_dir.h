/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cache: $OPD_CACHE_DIR (empty: none), else $XDG_CACHE_HOME/opd, else ~/.cache/opd. */
#ifndef OPR_CACHE_DIR_H
#define OPR_CACHE_DIR_H

#include <dirent.h>

#include "libop/base/compiler.h"

/* Opens, or makes, a directory in it. A descriptor; -1: none, or others may write to it. */
int opr_cache_dir_open(const char *subdir, bool make) OP_NONNULL OP_MUST_CHECK;

/* Opens it for readdir(3). Closed with closedir(3); NULL: it cannot be read. */
DIR *opr_cache_dir_list(int dir_fd) OP_MUST_CHECK;

/* Removes the oldest files until no more than so many bytes are left. */
void opr_cache_dir_prune(int dir_fd, uint64_t nr_bytes_max);

#endif
