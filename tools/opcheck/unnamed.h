/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sample files of an image without a name. Early versions of opd wrote them as
 * "{root}/{dep}/{root}/EVENT...", which is not the name of a sample file. Their samples are whole,
 * and are moved to the name that opd gives them today, "/(no path)" (libop/odb/mangle.h).
 */
#ifndef OPK_UNNAMED_H
#define OPK_UNNAMED_H

#include "tools/opcheck/findings.h"

/* Paths below the session, which opk_unnamed_move moves after the walk through it. */
struct opk_unnamed {
	struct opk_unnamed_file {
		char *path, *wanted;
	} *files;
	size_t nr, capacity;
};

/*
 * Adds a path that is not the name of a sample file, if it would be one with a name for its image,
 * and if no file has that name. 1: added; 0: it is another path; -ENOMEM.
 */
int opk_unnamed_add(struct opk_unnamed *list, int dir_fd, const char *path) OP_NONNULL OP_MUST_CHECK;

/* Reports each file and, in a repair, moves it. True when one was moved. */
bool opk_unnamed_move(const struct opk_unnamed *list, struct opk_check *check) OP_NONNULL;

void opk_unnamed_free(struct opk_unnamed *list);

#endif
