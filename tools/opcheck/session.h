/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checks a session, and repairs it: names, sample files, ledger, stats/, table of images. */
#ifndef OPK_SESSION_H
#define OPK_SESSION_H

#include "libop/base/compiler.h"
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

/* Checks the whole session. 0, also when it is damaged; -errno when it could not be checked. */
int opk_session_check(struct opk_check *check) OP_NONNULL OP_MUST_CHECK;

#endif
