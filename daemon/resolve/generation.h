/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The generation of an inode: what tells a file from one that was removed before it and had the same number. The kernel gives it away in the
 * handle of a file (open_by_handle_at(2)), for which nothing is opened, and which has another form in each file system.
 */
#ifndef OPD_GENERATION_H
#define OPD_GENERATION_H

#include <stdint.h>

#include "libop/base/compiler.h"

/* Of the file at `path`, a link is followed, whose inode is that; 0: unknown, or it has another inode. */
uint64_t opd_generation_at(const char *path, uint64_t inode) OP_NONNULL;

/* The same in a handle of that type, as name_to_handle_at(2) gives it. */
uint64_t opd_generation_in(int type, const uint8_t *handle, size_t nr_bytes, uint64_t inode) OP_NONNULL;

#endif
