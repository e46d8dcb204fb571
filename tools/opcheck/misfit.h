/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sample files whose header says that they are of another image or event than their name. One that is where another one belongs must not have its header mended: its counts
 * would be made those of what they were not counted for.
 */
#ifndef OPK_CHECK_MISFIT_H
#define OPK_CHECK_MISFIT_H

#include "tools/opcheck/header.h"

struct opk_misfit {
	char *path; /* below the session */
	struct op_sample_name name;
	char *storage; /* of the name */
	struct op_odb_header found;
	struct opk_header header;
	char *owner;                /* the path of a file that it may be; NULL: there is none */
	struct opk_misfit *partner; /* the only one that is in its place, and it in its; NULL: there is none */
	unsigned int nr_partners;
	bool is_settled; /* the caller's */
};

struct opk_misfits {
	struct opk_misfit *misfits;
	size_t nr, capacity;
};

/* The part of a path below the session that is the name of a sample file: from its {root} or {kern} on; NULL: it has none. */
const char *opk_sample_path(const char *path) OP_NONNULL;

/* Adds a file; strings are copied. 0 or -ENOMEM. */
int opk_misfits_add(struct opk_misfits *list, const char *path, const struct op_odb_header *found,
		    const struct opk_header *header) OP_NONNULL OP_MUST_CHECK;

/* Looks at the name of every file below the directories `tops` of a session, for who is in whose place. 0 or -errno. */
int opk_misfits_find(struct opk_misfits *list, const struct op_dcookie_table *images, int dir_fd, const char *const tops[],
		     size_t nr_tops) OP_NONNULL_ARGS(1, 4) OP_MUST_CHECK;

void opk_misfits_free(struct opk_misfits *list) OP_NONNULL;

#endif
