/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a report is asked for. The option table of a tool fills one query, and all steps of the
 * report (tools/report/run.h) read it. A step that needs another query makes a copy, which owns
 * nothing. Flags are 0 or 1: option tables set an int.
 */
#ifndef OPR_QUERY_H
#define OPR_QUERY_H

#include "tools/profile/before.h"
#include "tools/profile/classes.h"
#include "tools/profile/groups.h"
#include "tools/profile/session_span.h"
#include "tools/symbols/symbols.h"

/*
 * Which stacks: of CPUs, in samples; waits, or both, in microseconds; for a page all of them as
 * they are (tools/stacks/view.h).
 */
enum opr_view { OPR_VIEW_CPU, OPR_VIEW_WAIT, OPR_VIEW_WALL, OPR_VIEW_PAGE };

/*
 * Which native frames stay in stacks of a runtime: all but the interpreter's own, all, or none; and
 * none in any stack, so that no symbols are read (tools/stacks/natives.h).
 */
enum opr_native { OPR_NATIVE_FOLD, OPR_NATIVE_SHOW, OPR_NATIVE_ONLY, OPR_NATIVE_NONE };

struct opr_query {
	/* ---- which samples ---- */

	struct opr_words words; /* the profile specification; of two profiles both */
	char *session_dir;      /* NULL: as opr_session_dir_choose */
	struct opr_span_words span;
	int whole_sessions; /* the span chooses sessions, and all samples of them count */
	struct opr_merge_option merge;
	enum opr_by by; /* groups instead of applications */
	int exclude_dependent;
	int callgraph;              /* callgraph files, too; and rows have callers and callees */
	int memory;                 /* the memory view instead of samples */
	int totals_only;            /* only the sums of files are needed */
	int sessions_only;          /* the sample files are neither selected nor read */
	int optional;               /* beside another report: no samples are no error */
	int or_stacks;              /* cgroups that only stacks know: -ENODATA, no message */
	int any_axes;               /* classes may differ in more than one way */
	struct opr_before *earlier; /* only newer samples are counted; NULL: all */

	struct opr_naming naming; /* where images are found, and how their functions are named */

	/* ---- rows ---- */

	/* names of symbols, also aliases and demangled names; empty: no filter */
	struct opr_words include_symbols, exclude_symbols;
	int symbols, images, stacks; /* what the rows are; none: applications */
	enum opr_view view;          /* of stacks */
	enum opr_native native;      /* of stacks with frames of a runtime */
	int details;                 /* addresses of symbols */
	int lines;                   /* source lines; of stacks: where functions begin */
	int inlined;                 /* inlined functions are rows of their own */
	int frames;                  /* they are not, but opr_symbols_frame finds them */
	/*
	 * Of stacks, for programs: a function for each address, with its place, and below the root
	 * a group each for event, application, process name, cgroup and thread; `by` has no effect
	 */
	int places;

	/* ---- what is shown of them ---- */

	double threshold;     /* percent */
	size_t top;           /* rows, or children of a node; SIZE_MAX: all */
	size_t depth;         /* levels of stacks; SIZE_MAX: all */
	int invert;           /* the function where samples are comes first, its group last */
	char *focus, *ignore; /* regular expressions for stacks; NULL: not given */
	int show_idle; /* waits for work are shown as all others (tools/stacks/idle.h) */
	int wide; /* names are whole, also in text */
	int show_address, accumulated, global_percent, long_names, no_header, reverse_sort;
};

#endif
