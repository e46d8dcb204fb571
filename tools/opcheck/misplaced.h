/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sample files whose header names another image or event than their path. Such a file may stand at
 * the path of another one. Then its header must not be repaired: its samples would become those of
 * an image or event that they were not counted for.
 */
#ifndef OPK_MISPLACED_H
#define OPK_MISPLACED_H

#include "tools/opcheck/header.h"

struct opk_misplaced {
	char *path; /* below the session */
	struct op_sample_name name;
	char *storage; /* of the name */
	struct op_odb_header found;
	struct opk_header header;
	char *owner;                   /* the path that the header fits; NULL: there is none */
	struct opk_misplaced *partner; /* each has the other's path; NULL: there is none */
	unsigned int nr_partners;
	bool is_done; /* the caller's */
};

struct opk_misplaced_list {
	struct opk_misplaced *files;
	size_t nr, capacity;
};

/*
 * The name of a sample file in a path below the session: from {root} or {kern} on; NULL: it has
 * none.
 */
const char *opk_sample_path(const char *path) OP_NONNULL;

/* Adds a file; copies the strings. 0 or -ENOMEM. */
int opk_misplaced_add(struct opk_misplaced_list *list, const char *path, const struct op_odb_header *found,
		      const struct opk_header *header) OP_NONNULL OP_MUST_CHECK;

/*
 * Finds owner and partner of each file among all sample files of a session. 0 or -errno.
 */
int opk_misplaced_find(struct opk_misplaced_list *list, const struct op_dcookie_table *images, int dir_fd)
	OP_NONNULL_ARGS(1) OP_MUST_CHECK;

void opk_misplaced_free(struct opk_misplaced_list *list) OP_NONNULL;

#endif
