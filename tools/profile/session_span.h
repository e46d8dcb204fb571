/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sessions of a span of time, by their ledgers (libop/session/ledger_file.h). */
#ifndef OPR_SESSION_SPAN_H
#define OPR_SESSION_SPAN_H

#include "tools/common/words.h"

struct opr_span {
	const char *since, *until; /* words of the user; NULL: not given */
	uint64_t since_us, until_us;
	bool is_told; /* which sessions these are */
};

/* Parses the values of the two options; NULL: not given. 0 or -EINVAL. */
int opr_span_parse(struct opr_span *span, const char *since, const char *until) OP_NONNULL_ARGS(1) OP_MUST_CHECK;

/*
 * Finds the sessions below SESSION-DIR/samples that overlap the span and are not excluded. Adds
 * their names to `sessions`, oldest first, and tells the user which they are unless the span
 * `is_told`, because each is read as a whole. Sessions whose time is not known are left out with a
 * warning. *fds are the open directories of all `sessions`, in the same order: names may change
 * while sessions are closed. The caller closes and frees them. 0; -ENOENT: there are none; another
 * -errno.
 */
int opr_span_find(const struct opr_span *span, const char *session_dir, const struct opr_words *excluded,
		  struct opr_words *sessions, int **fds) OP_NONNULL OP_MUST_CHECK;

#endif
