/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writes one session to the disk: every changed sample file, its directories, and the other files
 * of the session. dump.c fills a write-out in the sync thread; a thread in the background writes
 * it.
 */
#ifndef OPD_WRITE_OUT_H
#define OPD_WRITE_OUT_H

#include "daemon/jobs/syncer.h"
#include "libop/base/compiler.h"
#include "libop/base/text.h"
#include "pipeline/ledger/cookie_file.h"

/* The directory stays open: a session that is renamed meanwhile is written where it is. */
struct opd_write_out {
	int session_fd;
	int current_fd; /* of samples/current when it was filled; or -errno */
	char **paths; /* below the session directory, as when it was filled */
	size_t nr_paths;
	struct opd_cookie_file *cookie_file; /* NULL: the table is not kept */
	struct opd_cookie_snapshot *cookies; /* of the current session */
	/* the session is closed after this write-out was filled */
	bool closing;
	struct op_text closed_cookies;       /* closing: the whole table */
	/* closing: makes the name of the table's temporary file unique */
	uint64_t number;
	struct opd_syncer *syncer;           /* NULL: none */
	/* closing: the session's number for opd_syncer_take_failed */
	uint64_t syncer_session;
	struct op_odb_pending *pending;      /* closing: what the syncer had not begun */
	/* not all changed files are known: everything in the file system is written */
	bool whole;
	bool dropped; /* the kernel may have dropped data that it could not write */
	/* closing: files may be missing, so the ledger must be corrected by the files that exist */
	bool missing;
	char part_path[64]; /* of the part of the session that is written; for messages */
	/* closing, and it could not be written (unwritten.h) */
	uint64_t retry_ns; /* op_now_ns(); 0: not set yet */
	unsigned int nr_tries;
	struct opd_write_out *next;
};

/* An empty write-out of the current session; session_fd stays the caller's. NULL without memory. */
struct opd_write_out *opd_write_out_new(int session_fd, bool closing) OP_MUST_CHECK;
void opd_write_out_free(struct opd_write_out *out) OP_NONNULL;

/* Writes everything and marks a closed session as complete. 0, or -errno and what failed. */
int opd_write_out_write(struct opd_write_out *out, const char **ret_failed) OP_NONNULL OP_MUST_CHECK;

/* The same for a closed session after a failure: writes every file anew. */
int opd_write_out_write_again(struct opd_write_out *out, const char **ret_failed) OP_NONNULL OP_MUST_CHECK;

#endif
