/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whether a session is sound: names, sample files, ledger, table of images; and repairing it. What is wrong is told to a callback as it is found, so that nothing
 * has to be kept.
 */
#ifndef OPK_CHECK_SESSION_H
#define OPK_CHECK_SESSION_H

#include "libop/base/compiler.h"
#include "libop/session/ledger_file.h"

enum opk_outcome {
	OPK_NOTED, /* worth knowing, nothing is wrong */
	OPK_REPAIRED,
	OPK_NOT_REPAIRED, /* it was not asked for, or it failed */
};

/* `path` is below the session's directory. `detail` may be empty. */
struct opk_problem {
	const char *path;
	const char *fault;
	uint64_t offset; /* in the file, where has_offset */
	bool has_offset;
	const char *detail;
	enum opk_outcome outcome;
};

struct opk_check {
	int dir_fd;
	int top_fd;              /* the session directory; -1: it is in none */
	bool live;               /* a daemon is writing: what must agree at rest is not asked for */
	bool closed;             /* nobody counts in it any more */
	bool unclean;            /* whoever counted in it did not end in order: the next daemon looks at it */
	bool repair;             /* never with live */
	enum op_session_end end; /* for a session that has lost its ledger */
	void (*tell)(const struct opk_problem *problem, void *arg);
	void (*progress)(uint64_t nr_files, void *arg); /* after each file */
	void *arg;
	/* out */
	uint64_t nr_files, nr_samples; /* sample files; their samples, without those by cgroup, and those of samplers as the ledger has them */
	uint64_t nr_dropped;           /* nodes that made no sense */
	uint64_t nr_repaired, nr_left; /* problems */
};

/* Looks at the whole session. 0, also when it is damaged; -errno when that could not be done. */
int opk_session_check(struct opk_check *check) OP_NONNULL OP_MUST_CHECK;

#endif
