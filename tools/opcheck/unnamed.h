/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sample files of an image without a name: before there was "/(no path)" for it (libop/odb/mangle.h), opd wrote "{root}/{dep}/{root}/EVENT...", which is the name of
 * no sample file. Their samples are whole, and are kept under the name that they would have today.
 */
#ifndef OPK_CHECK_UNNAMED_H
#define OPK_CHECK_UNNAMED_H

#include "libop/base/compiler.h"

struct opk_check;

/* Paths below the session, to be moved when nobody walks there any more. Freed by opk_unnamed_free. */
struct opk_unnamed {
	struct opk_unnamed_file {
		char *path, *wanted;
	} *files;
	size_t nr, capacity;
};

/*
 * Takes a path that is not the name of a sample file in when an image without a name is all that it lacks, and when no other file has the place that
 * it belongs to. 1: taken in; 0: that is not so; -ENOMEM.
 */
int opk_unnamed_add(struct opk_unnamed *list, int dir_fd, const char *path) OP_NONNULL OP_MUST_CHECK;

/* Tells of each, and, when that is asked for, moves it to where it belongs. True when one was moved. */
bool opk_unnamed_settle(const struct opk_unnamed *list, struct opk_check *check) OP_NONNULL;

void opk_unnamed_free(struct opk_unnamed *list);

#endif
