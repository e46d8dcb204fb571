/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The sizes of all sessions, known without a walk over all files. The current session counts its
 * own bytes (pipeline/count/file_limit.h), and is weighed when it has grown by much. A closed
 * session is weighed when it is new, until it is written completely, and when its directory
 * changes.
 *
 * Files deeper in a session may come and go without the daemon. A check finds that: each look
 * weighs OPD_SIZES_ENTRIES directory entries again. The next look goes on where this one ended.
 *
 * One thread at a time.
 */
#ifndef OPD_SESSION_SIZES_H
#define OPD_SESSION_SIZES_H

#include "libop/base/compiler.h"
#include "libop/session/close.h"
#include "libop/session/contents.h"

/* directory entries that a look weighs again: 5 to 20 ms of CPU time */
#define OPD_SIZES_ENTRIES 2048

struct opd_sized_session {
	char name[OP_SESSION_NAME_BYTES];
	uint64_t disk_bytes;
	bool is_current;
	bool is_timed;   /* SessionInterval= closed it, and it was not renamed */
	bool is_whole;   /* it is written completely, and does not become smaller any more */
	uint64_t end_ns; /* 0: unknown */
	/* of the directory (st_ctim) when the size was found; the time of the current one is 0 */
	uint64_t inode, changed_ns;
	bool is_reported; /* for the caller, kept from look to look, like the next one */
	bool is_thin;     /* its minutes were merged, or cannot be */
	bool is_hourless; /* the hours, too, were removed */
};

struct opd_current_size {
	uint64_t inode;       /* of its directory; 0: there is none */
	uint64_t nr_begun;    /* another number is another session */
	uint64_t taken_bytes; /* by its account */
	uint64_t disk_bytes;
};

struct opd_session_sizes {
	int session_fd;
	/* The current session before a look, set by the caller. The look sets disk_bytes. */
	struct opd_current_size current;
	bool is_due;     /* set by the caller: the look weighs the whole current session */
	bool is_stopped; /* set by any thread: looks end soon, with -ECANCELED */

	struct opd_sized_session *sessions; /* sorted by name */
	size_t nr_sessions;
	/* The last weight of the current session, and its account when the weighing began. */
	struct opd_current_size weighed; /* inode 0: there is none */

	/* The rest is for session_sizes.c: the session that is weighed again, or the next one. */
	char name[OP_SESSION_NAME_BYTES];
	bool is_begun;
	struct op_weighing weighing;
	struct opd_current_size begun; /* its inode is that of the session, current or not */
	uint64_t begun_changed_ns;
};

/*
 * Finds the sessions, weighs those that are new, and checks some. `all`: false for the current one
 * only. 0, or -errno and the sessions are as before.
 */
int opd_sizes_look(struct opd_session_sizes *sizes, bool all) OP_NONNULL OP_MUST_CHECK;

/* Bytes of all but the current session. */
uint64_t opd_sizes_closed_bytes(const struct opd_session_sizes *sizes) OP_NONNULL OP_MUST_CHECK;

void opd_sizes_free(struct opd_session_sizes *sizes) OP_NONNULL;

#endif
