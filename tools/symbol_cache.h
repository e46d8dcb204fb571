/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Symbols that were read once, in the user's cache directory: $OPD_CACHE_DIR, else $XDG_CACHE_HOME/opd, else ~/.cache/opd; an empty OPD_CACHE_DIR is none. A file is named by the build-id and the size of
 * the image, without a build-id by its inode, size and times, and says which debug file its symbols are of: when that one changed, or one came, it is of no use. A checksum is at the end of each file; one that does not fit is as if it was not there.
 */
#ifndef OPR_SYMBOL_CACHE_H
#define OPR_SYMBOL_CACHE_H

#include "tools/symbols.h"

#define OPR_SYMBOL_CACHE_BYTES_MAX (512ull << 20) /* the oldest go when there is more */

struct opr_symbol_cache {
	int dir_fd; /* -1: there is none */
	bool has_new;
};

/* Opens the directory, and makes it. A directory that others may write to is not used. Never fails: then there is none. */
void opr_symbol_cache_open(struct opr_symbol_cache *cache) OP_NONNULL;

/* The symbols of the image at `path`. 0; -ENOENT: they are not there; -ENOMEM. */
int opr_symbol_cache_get(const struct opr_symbol_cache *cache, const char *path, const struct opr_symbol_options *options,
			 struct opr_symbols *symbols) OP_NONNULL OP_MUST_CHECK;

/* Keeps what was read from the image at `path`, in the form of symbols_file.h. What cannot be kept is not. */
void opr_symbol_cache_put(struct opr_symbol_cache *cache, const char *path, const struct opr_symbol_options *options,
			  const char *bytes, size_t nr_bytes) OP_NONNULL;

/* Removes what is too much, and closes it. */
void opr_symbol_cache_close(struct opr_symbol_cache *cache) OP_NONNULL;

#endif
