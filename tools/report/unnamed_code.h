/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Lines at the end of a report about code that has no names of its own: code that a runtime made
 * while it ran, and the loop of an interpreter. They say how much it is, why, and what helps. What
 * the runtime is, the images and functions of the application tell. One thread.
 */
#ifndef OPR_UNNAMED_CODE_H
#define OPR_UNNAMED_CODE_H

#include "libop/base/compiler.h"

struct opr_unnamed_sum;
struct opr_unnamed_app;

/* Zeroed at first; opr_unnamed_tell frees it. */
struct opr_unnamed_code {
	struct opr_unnamed_app *apps; /* what is known of applications */
	size_t nr_apps, apps_capacity;
	struct opr_unnamed_sum *sums; /* samples in memory without a file, by application */
	size_t nr_sums, sums_capacity;
	uint64_t total, loops[8]; /* all samples; those in loops, by runtime */
	uint64_t unseen;          /* of processes that opd knows nothing of */
	bool failed;
};

/*
 * Adds the samples of a row: full names of application and image, which must live until the end,
 * and the name of the function; NULL: it has none.
 */
void opr_unnamed_add(struct opr_unnamed_code *code, const char *app, const char *image, const char *function,
		     uint64_t count) OP_NONNULL_ARGS(1, 2, 3);

/* Writes the notes. 0 or -ENOMEM after a message. */
int opr_unnamed_tell(struct opr_unnamed_code *code) OP_NONNULL OP_MUST_CHECK;

#endif
