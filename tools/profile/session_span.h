/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which sessions were taken in a span of time, by the ledgers in their directories (libop/session/ledger_file.h). */
#ifndef OPR_SESSION_SPAN_H
#define OPR_SESSION_SPAN_H

#include "tools/common/words.h"

struct opr_span {
	const char *since, *until; /* as the user wrote them; NULL: open */
	uint64_t since_us, until_us;
};

/* Reads the two options, either may be NULL. 0 or -EINVAL. */
int opr_span_parse(struct opr_span *span, const char *since, const char *until) OP_NONNULL_ARGS(1) OP_MUST_CHECK;

/* True when one was given. */
bool opr_span_is_given(const struct opr_span *span) OP_NONNULL;

/*
 * Adds the names of the sessions below SESSION-DIR/samples that lie in the span at least in part and are not excluded, oldest first, to `sessions`, which is empty, and tells the user on stderr which
 * they are, since a session is read as a whole, and how many were left out because nothing says when they were taken. *ret_fds are their directories, in the same order: while
 * the current session is closed and another begins, names say nothing. To be closed and freed by the caller. 0; -ENOENT when there is none, and the message says what
 * there is; another -errno.
 */
int opr_span_find(const struct opr_span *span, const char *session_dir, const struct opr_words *excluded,
		  struct opr_words *sessions, int **ret_fds) OP_NONNULL OP_MUST_CHECK;

#endif
