/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The cache of tables (cache.h) in a thread of its own, because a disk may be slow and the sync
 * thread waits for none. It has one job at a time; while that takes, opd works without the cache.
 *
 *   call                         any thread   beside the same call
 *   opd_disk_submit, _take            -               -
 *   opd_disk_new, _free               -               -
 *
 * All are for one thread, in opd the sync thread.
 */
#ifndef OPD_DISK_H
#define OPD_DISK_H

#include "libop/base/build_id.h"
#include "libop/base/compiler.h"

#define OPD_DISK_USERS 2u

struct opd_disk;

struct opd_disk_job {
	bool is_add; /* else it is a search */
	struct op_build_id id; /* is_add: of no bytes for a file without a name */
	/* a search: of root's file, and of this user's; a new table: whose file it is */
	uint32_t users[OPD_DISK_USERS];
	size_t nr_users;
	int table_fd; /* is_add: becomes the thread's */
	/* The table, or the negative errno. The caller closes it. */
	int fd;
	uint64_t nr_bytes; /* of the table; is_add: set by the caller */
};

/* path and max_use as opd_cache_open; path NULL: a disk that has nothing. 0 or -errno. */
int opd_disk_new(const char *path, uint64_t max_use, struct opd_disk **ret_disk) OP_NONNULL_ARGS(3) OP_MUST_CHECK;

/* Waits for the job. NULL is allowed. */
void opd_disk_free(struct opd_disk *disk);

/* False: there is no cache, or it has a job; then nothing is taken over. */
bool opd_disk_submit(struct opd_disk *disk, const struct opd_disk_job *job) OP_NONNULL OP_MUST_CHECK;

/* False: no job is done. */
bool opd_disk_take(struct opd_disk *disk, struct opd_disk_job *ret_job) OP_NONNULL OP_MUST_CHECK;

/* Readable when a job is done; -1: there is no cache. */
int opd_disk_fd(const struct opd_disk *disk) OP_NONNULL;

#endif
