/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The dcookie table on the disk, samples/current/dcookies (opd-dcookies(5)). A row is appended in
 * one write, before the first sample of its image is counted, so a kill loses no row. A dump
 * rewrites the whole table, with the times of the last samples. A failed write is counted and tried
 * again; samples are counted meanwhile.
 *
 *   call                                   sync thread   dump thread
 *   _open, _close, _flush, _reset, _begin       x
 *   _give_up                                    x
 *   _publish                                                  x
 *
 * The table itself is the sync thread's.
 */
#ifndef OPD_COOKIE_FILE_H
#define OPD_COOKIE_FILE_H

#include <pthread.h>

#include "libop/base/compiler.h"
#include "libop/session/dcookie.h"

struct opd_cookie_file {
	int session_fd; /* the session directory; the caller's */
	struct op_dcookie_table *table;
	/* the file reserves the numbers below this: a later daemon does not use them again */
	uint64_t reserved;
	uint64_t retry_ns; /* not before this after a failure */
	uint64_t nr_damaged_lines; /* ignored when the file was read */
	pthread_mutex_t lock; /* protects everything below */
	uint64_t nr_bytes; /* of the file after the last write; 0: there is no file yet */
	bool publishing;
	struct op_text since; /* appended while a dump writes the table anew */
	uint64_t nr_resets;
	uint64_t nr_errors;
	int last_error;
};

/* The whole table, on its way to the disk. */
struct opd_cookie_snapshot {
	struct op_text text; /* empty: only the present file is brought to the disk */
	uint64_t nr_resets;
	bool has_more; /* rows that could not be appended to the present file */
};

/*
 * Reads the file of an earlier daemon into an empty table, so that cookies and names stay the same.
 * A damaged file is kept below damaged/. 0 or -ENOMEM; other errors are counted and logged. Closed
 * with opd_cookie_file_close.
 */
int opd_cookie_file_open(struct opd_cookie_file *file, int session_fd, struct op_dcookie_table *table) OP_NONNULL OP_MUST_CHECK;
void opd_cookie_file_close(struct opd_cookie_file *file) OP_NONNULL;

/* Appends the counted rows that are new or changed, but not too soon after a failure. */
void opd_cookie_file_flush(struct opd_cookie_file *file, uint64_t now_ns) OP_NONNULL;

/* The session is about to be emptied: uncounts all rows and gives up a table being written. */
void opd_cookie_file_reset(struct opd_cookie_file *file) OP_NONNULL;

/* The whole table of the session, as a file of its own. Sync thread. */
void opd_cookie_file_format(const struct opd_cookie_file *file, struct op_text *text) OP_NONNULL;

/* The session is about to be closed: a table that is being written is given up. Sync thread. */
void opd_cookie_file_stop_publishing(struct opd_cookie_file *file) OP_NONNULL;

/* Copies the table. opd_cookie_file_publish or _give_up must follow. NULL without memory. */
struct opd_cookie_snapshot *opd_cookie_file_begin(struct opd_cookie_file *file) OP_NONNULL OP_MUST_CHECK;

/* Replaces the file by the copy, on the disk, and frees the copy. 0 or -errno. */
int opd_cookie_file_publish(struct opd_cookie_file *file, struct opd_cookie_snapshot *snapshot) OP_NONNULL_ARGS(1) OP_MUST_CHECK;

/* Frees the copy without writing it. */
void opd_cookie_file_give_up(struct opd_cookie_file *file, struct opd_cookie_snapshot *snapshot) OP_NONNULL_ARGS(1);

/* Failures to read or write the file; *ret_error is the last -errno or 0. Any thread. */
uint64_t opd_cookie_file_errors(struct opd_cookie_file *file, int *ret_error) OP_NONNULL;

#endif
