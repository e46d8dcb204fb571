/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * opreport --explain: what burned in a span of time, and why, on one page. The facts are read by
 * the chain of every report (tools/report/run.h), so each figure is that of the report whose
 * command stands beside it. One thread.
 */
#ifndef OPR_EXPLAIN_H
#define OPR_EXPLAIN_H

#include "tools/profile/query.h"
#include "tools/profile/recorded.h"

#define OPR_EXPLAIN_ROWS  5u /* of a list, at most */
#define OPR_EXPLAIN_PATHS 3u
#define OPR_EXPLAIN_BYTES 4096u /* of the page, at most */

struct opr_fact {
	char *name, *image; /* image: NULL where the name says all */
	uint64_t samples;
	uint64_t before; /* of a change: the samples in the other span */
	double percent;  /* of all samples */
	double points;   /* of a change: of percent, gained or lost */
};

struct opr_fact_list {
	struct opr_fact facts[OPR_EXPLAIN_ROWS];
	size_t nr_facts;
};

/* The way of most samples from a program down, as far as a quarter of them goes. */
struct opr_hot_path {
	char *program;
	struct opr_words frames; /* from the outermost one; "[cut]": callers are missing */
	uint64_t samples;        /* stack samples that have the whole path */
	double percent;          /* of all stack samples */
};

/* A function that waited (tools/stacks/wait_list.h). */
struct opr_wait_fact {
	char *name, *image;
	char *states; /* "blocked 92.3 %, runnable 7.69 %" */
	uint64_t us, nr_records;
	double percent; /* of all waits */
};

enum opr_compared {
	OPR_NOT_KEPT,  /* there are no samples of that time */
	OPR_NOT_APART, /* the same session has both times, and nothing finer is kept */
	OPR_NOT_ALIKE, /* other events, or another period */
	OPR_IS_COMPARED,
};

/* What changed against another span, beyond the noise of counting. */
struct opr_comparison {
	const char *name;          /* "before", "yesterday" */
	uint64_t begin_ns, end_ns; /* that was asked for */
	enum opr_compared compared;
	uint64_t samples;               /* of that span */
	struct opr_fact_list functions; /* those that changed most come first */
	size_t nr_changed;              /* functions, with those that are not in the list */
};

struct opr_facts {
	char *host;                /* NULL: not known, or several */
	char *event;               /* "TIMER:1000000" */
	bool counts_time;          /* a sample stands for CPU time */
	uint64_t begin_ns, end_ns; /* that the samples are of; 0: not known */
	uint64_t samples;
	double cpu_seconds;
	double lost_percent;    /* negative: not known */
	double unnamed_percent; /* samples without the name of a function */
	struct opr_fact_list programs, functions, services;
	struct opr_fact_list runtimes; /* functions of Python and its like, by stacks */
	uint64_t nr_stacks, nr_lost_stacks;
	double complete_percent; /* of the stacks */
	struct opr_hot_path paths[OPR_EXPLAIN_PATHS];
	size_t nr_paths;
	struct opr_wait_fact waits[OPR_EXPLAIN_ROWS];
	size_t nr_waits;
	uint64_t waited_us, idle_us; /* idle: waits for work */
	struct opr_comparison comparisons[2];
	/* of the reports: session directory, span, words; each with a blank before it */
	char *options;
};

/*
 * Reads the facts of the first event that the query selects. Freed with opr_facts_free in any case.
 * 0 or -errno after a message.
 */
int opr_facts_read(struct opr_facts *facts, const struct opr_query *query, const struct opr_words *words) OP_NONNULL OP_MUST_CHECK;

void opr_facts_free(struct opr_facts *facts) OP_NONNULL;

/* Makes the page, Markdown of at most OPR_EXPLAIN_BYTES; long lists lose their end. */
void opr_explain_text(const struct opr_facts *facts, struct op_text *text) OP_NONNULL;

/* The same facts, without a limit of size. */
void opr_explain_json(const struct opr_facts *facts, struct op_text *text) OP_NONNULL;

#endif
