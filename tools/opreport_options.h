/* SPDX-License-Identifier: GPL-3.0-or-later */
/* opreport's command line, as opreport(1) has it. */
#ifndef OPR_OPREPORT_OPTIONS_H
#define OPR_OPREPORT_OPTIONS_H

#include "tools/profile.h"
#include "tools/symbol_sort.h"

enum opr_demangle { OPR_DEMANGLE_NONE, OPR_DEMANGLE_NORMAL };

struct opr_options {
	int symbols, details, debug_info, show_address, accumulated, global_percent; /* set by popt: 0 or 1 */
	int images, long_names, no_header, reverse_sort, exclude_dependent, cgroups, version;
	char *session_dir; /* NULL: not given */
	char *root, *output_file;
	struct opr_words sort, merge_words, exclude_symbols, include_symbols, image_path;
	struct opr_merge merge;
	struct opr_sort_order order;
	enum opr_demangle demangle;
	double threshold;       /* percent */
	struct opr_words words; /* the profile specification */
};

/* Reads the command line into an empty structure, to be freed with opr_options_free in any case. 0 or -EINVAL, -ENOMEM. */
int opr_options_parse(struct opr_options *options, int argc, const char **argv) OP_NONNULL OP_MUST_CHECK;

void opr_options_free(struct opr_options *options);

#endif
