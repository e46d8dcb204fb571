/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * After an unclean stop: decides for each replaced file (op_odb_replace) whether the old or the new
 * file stays.
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
 * when it has all counts of the old one. A new sealed file (is_sealed says that for a path) stays
 * when its seal is right. A new file that stays is synced; else the old one is restored, and
 * *ret_nr_put_back counts it. Also removes the file at tmp_path. 0, or the first -errno after the
 * rest was done.
 */
int op_odb_recover(int dir_fd, const char *tmp_path, const struct op_odb_moves *moves, bool (*is_sealed)(const char *path),
		   uint64_t *ret_nr_put_back) OP_NONNULL OP_MUST_CHECK;

#endif
