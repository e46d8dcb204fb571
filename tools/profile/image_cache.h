/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The images of a profile with their files and symbols, each looked for and read once, when it is first needed. */
#ifndef OPR_IMAGE_CACHE_H
#define OPR_IMAGE_CACHE_H

#include "libop/odb/odb.h"
#include "tools/symbols/image_identity.h"
#include "tools/profile/image_siblings.h"
#include "tools/symbols/image_path.h"
#include "tools/profile/profile.h"
#include "tools/symbols/symbols.h"

struct opr_image {
	const char *name; /* in full */
	const struct op_image_name *image_name;
	const char *shown;            /* where it was found, else, and when the name tells more than a path, its name */
	char *path;                   /* NULL: not found */
	struct opr_identity identity; /* what the name tells; nothing when there is a file of the whole name */
	uint64_t mtime;               /* of the file that was found; 0: unknown */
	bool looked_for, loaded, checked, foreign_told;
	bool is_object;    /* start_offset is of use */
	bool has_siblings; /* other files were at the path, too */
	enum opr_image_state state;
	struct opr_symbols symbols;
	bool is_read;	/* its symbols, or why they cannot be */
	bool has_lines; /* were looked for */
	int read_err;
};

struct opr_image_cache {
	struct opr_image *images; /* sorted by name */
	size_t nr_images;
	struct opr_finder *finder;
	const struct opr_profile *profile;
	struct opr_symbol_options options;
	struct opr_siblings siblings;
	bool hinted; /* the line about what a changed file means */
};

/* Names of all images and applications of an arranged profile. To be freed with opr_image_cache_free in any case. 0 or -errno. */
int opr_image_cache_init(struct opr_image_cache *cache, const struct opr_profile *profile, struct opr_finder *finder,
			 const struct opr_symbol_options *options) OP_NONNULL OP_MUST_CHECK;

/* The image of a name that the profile has, with `shown` set. NULL after an error, which is without memory. */
struct opr_image *opr_image_cache_find(struct opr_image_cache *cache, const char *name) OP_NONNULL;

/* How the symbols of an image that was found are read. */
struct opr_symbol_options opr_image_options(const struct opr_image_cache *cache, const struct opr_image *image) OP_NONNULL;

/*
 * Reads the symbols of all images of the profile, by several processes. opr_image_load reads an image
 * that was not read, and warns of what went wrong. 0 or -errno.
 */
int opr_image_cache_read(struct opr_image_cache *cache) OP_NONNULL OP_MUST_CHECK;

/* Finds the source lines of addresses in an image, for opr_symbols_line; sorts them. What prevents it is a warning; 0 or -ENOMEM. */
int opr_image_find_lines(struct opr_image_cache *cache, struct opr_image *image, uint64_t *vmas, size_t nr_vmas) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/* Reads the image's symbols. What prevents it is a warning; 0 or -ENOMEM. */
int opr_image_load(struct opr_image_cache *cache, struct opr_image *image) OP_NONNULL OP_MUST_CHECK;

/*
 * False when the file that was found is not the one that these samples are of: its symbols say nothing about them. Where several files were at the path,
 * only what the name or the header's mtime proves counts. Warns, once for each image, when the file is not, or may not be, the right one.
 */
bool opr_image_check(struct opr_image_cache *cache, struct opr_image *image, const struct opr_file *file,
		     const struct op_odb_header *header) OP_NONNULL OP_MUST_CHECK;

void opr_image_cache_free(struct opr_image_cache *cache);

#endif
