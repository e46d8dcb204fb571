/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Image files of the sessions that took the place of another file, and are counted apart from it
 * (tools/symbols/image_identity.h).
 */
#ifndef OPR_IMAGE_SIBLINGS_H
#define OPR_IMAGE_SIBLINGS_H

#include "tools/symbols/image_identity.h"
#include "tools/profile/profile.h"

struct opr_sibling {
	struct opr_identity identity;
	char *image;       /* the plain name */
	char *sample_file; /* the path of the sample file of the other image file */
};

struct opr_siblings {
	struct opr_sibling *items;
	size_t nr_items, capacity;
};

/*
 * Searches all sample files of the sessions, also those that are not selected. Freed with
 * opr_siblings_free in any case. 0 or -errno.
 */
int opr_siblings_find(struct opr_siblings *siblings, const struct opr_profile *profile) OP_NONNULL OP_MUST_CHECK;

/* Whether another file took the place of the image with that name. */
bool opr_siblings_have(const struct opr_siblings *siblings, const char *image) OP_NONNULL;

/* Whether the file at `path` is counted apart from the samples in sample_file. */
bool opr_siblings_own(const struct opr_siblings *siblings, const struct opr_archive *archive, const char *sample_file,
		      const char *path) OP_NONNULL_ARGS(1, 3, 4);

void opr_siblings_free(struct opr_siblings *siblings);

#endif
