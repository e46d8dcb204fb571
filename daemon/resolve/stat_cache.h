/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Files that were looked at lately. A file can be written anew in place, and so an inode alone does not say which image it is. But what a
 * look has shown is good for everything that was mapped before it: a second look could only come later still. A process that maps the same
 * files over and over is told apart from its own past without a system call for each time.
 *
 * Sync thread only.
 */
#ifndef OPD_STAT_CACHE_H
#define OPD_STAT_CACHE_H

#include "daemon/resolve/mount_view.h"
#include "libop/base/compiler.h"

#define OPD_STAT_CACHE_SLOTS 256u

/* How a record tells of a file. */
struct opd_stat_entry {
	uint64_t device, inode, inode_generation;
	uint64_t name_hash;
	struct opd_mount_view *place; /* of the process; NULL: the host */
	uint64_t cookie;	 /* of the image; OP_DCOOKIE_NONE: the slot is free */
	uint64_t time_ns;	 /* OP_CLOCK, just before the look */
};

/* Zero is empty. It holds references to places: to be cleared before these are freed, and when rows of cookies are forgotten. */
struct opd_stat_cache {
	struct opd_stat_entry slots[OPD_STAT_CACHE_SLOTS];
};

/* The cookie of the file, if it was looked at after time_ns (look->time_ns and look->cookie are not read); else OP_DCOOKIE_NONE. */
uint64_t opd_stat_cache_find(const struct opd_stat_cache *looked, const struct opd_stat_entry *look, uint64_t time_ns) OP_NONNULL OP_MUST_CHECK;

/* Keeps what a look has shown, in the place of another. */
void opd_stat_cache_keep(struct opd_stat_cache *looked, const struct opd_stat_entry *look) OP_NONNULL;

void opd_stat_cache_clear(struct opd_stat_cache *looked) OP_NONNULL;

#endif
