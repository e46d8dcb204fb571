/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Row tables on the disk: DIR/xx/BUILD-ID, where xx are the first two digits, and BUILD-ID.UID for
 * files that belong to another user than root. So no user changes the tables of another one by a
 * file with the same build-id. Each file ends with a seal (libop/base/seal.h). The tables that were
 * not used for the longest time are removed first.
 *
 * A file counts only when it belongs to root or to this user, and when no other user may write to
 * it. Everything works without the cache, too.
 *
 * Sync thread only.
 */
#ifndef OPD_CACHE_H
#define OPD_CACHE_H

#include "libop/base/build_id.h"
#include "libop/base/compiler.h"

struct opd_cache {
	int dir_fd; /* -1: there is none */
	uint64_t max_use, used; /* bytes; max_use 0: no limit */
	uint64_t retry_ns;      /* the disk took nothing: not before this time again */
};

/* Makes the directory. Never fails: without a directory that can be used there is no cache. */
void opd_cache_open(struct opd_cache *cache, const char *path, uint64_t max_use) OP_NONNULL_ARGS(1);
void opd_cache_close(struct opd_cache *cache) OP_NONNULL;

/*
 * Opens the table of an image. A descriptor, which the caller closes, with *ret_nr_bytes of the
 * table, which end before the file does; -ENOENT: there is none.
 */
int opd_cache_find(struct opd_cache *cache, const struct op_build_id *id, uint32_t uid, uint64_t *ret_nr_bytes)
	OP_NONNULL OP_MUST_CHECK;

/* Keeps a table. A descriptor as above, or -errno: the disk does not take it. */
int opd_cache_add(struct opd_cache *cache, const struct op_build_id *id, uint32_t uid, const void *table, uint64_t nr_bytes)
	OP_NONNULL OP_MUST_CHECK;

/*
 * Puts a table that is not looked for by name into a file without one, which is gone with its last
 * descriptor and mapping, and is not a part of `used`. A descriptor, or -errno.
 */
int opd_cache_add_unnamed(struct opd_cache *cache, const void *table, uint64_t nr_bytes) OP_NONNULL OP_MUST_CHECK;

#endif
