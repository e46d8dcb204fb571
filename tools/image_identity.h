/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * opd counts a file that took the place of another apart from it, under "PATH (build-id 0123456789ab)", the first six bytes of its build-id, or
 * "PATH (inode 12)". The name without the suffix is that of the file which was there first. Source: name_image of daemon/count.c.
 */
#ifndef OPR_IMAGE_IDENTITY_H
#define OPR_IMAGE_IDENTITY_H

#include "libop/compiler.h"

enum opr_identity_kind {
	OPR_IDENTITY_NONE,
	OPR_IDENTITY_BUILD_ID,
	OPR_IDENTITY_INODE,
	OPR_IDENTITY_UNKNOWN, /* "(inode 0)": opd could not look at the file */
};

struct opr_identity {
	enum opr_identity_kind kind;
	size_t path_length;   /* of the name without the suffix */
	const char *build_id; /* twelve hexadecimal digits, within the name */
	uint64_t inode;
};

/* What a name says; valid as long as the name. */
struct opr_identity opr_identity_of(const char *name) OP_NONNULL;

/* The name without the suffix. Freed by the caller; NULL: no memory. */
char *opr_identity_path(const char *name) OP_NONNULL OP_MUST_CHECK;

/* True when the file at `path` is the one that the identity tells; one that says nothing agrees with none. */
bool opr_identity_agrees(const struct opr_identity *identity, const char *path) OP_NONNULL;

#endif
