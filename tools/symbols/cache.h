/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Symbols of earlier runs, in $OPD_CACHE_DIR, else $XDG_CACHE_HOME/opd, else ~/.cache/opd; an empty
 * OPD_CACHE_DIR turns the cache off. Each run writes one file (pack.h). The key of an image is its
 * build-id and size, with the options that change its symbols. That of /proc/kallsyms is the
 * kernel's build-id and the boot. An image without a build-id, or that another user than root and
 * this one can write, has its inode, size and times as key. Symbols are not used when their debug
 * file changed or a debug file came.
 */
#ifndef OPR_SYMBOL_CACHE_H
#define OPR_SYMBOL_CACHE_H

#include <time.h>

#include "tools/symbols/pack.h"
#include "tools/symbols/symbols.h"

#define OPR_PACK_NAME_BYTES 64

#define OPR_SYMBOL_CACHE_BYTES_MAX (512ull << 20) /* beyond that the oldest files are removed */

struct opr_kept_pack {
	struct opr_pack pack;
	char name[OPR_PACK_NAME_BYTES];
	time_t used;      /* mtime: when the file was last marked as used */
	uint32_t is_used; /* this run took symbols from it */
};

struct opr_symbol_cache {
	int dir_fd;                  /* -1: there is no cache */
	struct opr_kept_pack *packs; /* the smallest first */
	size_t nr_packs;
	struct opr_pack_writer writer; /* of new symbols */
	bool is_writing;
	int write_err;
	char temporary[OPR_PACK_NAME_BYTES];
};

/*
 * Opens or makes the directory. One that others may write to is not used. Never fails: without a
 * directory there is no cache.
 */
void opr_symbol_cache_open(struct opr_symbol_cache *cache) OP_NONNULL;

/*
 * The symbols of the image at `path`; `name` is as for opr_symbols_read_bfd. What they point to is
 * never freed. 0; -ENOENT: not in the cache; -ENOMEM. Several threads may call this at a time.
 */
int opr_symbol_cache_get(struct opr_symbol_cache *cache, const char *path, const char *name,
			 const struct opr_symbol_options *options, struct opr_symbols *symbols) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds the serialized symbols (serialize.h) of the image at `path`, unless the path now leads to
 * another file than `file`, which was read: symbols have the key of their own file. They are in the
 * cache after it was closed. Errors are ignored.
 */
void opr_symbol_cache_put(struct opr_symbol_cache *cache, const char *path, const struct opr_symbol_options *options,
			  const struct opr_file_read *file, const char *bytes, size_t nr_bytes) OP_NONNULL;

/* Writes the new symbols, removes the oldest files, and closes the cache. */
void opr_symbol_cache_close(struct opr_symbol_cache *cache) OP_NONNULL;

#endif
