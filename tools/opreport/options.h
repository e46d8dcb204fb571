/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The command line of opreport(1). */
#ifndef OPR_OPREPORT_OPTIONS_H
#define OPR_OPREPORT_OPTIONS_H

#include "tools/common/program.h"
#include "tools/fetch/debuginfod.h"
#include "tools/profile/classes.h"
#include "tools/profile/groups.h"
#include "tools/profile/spec.h"
#include "tools/report/symbol_sort.h"
#include "tools/report/write_xml.h"
#include "tools/symbols/source_set.h"

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
	int callgraph, xml, no_pager; /* flags: 0 or 1 */
	int symbols, details, inlined, debug_info, show_address, accumulated, global_percent;
	int no_debuginfod;
	int stacks, invert;
	char *focus, *ignore; /* regular expressions; NULL: not given */
	size_t depth;         /* levels of stacks; SIZE_MAX: all */
	int mem, images, long_names, no_header, reverse_sort, exclude_dependent, cgroups;
	char *session_dir; /* NULL: not given */
	char *root, *output_file;
	char *html; /* the file of the page; NULL: not given */
	char *since, *until; /* NULL: not given */
	struct opr_words sort, exclude_symbols, include_symbols, image_path;
	struct opr_merge_option merge;
	enum opr_by by;         /* also for --cgroups */
	struct opr_sort_order order;
	enum opr_demangle demangle;
	uint32_t sources;       /* of symbols: tools/symbols/source_set.h */
	double threshold;       /* percent */
	struct opr_debuginfod_time debuginfod_time;
	enum opr_format format; /* OPR_FORMAT_XML also for --xml */
	size_t top;             /* rows; SIZE_MAX: all */
	const char *colour;     /* "auto", "always" or "never" */
	char *title;            /* the command line */
	struct opr_words words; /* the profile specification */
};

/*
 * Parses the command line into an empty structure. Freed with opr_options_free in any case. 0 or
 * -EINVAL, -ENOMEM.
 */
int opr_options_parse(struct opr_options *options, int argc, const char **argv,
		      enum opr_request *ret_request) OP_NONNULL OP_MUST_CHECK;

void opr_options_free(struct opr_options *options);

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
