/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fills the cache of images (image_cache.h) from a profile. */
#ifndef OPR_IMAGE_LIST_H
#define OPR_IMAGE_LIST_H

#include "tools/symbols/image_cache.h"
#include "tools/profile/profile.h"

/*
 * Fills the cache with the names of all images and applications of an arranged profile. Freed with
 * opr_image_cache_free in any case. 0 or -errno.
 */
int opr_image_cache_init(struct opr_image_cache *cache, const struct opr_profile *profile, struct opr_finder *finder,
			 const struct opr_naming *naming) OP_NONNULL OP_MUST_CHECK;

/* An image by its full name (image_name.h). Both stay the caller's. */
struct opr_named_image {
	const char *name;
	const struct op_image_name *image_name;
};

/* The same for a list of images, whatever samples the profile has. A name may come twice. */
int opr_image_cache_init_list(struct opr_image_cache *cache, const struct opr_profile *profile, struct opr_finder *finder,
			      const struct opr_naming *naming, const struct opr_named_image *list, size_t nr_list)
	OP_NONNULL_ARGS(1, 2, 3, 4) OP_MUST_CHECK;

#endif
