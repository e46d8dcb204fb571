/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The ledger of a session, samples/<session>/ledger: from when to when it was taken, how it ended, and for each event where the samples of that
 * time went, so that
 *
 *   received = stored + filtered + sum of lost_<reason>     and     stored = what the sample files hold
 *
 * once the session is closed. A sampler of IBS has no sample files: the second line holds for the events that are derived from it. Text in lines; the first is "opd-ledger 1", every other is a word and what belongs to it, separated by tabs
 * (doc/format.md). Readers pass over words that they do not know. A session of the genuine tools has none.
 */
#ifndef OP_SESSION_LEDGER_H
#define OP_SESSION_LEDGER_H

#include "libop/base/compiler.h"
#include "libop/session/ledger.h"
#include "libop/base/text.h"

#define OP_SESSION_LEDGER            "ledger"
#define OP_SESSION_LEDGER_EVENTS_MAX 1024 /* in one session */

/* How a session ended: the word in the file. */
#define OP_SESSION_ENDS(X)                                                                                                         \
	X(open)    /* it is being written, or its daemon was killed */                                                             \
	X(stopped) /* its daemon ended in order; the next one goes on with it */                                                   \
	X(rotated) /* SessionInterval=: it may be removed when it is old */                                                        \
	X(saved)   /* opcontrol --save: it is the user's */

enum op_session_end {
#define X(word) OP_SESSION_##word,
	OP_SESSION_ENDS(X)
#undef X
		OP_NR_SESSION_ENDS,
};

/* By which it shows that sample files were removed, came or were written over since. */
struct op_session_files {
	uint64_t nr;
	uint64_t sign; /* of the inode, the length and the time of each */
};

struct op_session_ledger {
	enum op_session_end ended;
	bool has_files; /* a stopped one may say what its sample files were then */
	struct op_session_files files;
	uint64_t begin_ns,
		end_ns; /* since 1970, as the clock of the time of writing sees them; the end of an open one is when it was written */
	struct op_ledger_event *
		events; /* name, count, unit_mask, role, received, stored, unattributed, filtered, lost_kernel, lost[]; one row each */
	size_t nr_events;
};

/* The row of an event, made when there is none; valid until the next call. NULL without memory or beyond OP_SESSION_LEDGER_EVENTS_MAX. */
struct op_ledger_event *op_session_ledger_row(struct op_session_ledger *ledger,
					      const struct op_ledger_event *event) OP_NONNULL OP_MUST_CHECK;

/* The same; NULL when there is none. */
const struct op_ledger_event *op_session_ledger_find(const struct op_session_ledger *ledger,
						     const struct op_ledger_event *event) OP_NONNULL OP_MUST_CHECK;

/* True when it says that nothing was taken: such a session is not worth keeping. */
bool op_session_ledger_is_empty(const struct op_session_ledger *ledger) OP_NONNULL OP_MUST_CHECK;

/* The sum of all events' losses by one reason. */
uint64_t op_session_ledger_lost(const struct op_session_ledger *ledger, enum op_loss reason) OP_NONNULL OP_MUST_CHECK;

/* The file's text. */
void op_session_ledger_format(const struct op_session_ledger *ledger, struct op_text *text) OP_NONNULL;

/* Writes it to dir_fd/ledger, and to the disk. 0 or -errno. */
int op_session_ledger_publish(const struct op_session_ledger *ledger, int dir_fd) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads dir_fd/ledger, dir_fd being the session's directory. 0 and a ledger that op_session_ledger_free frees; -ENOENT; -EBADMSG: it is none, and
 * *ret_line, when given, is the line that is wrong, from 1; another -errno.
 */
int op_session_ledger_read(int dir_fd, struct op_session_ledger *ret_ledger, unsigned int *ret_line)
	OP_NONNULL_ARGS(2) OP_MUST_CHECK;

/* When a session without a ledger began and ended, as far as its directory knows: when that was made, and changed last. */
void op_session_ledger_guess_times(struct op_session_ledger *ledger, int dir_fd) OP_NONNULL;

/* Frees what op_session_ledger_read gave; NULL is allowed. */
void op_session_ledger_free(struct op_session_ledger *ledger);

#endif
