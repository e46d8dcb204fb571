/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Symbols that were read once, in the user's cache directory: $OPD_CACHE_DIR, else $XDG_CACHE_HOME/opd, else ~/.cache/opd; an empty OPD_CACHE_DIR is none. What was read in a run is one file
 * (pack.h). In it an image is known by its build-id and its size, without a build-id, and where another user than root and this one can write to it, by its inode, size and times, and it is said which debug file its symbols are of: when that one changed, or one came, they
 * are of no use. What does not have its checksum is as if it was not there.
 */
#ifndef OPR_SYMBOL_CACHE_H
#define OPR_SYMBOL_CACHE_H

#include <time.h>

#include "tools/symbols/pack.h"
#include "tools/symbols/symbols.h"

#define OPR_PACK_NAME_BYTES 64

#define OPR_SYMBOL_CACHE_BYTES_MAX (512ull << 20) /* the oldest go when there is more */

struct opr_kept_pack {
	struct opr_pack pack;
	char name[OPR_PACK_NAME_BYTES];
	time_t used;      /* when it was marked as used */
	uint32_t is_used; /* something was taken of it */
};

struct opr_symbol_cache {
	int dir_fd;                  /* -1: there is none */
	struct opr_kept_pack *packs; /* the smallest first */
	size_t nr_packs;
	struct opr_pack_writer writer; /* of what is new */
	bool is_writing;
	int write_err;
	char temporary[OPR_PACK_NAME_BYTES];
};

/* Opens the directory, and makes it. A directory that others may write to is not used. Never fails: then there is none. */
void opr_symbol_cache_open(struct opr_symbol_cache *cache) OP_NONNULL;

/* The symbols of the image at `path`; what they point at is the process's for good. 0; -ENOENT: they are not there; -ENOMEM. Several threads may ask at a time. */
int opr_symbol_cache_get(struct opr_symbol_cache *cache, const char *path, const struct opr_symbol_options *options,
			 struct opr_symbols *symbols) OP_NONNULL OP_MUST_CHECK;

/* Keeps what was read from the image at `path`, in the form of packed_file.h; it is there when the cache was closed. What cannot be kept is not. */
void opr_symbol_cache_put(struct opr_symbol_cache *cache, const char *path, const struct opr_symbol_options *options,
			  const char *bytes, size_t nr_bytes) OP_NONNULL;

/* Writes what is new, removes what is too much, and closes it. */
void opr_symbol_cache_close(struct opr_symbol_cache *cache) OP_NONNULL;

#endif
