/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What opcheck checks and finds: reports problems, counts them, and puts files aside. */
#ifndef OPK_FINDINGS_H
#define OPK_FINDINGS_H

#include <sys/types.h>

#include "libop/session/ledger_file.h"

enum opk_outcome {
	OPK_NOTED, /* worth knowing, and no problem */
	OPK_REPAIRED,
	OPK_NOT_REPAIRED, /* no repair was asked for, or it failed */
};

/* `path` is below the session's directory. `detail` may be empty. */
struct opk_problem {
	const char *path;
	const char *fault;
	uint64_t offset; /* in the file, if has_offset */
	bool has_offset;
	const char *detail;
	enum opk_outcome outcome;
};

struct opk_check {
	int dir_fd;
	int top_fd;              /* the session directory; -1: there is none */
	bool live;               /* a daemon is writing: what must agree at rest is not checked */
	bool closed;             /* nobody counts in it any more */
	bool unclean;            /* the last writer was killed; the next daemon recovers it */
	bool repair;             /* never with live */
	enum op_session_end end; /* for a session that has lost its ledger */
	/* for each problem, at once */
	void (*report)(const struct opk_problem *problem, void *arg);
	/* after each file */
	void (*progress)(uint64_t nr_files, void *arg);
	void *arg;
	/* out */
	uint64_t nr_files; /* sample files */
	/* in them, without those by cgroup; samples of samplers as the ledger has them */
	uint64_t nr_samples;
	uint64_t nr_dropped;           /* nodes that were not whole */
	uint64_t nr_repaired, nr_left; /* problems */
};

/*
 * Reports a problem. It counts as repaired when a repair was asked for and err, its result, is 0.
 */
void opk_report(struct opk_check *check, struct opk_problem *problem, int err) OP_NONNULL;

/* Reports something that is worth knowing and no problem. */
void opk_note(struct opk_check *check, const char *path, const char *fault) OP_NONNULL;

/*
 * Reports a file that does not belong there, and in a repair moves it to damaged/ below the
 * session. `detail` is reported when it stays. True when it was moved.
 */
bool opk_put_aside(struct opk_check *check, const char *path, const char *fault, uint64_t offset, const char *detail) OP_NONNULL;

/* Whether the path exists and is not of this type (S_IFMT). Does not follow a link. */
bool opk_is_other(const struct opk_check *check, const char *path, mode_t type) OP_NONNULL OP_MUST_CHECK;

/* Puts such a path aside. True: it was not of this type. */
bool opk_put_other_aside(struct opk_check *check, const char *path, mode_t type, const char *fault) OP_NONNULL;

#endif
