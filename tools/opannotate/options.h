/* SPDX-License-Identifier: GPL-3.0-or-later */
/* opannotate's command line, as opannotate(1) has it. */
#ifndef OPR_OPANNOTATE_OPTIONS_H
#define OPR_OPANNOTATE_OPTIONS_H

#include "tools/code/listing.h"
#include "tools/common/program.h"
#include "tools/fetch/debuginfod.h"
#include "tools/profile/classes.h"
#include "tools/symbols/symbols.h"

struct opr_annotate_options {
	/* set by popt: 0 or 1 */
	int source, assembly, inlined, exclude_dependent, no_pager, no_debuginfod;
	char *session_dir, *root, *output_dir, *html, *params; /* NULL: not given */
	char *since, *until;
	struct opr_words base_dirs, search_dirs, include_files, exclude_files;
	struct opr_words include_symbols, exclude_symbols, image_path;
	struct opr_merge_option merge;
	enum opr_demangle demangle;
	uint32_t sources;                 /* of symbols: tools/symbols/source_set.h */
	double threshold;                 /* percent */
	struct opr_debuginfod_time debuginfod_time;
	char *disassembler_options;       /* of params; NULL: none */
	struct opr_code_style code_style; /* what params say */
	char *command_line;
	struct opr_words words; /* the profile specification */
};

/*
 * Reads the command line into a zeroed structure, to be freed with opr_annotate_options_free in any
 * case. 0, -EINVAL or -ENOMEM.
 */
int opr_annotate_options_parse(struct opr_annotate_options *options, int argc, const char **argv,
			       enum opr_request *ret_request) OP_NONNULL OP_MUST_CHECK;

void opr_annotate_options_free(struct opr_annotate_options *options);

#endif
