/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lines of source files, wherever they are now. */
#ifndef OPR_SOURCE_FILE_H
#define OPR_SOURCE_FILE_H

#include <sys/types.h>

#include "tools/common/words.h"

#define OPR_SOURCE_BYTES_MAX (64u << 20)

struct opr_source_dirs {
	const struct opr_words *base_dirs;   /* prefixes that are cut from names */
	const struct opr_words *search_dirs; /* searched first, for the rest; all there is shown */
};

struct opr_source_file {
	char *path; /* where it was found; NULL: nowhere */
	bool is_private; /* it is there, but is not read */
	dev_t device;
	ino_t inode;
	char *text;         /* the lines, each with a NUL at its end */
	const char **lines; /* line 1 is lines[0] */
	size_t nr_lines;
	/* for a listing of code: the line shown last, and the greatest line shown */
	unsigned int last, shown;
};

/*
 * Finds and reads the file that debugging information calls `name`. It searches the search
 * directories for the name without the first base directory that matches, then for the whole name,
 * and last the name itself. A stranger can choose the name, and others see a report of root. So
 * elsewhere only a file counts that others may read, and that the caller owns or everybody can
 * reach. 0; the file has no path when it is not found or not readable; -ENOMEM. Prints nothing. To
 * be freed with opr_source_file_free in any case.
 */
int opr_source_file_read(struct opr_source_file *file, const char *name,
			 const struct opr_source_dirs *dirs) OP_NONNULL OP_MUST_CHECK;

void opr_source_file_free(struct opr_source_file *file);

/* Source files by name: a listing of code needs the same file many times. */
struct opr_source_cache {
	struct opr_source_cache_item *items;
	size_t nr_items, capacity, last;
	const struct opr_source_dirs *dirs;
};

/* The file of a name, read at the first call; NULL: no memory. Valid until the next call. */
struct opr_source_file *opr_source_cache_find(struct opr_source_cache *cache, const char *name) OP_NONNULL OP_MUST_CHECK;

/* Sets `last` and `shown` of all files to 0. */
void opr_source_cache_rewind(struct opr_source_cache *cache) OP_NONNULL;

void opr_source_cache_free(struct opr_source_cache *cache);

#endif
