/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Source files: where they are now, and their lines. */
#ifndef OPR_SOURCE_FILE_H
#define OPR_SOURCE_FILE_H

#include <sys/types.h>

#include "tools/common/words.h"

#define OPR_SOURCE_BYTES_MAX (64u << 20)

struct opr_source_dirs {
	const struct opr_words *base_dirs;   /* prefixes to cut from names */
	const struct opr_words *search_dirs; /* where what is left is looked for first */
};

struct opr_source_file {
	char *path; /* where it was found; NULL: nowhere */
	dev_t device;
	ino_t inode;
	char *text;         /* lines, each ended by a NUL byte */
	const char **lines; /* the first at [0] */
	size_t nr_lines;
	unsigned int last, shown; /* for who shows it beside code: the line that was shown last, and the greatest */
};

/*
 * Looks for a file that the debugging information calls `name` and reads it: in the search directories without the first base directory that it begins with, or
 * whole; then at its own path. 0, also when it is nowhere or cannot be read: then it has no path, of which nothing is said; -ENOMEM. To be freed with
 * opr_source_file_free in any case.
 */
int opr_source_file_read(struct opr_source_file *file, const char *name,
			 const struct opr_source_dirs *dirs) OP_NONNULL OP_MUST_CHECK;

void opr_source_file_free(struct opr_source_file *file);

/* Files that were read already, by name: what a listing of code asks for again and again. */
struct opr_source_cache {
	struct opr_source_cache_item *items;
	size_t nr_items, capacity, last;
	const struct opr_source_dirs *dirs;
};

/* The file of a name, which may be nowhere; NULL: no memory. Valid until the next call. */
struct opr_source_file *opr_source_cache_find(struct opr_source_cache *cache, const char *name) OP_NONNULL OP_MUST_CHECK;

/* Nothing was shown yet. */
void opr_source_cache_rewind(struct opr_source_cache *cache) OP_NONNULL;

void opr_source_cache_free(struct opr_source_cache *cache);

#endif
