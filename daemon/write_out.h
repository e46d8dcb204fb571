/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Between dump.c and unwritten.c: what is to be written to the disk, in a thread of its own. */
#ifndef OPD_WRITE_OUT_H
#define OPD_WRITE_OUT_H

#include "daemon/sync.h"
#include "libop/base/compiler.h"
#include "libop/base/text.h"

/* Whatever becomes of the session meanwhile, its directory is open: what was taken is written where it is. */
struct opd_write_out {
	struct opd_sync *sync;
	struct opd_job *job; /* NULL: nobody waits for it */
	int session_fd;
	int current_fd; /* or -errno */
	char **paths; /* below the session directory, in samples/current when they were taken */
	size_t nr_paths;
	struct opd_cookie_file *cookie_file; /* NULL: the table is not kept */
	struct opd_cookie_snapshot *cookies; /* of the current session */
	bool closing;
	struct op_text closed_cookies; /* of a session that is closed */
	uint64_t number; /* of those that are closed, each under way with a name of its own */
	uint64_t session; /* of a closed one: its number for the settler */
	struct op_odb_pending *pending; /* of its sample files */
	bool whole;         /* of files that changed not all are known: all that is to be written in this file system */
	bool dropped;       /* what could not be written may not be in memory either any more */
	uint64_t nr_resets, nr_failures, nr_settle_failures; /* when the dump began */
	struct opd_write_out *next; /* sync->writing; sync->unwritten afterwards */
	/* of a closed session that could not be written */
	uint64_t retry_ns; /* op_now_ns(); 0: not seen by the sync thread yet */
	unsigned int nr_tries;
	bool missing; /* some of its files were, or may be: its ledger is to follow what is there */
};

/*
 * Writes all but the sample files, err being what those gave: after an error, only what does not need them. The session is not marked any more when all of it is on
 * the disk. 0, or the first -errno and what it is about.
 */
int opd_write_out_end(struct opd_write_out *out, int err, const char **ret_failed) OP_NONNULL OP_MUST_CHECK;

/* Writes every file of a closed session anew. As opd_write_out_end. */
int opd_write_out_anew(struct opd_write_out *out, const char **ret_failed) OP_NONNULL OP_MUST_CHECK;

void opd_write_out_free(struct opd_write_out *out) OP_NONNULL;

/* Keeps one of a closed session, to be tried again by opd_unwritten_retry; false when there are too many. Any thread; sync->lock is free. */
bool opd_unwritten_keep(struct opd_write_out *out) OP_NONNULL OP_MUST_CHECK;

#endif
