/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The way from an address to a name. tools/profile/image_list.h fills it with the images of a
 * report. opr_image_cache_find finds the file of an image (tools/symbols/image_path.h),
 * opr_image_cache_read reads the symbols of all images (tools/symbols/parallel_read.h),
 * opr_image_load those of one, opr_images_find_lines source lines. Each happens once for an image.
 */
#ifndef OPR_IMAGE_CACHE_H
#define OPR_IMAGE_CACHE_H

#include "libop/odb/format.h"
#include "tools/symbols/image_identity.h"
#include "tools/symbols/image_path.h"
#include "tools/symbols/kept.h"
#include "tools/symbols/symbols.h"

/* The name of functions of an image that was put off. */
#define OPR_PUT_OFF "(symbols are being read)"

struct opr_image {
	const char *name; /* full */
	const struct op_image_name *image_name;
	/*
	 * the path that was found; the name when there is none, or when the name has more than a
	 * path
	 */
	const char *shown;
	char *path; /* NULL: not found */
	/* what is known of the image; empty when a file has the full name */
	struct opr_identity identity;
	bool is_wanted; /* by opr_image_cache_read */
	uint64_t mtime; /* of the file that was found; 0: unknown */
	bool searched, loaded, mtime_checked, foreign_warned;
	bool is_object;    /* the file is an object: symbols.start_offset is set */
	bool is_table;     /* there is no file, but opd's row table has the functions */
	bool is_gone;      /* the user is told in opr_image_cache_free: one line for all of them */
	bool has_other_files; /* other files were at the path and are counted apart */
	enum opr_image_state state;
	struct opr_symbols symbols;
	bool is_read;   /* symbols or read_err are set */
	bool is_put_off; /* there was no time to read its symbols: it has none in this report */
	struct opr_file_state file_state; /* when they were read; set with naming->kept */
	bool has_lines; /* source lines were searched */
	int read_err;
	uint64_t nr_samples;
	bool is_asked_for; /* its debug file, from servers */
};

/*
 * An image file that took the place of another file and is counted apart from it
 * (tools/symbols/image_identity.h).
 */
struct opr_other_file {
	struct opr_identity identity;
	char *image;       /* the plain name */
	char *sample_file; /* the path of the sample file of the other image file */
};

struct opr_image_cache {
	struct opr_image *images; /* sorted by name, each once */
	size_t nr_images;
	struct opr_finder *finder;
	const struct opr_naming *naming;
	/* CLOCK_MONOTONIC: images that are not read by then are put off; 0: none is */
	uint64_t names_end_ns;
	size_t nr_put_off;
	uint64_t nr_samples;
	struct opr_other_file *other_files; /* in all sample files, selected or not */
	size_t nr_other_files, other_files_capacity;
	bool hint_given; /* the hint about changed files was given */
};

/*
 * The image with that name, which the cache has; searches its file. NULL: no memory, which was
 * reported.
 */
struct opr_image *opr_image_cache_find(struct opr_image_cache *cache, const char *name) OP_NONNULL;

/* The options for reading the symbols of an image that has a file. */
struct opr_symbol_options opr_image_options(const struct opr_image_cache *cache, const struct opr_image *image) OP_NONNULL;

/*
 * Reads the symbols of all wanted images, by several processes; downloads debug files that are
 * missing, if the tool uses those. opr_image_load reads an image that was not read, and warns of
 * what went wrong. With names_end_ns the images with most samples come first. 0 or -errno.
 */
int opr_image_cache_read(struct opr_image_cache *cache) OP_NONNULL OP_MUST_CHECK;

/*
 * Finds the source lines of addresses in an image, so that opr_symbols_line answers; with_frames:
 * also the inlined functions, for opr_symbols_frame. Sorts the addresses. Failure is a warning. 0
 * or -ENOMEM.
 */
int opr_image_find_lines(struct opr_image_cache *cache, struct opr_image *image, uint64_t *vmas, size_t nr_vmas,
			 bool with_frames) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/* The same for many images, several at a time. */
struct opr_image_lines {
	struct opr_image *image;
	uint64_t *vmas;
	size_t nr_vmas;
};

int opr_images_find_lines(struct opr_image_cache *cache, struct opr_image_lines *list, size_t nr_list,
			  bool with_frames) OP_NONNULL_ARGS(1) OP_MUST_CHECK;

/* Reads the symbols of an image, unless they are read. Failure is a warning. 0 or -ENOMEM. */
int opr_image_load(struct opr_image_cache *cache, struct opr_image *image) OP_NONNULL OP_MUST_CHECK;

/*
 * Whether the samples of the file at the path `sample_file` are of the image file that was found;
 * else its symbols do not apply to them. Where several files were at the path of the image, only
 * the name or the mtime in the header is proof. Warns once for each image of a file that is not, or
 * may not be, the right one.
 */
bool opr_image_check(struct opr_image_cache *cache, struct opr_image *image, const char *sample_file,
		     const struct op_odb_header *header) OP_NONNULL OP_MUST_CHECK;

/* Also tells the user which images are gone. */
void opr_image_cache_free(struct opr_image_cache *cache);

#endif
