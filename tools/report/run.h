/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The chain of every report: select the sample files, read their samples, list the images, read
 * their symbols, make the rows, find callers and callees. All tools call it. What they do with the
 * result, such as writing it, is their own. One thread.
 */
#ifndef OPR_RUN_H
#define OPR_RUN_H

#include "tools/symbols/image_cache.h"
#include "tools/profile/query.h"
#include "tools/profile/selection.h"
#include "tools/report/callgraph.h"
#include "tools/report/symbol_rows.h"

enum opr_step {
	OPR_STEP_SELECT,  /* `selection` is open (tools/profile/selection.h) */
	OPR_STEP_READ,    /* and has its samples */
	OPR_STEP_IMAGES,  /* `images` has the names of all images (tools/symbols/image_cache.h) */
	OPR_STEP_SYMBOLS, /* and their symbols, and `bases` is set */
	OPR_STEP_ROWS,    /* `rows` is made (make_rows.h) */
	OPR_STEP_CALLS,   /* and `graph`, if the query is of a call graph (callgraph.h) */
	OPR_NR_STEPS,
};

/* `query` and `words` are set at first, by the caller; opr_run_free in any case. */
struct opr_run {
	const struct opr_query *query;
	const struct opr_words *words; /* the profile specification; of two profiles that of one */
	enum opr_step next;
	struct opr_selection selection;
	struct opr_image_cache images;
	/* names of the query that also stand for functions of that base name */
	struct opr_words bases;
	struct opr_symbol_report rows;
	struct opr_callgraph graph;
};

/* Makes all steps up to `last` that were not made before. 0 or -errno after a message. */
int opr_run_to(struct opr_run *run, enum opr_step last) OP_NONNULL OP_MUST_CHECK;

void opr_run_free(struct opr_run *run) OP_NONNULL;

/*
 * Ends a report: without an error so far, tells what is missing from it (opr_profile_end). Frees
 * the run. 0 or -errno.
 */
int opr_run_end(struct opr_run *run, int err) OP_NONNULL OP_MUST_CHECK;

#endif
