/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * After an unclean stop: decides for each file that op_odb_replace kept which one stays, the old
 * or the new one.
 */
#ifndef OP_ODB_RECOVER_H
#define OP_ODB_RECOVER_H

#include "libop/base/compiler.h"

/*
 * Directories that were renamed: a file that was replaced below `from` may be below one of `to`
 * now.
 */
struct op_odb_moves {
	const char *from;
	char *const *to;
	size_t nr_to;
};

/*
 * Finishes all replacements under tmp_path, before anything is counted. A new sample file stays
 * when it has all counts of the old one, and a sealed one (is_sealed says so of a path) when its
 * seal is right; it is synced then. Else the old one takes its place again; *ret_nr_put_back
 * counts these. Also removes the file at tmp_path. 0, or the first -errno after the rest was done.
 */
int op_odb_recover(int dir_fd, const char *tmp_path, const struct op_odb_moves *moves, bool (*is_sealed)(const char *path),
		   uint64_t *ret_nr_put_back) OP_NONNULL OP_MUST_CHECK;

#endif
