/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The command line of opreport(1). */
#ifndef OPR_OPREPORT_OPTIONS_H
#define OPR_OPREPORT_OPTIONS_H

#include "libop/stacks/runtime_name.h"
#include "tools/common/program.h"
#include "tools/fetch/debuginfod.h"
#include "tools/profile/query.h"
#include "tools/profile/spec.h"
#include "tools/report/symbol_sort.h"
#include "tools/report/write_xml.h"

enum opr_format {
	OPR_FORMAT_TEXT,
	OPR_FORMAT_XML,
	OPR_FORMAT_JSON,
	OPR_FORMAT_CSV,
	OPR_FORMAT_BOLT, /* of the flat samples of one program, for llvm-bolt (tools/export) */
	/* of stacks only */
	OPR_FORMAT_FOLDED,
	/* stacks for other tools (tools/export) */
	OPR_FORMAT_PPROF,
	OPR_FORMAT_PERF,
	OPR_FORMAT_SPEEDSCOPE,
	OPR_FORMAT_FIREFOX,
	OPR_FORMAT_CALLGRIND,
};

/* Binary files, of addresses. */
static inline bool opr_format_has_places(enum opr_format format)
{
	return format == OPR_FORMAT_PPROF || format == OPR_FORMAT_PERF;
}

struct opr_options {
	bool shortens_names; /* nothing was said of names, and they are text for people */
	struct opr_query query;                    /* the rest says how it is written */
	int xml, cgroups, no_debuginfod, no_pager; /* flags: 0 or 1 */
	char *output_file;
	char *html; /* the file of the page; NULL: not given */
	/* two spans of time that are compared (opr_span_words.range); NULL: not given */
	char *diff, *diff_with;
	int over_time;        /* the course of `course_of`, NULL: of applications: 0 or 1 */
	char *course_of;
	int top_changes; /* the span is compared with the one before it: 0 or 1 */
	struct opr_words sort;
	struct opr_sort_order order;
	struct opr_debuginfod_time debuginfod_time;
	enum opr_format format; /* OPR_FORMAT_XML also for --xml */
	int waits;              /* functions that waited, with --symbols: 0 or 1 */
	int wakers;             /* and who woke them: 0 or 1 */
	int runtimes;           /* functions of runtimes, with --symbols: 0 or 1 */
	enum op_runtime runtime; /* of this one only; OP_RUNTIME_none: of all */
	int explain;            /* one page instead of a report: 0 or 1 */
	const char *colour;     /* "auto", "always" or "never" */
	char *title;            /* the command line */
};

/*
 * Parses the command line into an empty structure. Freed with opr_options_free in any case. 0 or
 * -EINVAL, -ENOMEM.
 */
int opr_options_parse(struct opr_options *options, int argc, const char **argv,
		      enum opr_request *ret_request) OP_NONNULL OP_MUST_CHECK;

/* Whether a flat report of stacks (tools/stacks/leaf_rows.h) has all that is asked for. */
bool opr_options_fit_leaves(const struct opr_options *options) OP_NONNULL;

void opr_options_free(struct opr_options *options);

/*
 * The queries of two profiles that are compared. Of two spans of time (--diff) the earlier one is
 * before. 0 or -errno after a message.
 */
int opr_options_split_diff(const struct opr_options *options, struct opr_query ret_queries[2]) OP_NONNULL OP_MUST_CHECK;

#define OPR_NR_XML_OPTIONS 9 /* at most */

/* Lists as text, joined by commas. */
struct opr_xml_values {
	char *texts[OPR_NR_XML_OPTIONS];
	size_t nr_texts;
};

/*
 * Makes the attributes of <options> in XML, for the options that were given. They are valid as long
 * as the values, which opr_xml_values_free frees in any case. 0 or -errno.
 */
int opr_xml_options(const struct opr_options *options, const struct opr_spec *spec, struct opr_xml_values *values,
		    struct opr_xml_attribute *ret_attributes, size_t *ret_nr_attributes) OP_NONNULL OP_MUST_CHECK;

void opr_xml_values_free(struct opr_xml_values *values);

#endif
