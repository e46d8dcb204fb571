/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Images of files that were looked at lately. A file can be rewritten in place, so an inode alone
 * does not identify an image. But a look is valid for everything that was mapped before it, because
 * a second look would come even later. So a process that maps the same files again and again costs
 * no system call each time.
 *
 * When a look is too old, one question to a looker is about many files: in a storm of processes
 * each visit needs the files of the visit before. The proof that the
 * answer is as good as a look of its own is in doc/security.md.
 *
 * Sync thread only.
 */
#ifndef OPD_STAT_CACHE_H
#define OPD_STAT_CACHE_H

#include "libop/base/compiler.h"
#include "pipeline/files/locate.h"
#include "pipeline/files/unchanged.h"

#define OPD_STAT_CACHE_SLOTS 1024u

/* A file as a record of a mapping identifies it, and its image. */
struct opd_stat_entry {
	uint64_t device, inode, inode_generation;
	uint64_t name_hash;
	struct opd_mount_view *mount_view; /* of the process; NULL: the host's */
	uint64_t cookie;                   /* of the image; OP_DCOOKIE_NONE: the entry is free */
	uint64_t time_ns;                  /* just before the look, OP_CLOCK */
	/* on the host; path NULL: it cannot be asked about with others */
	struct opd_known_file file;
	uint32_t uid;  /* of the file */
	bool was_used; /* since it was last asked about with others */
};

/*
 * All zero is empty. It has references to mount views: clear it before these are freed, and when
 * dcookies are forgotten.
 */
struct opd_stat_cache {
	struct opd_stat_entry slots[OPD_STAT_CACHE_SLOTS];
	uint64_t asked_ns; /* last question about files that may be unchanged */
};

void opd_stat_cache_clear(struct opd_stat_cache *cache) OP_NONNULL;

/*
 * The cookie of a mapping in mapped->stat_cache, when its file was looked at after it was mapped;
 * else OP_DCOOKIE_NONE. May ask a looker.
 */
uint64_t opd_stat_cache_find(const struct opd_mapped *mapped) OP_NONNULL OP_MUST_CHECK;

/* Adds the result of a look that began at asked_ns. It may replace another. */
void opd_stat_cache_keep(const struct opd_mapped *mapped, const struct opd_located *located, uint64_t asked_ns,
			 uint64_t cookie) OP_NONNULL;

#endif
