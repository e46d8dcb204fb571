/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * opreport --over-time: how many samples something took in each minute or hour, by the timelines of
 * the selected sessions (libop/timeline/read.h). One thread.
 */
#ifndef OPR_OVER_TIME_H
#define OPR_OVER_TIME_H

#include "libop/stacks/runtime_name.h"
#include "tools/report/run.h"

/* A minute as a rule, or an hour. */
struct opr_bin {
	uint64_t begin_ns, end_ns; /* since 1970 */
	uint64_t total;            /* samples of the event, also those of no row */
	uint64_t *values;          /* of each row */
};

struct opr_course {
	struct opr_words rows; /* an application each, or the one thing that was asked for */
	const char *what;      /* "application", "image" or "function" */
	char *event;           /* "TIMER:1000000" */
	bool is_time;          /* of waits: values are microseconds */
	struct opr_bin *bins;  /* by time */
	size_t nr_bins;
	bool by_hour;
};

/*
 * Reads the course of `name`, a function, an image or an application, or of the applications with
 * most samples if it is NULL. `run` has read its samples. Freed with opr_course_free in any case.
 * 0; -ENOENT after a message: nothing has the name, or no timeline has that time; another -errno.
 */
int opr_course_read(struct opr_course *course, struct opr_run *run, const char *name) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/*
 * The same of the waits: of a function, whatever it called, an image or an application, or of the
 * functions that waited longest. Waits for work are left out unless the query shows them.
 */
int opr_course_read_waits(struct opr_course *course, struct opr_run *run,
			  const char *name) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/*
 * The same of functions of runtimes, or of one: of those that were innermost most often, or of one
 * with this name, whatever it called.
 */
int opr_course_read_runtimes(struct opr_course *course, struct opr_run *run, const char *name,
			     enum op_runtime runtime) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

void opr_course_free(struct opr_course *course) OP_NONNULL;

/* A chart of nr_columns at most; ASCII only where `is_ascii`. */
void opr_course_text(const struct opr_course *course, size_t nr_columns, bool is_ascii, FILE *out) OP_NONNULL;
void opr_course_csv(const struct opr_course *course, FILE *out) OP_NONNULL;
void opr_course_json(const struct opr_course *course, FILE *out) OP_NONNULL;

#endif
