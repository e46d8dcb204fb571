/* SPDX-License-Identifier: GPL-3.0-or-later */
/* opannotate's command line, as opannotate(1) has it. */
#ifndef OPR_OPANNOTATE_OPTIONS_H
#define OPR_OPANNOTATE_OPTIONS_H

#include "tools/code/listing.h"
#include "tools/common/program.h"
#include "tools/fetch/debuginfod.h"
#include "tools/profile/query.h"

struct opr_annotate_options {
	struct opr_query query; /* which samples are annotated */
	/* set by popt: 0 or 1 */
	int source, assembly, inlined, no_pager, no_debuginfod;
	char *output_dir, *html, *params; /* NULL: not given */
	struct opr_words base_dirs, search_dirs, include_files, exclude_files;
	struct opr_debuginfod_time debuginfod_time;
	char *disassembler_options;       /* of params; NULL: none */
	struct opr_code_style code_style; /* what params say */
	char *command_line;
};

/*
 * Reads the command line into a zeroed structure, to be freed with opr_annotate_options_free in any
 * case. 0, -EINVAL or -ENOMEM.
 */
int opr_annotate_options_parse(struct opr_annotate_options *options, int argc, const char **argv,
			       enum opr_request *ret_request) OP_NONNULL OP_MUST_CHECK;

void opr_annotate_options_free(struct opr_annotate_options *options);

#endif
