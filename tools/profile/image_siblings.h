/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files of a profile's sessions whose names say that they took the place of another (tools/symbols/image_identity.h). */
#ifndef OPR_IMAGE_SIBLINGS_H
#define OPR_IMAGE_SIBLINGS_H

#include "tools/symbols/image_identity.h"
#include "tools/profile/profile.h"

struct opr_sibling {
	struct opr_identity identity;
	char *image;       /* the name without what it is told by */
	char *sample_file; /* the path that its sample file would have had in the place of the other */
};

struct opr_siblings {
	struct opr_sibling *items;
	size_t nr_items, capacity;
};

/* Looks at all files of the sessions, also those that are not selected. To be freed with opr_siblings_free in any case. 0 or -errno. */
int opr_siblings_find(struct opr_siblings *siblings, const struct opr_profile *profile) OP_NONNULL OP_MUST_CHECK;

/* True when another file has taken the place of the image of this name. */
bool opr_siblings_have(const struct opr_siblings *siblings, const char *image) OP_NONNULL;

/* True when the file at `path` is one that was counted apart from the sample file. */
bool opr_siblings_own(const struct opr_siblings *siblings, const struct opr_archive *archive, const char *sample_file,
		      const char *path) OP_NONNULL_ARGS(1, 3, 4);

void opr_siblings_free(struct opr_siblings *siblings);

#endif
