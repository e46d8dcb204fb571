/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sessions of a span of time, by their ledgers (libop/session/ledger_file.h). */
#ifndef OPR_SESSION_SPAN_H
#define OPR_SESSION_SPAN_H

#include "tools/common/words.h"

/* The values of --since, --until, --at, --window, --last and --diff. NULL: not given. */
struct opr_span_words {
	char *since, *until; /* points in time (tools/common/when.h) */
	char *at, *window;   /* a point in time, and how much lies around it; 2 minutes */
	char *last;          /* how much before now */
	const char *range;   /* "SINCE..UNTIL", either of which may be empty */
};

#define OPR_SPAN_DOTS ".."

/* Rows of an option table. FIELD: where the tool has a field of its struct opr_query. */
#define OPR_SPAN_AT(FIELD)     { "at", 0, FIELD(span.at), opr_take_string, "samples taken around then", "time" }
#define OPR_SPAN_LAST(FIELD)   { "last", 0, FIELD(span.last), opr_take_string, "samples of the last 10min, 2h, 1day", "span" }
#define OPR_SPAN_SINCE(FIELD)  { "since", 0, FIELD(span.since), opr_take_string, "samples taken then or later", "time" }
#define OPR_SPAN_UNTIL(FIELD)  { "until", 0, FIELD(span.until), opr_take_string, "samples taken before then", "time" }
#define OPR_SPAN_WINDOW(FIELD) { "window", 0, FIELD(span.window), opr_take_string, "length of --at (default 2min)", "span" }

struct opr_span {
	bool is_given; /* else it is all time */
	uint64_t since_us, until_us;
	bool is_told; /* which sessions these are */
};

/* Parses the words. 0 or -EINVAL after a message that names the option. */
int opr_span_parse(struct opr_span *span, const struct opr_span_words *words) OP_NONNULL OP_MUST_CHECK;

#define OPR_SPAN_BYTES 64

/* The span as opr_span_words.range, moved to an earlier time. */
void opr_span_move(const struct opr_span *span, uint64_t earlier_us, char range[OPR_SPAN_BYTES]) OP_NONNULL;

/*
 * Finds the sessions below SESSION-DIR/samples that overlap the span and are not excluded. Adds
 * their names to `sessions`, oldest first. Sessions whose time is not known are left out with a
 * warning. That there are none is a message unless the span `is_told`. *fds are the open
 * directories of all `sessions`, in the same order: names may change while sessions are closed. The
 * caller closes and frees them. 0; -ENOENT: there are none; another -errno.
 */
int opr_span_find(const struct opr_span *span, const char *session_dir, const struct opr_words *excluded,
		  struct opr_words *sessions, int **fds) OP_NONNULL OP_MUST_CHECK;

#endif
