/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The command line of operf: that of oprofile 1.4. */
#ifndef OPF_OPTIONS_H
#define OPF_OPTIONS_H

#include <sys/types.h>

#include "tools/common/program.h"

struct opf_options {
	struct opr_words events; /* --events; none: the default event */
	char *session_dir;       /* NULL: ./oprofile_data */
	char *vmlinux;           /* an absolute path, or NULL */
	pid_t pid;               /* 0: none */
	int callgraph, stacks, separate_thread, separate_cpu, append, system_wide, lazy;
	struct opr_words command; /* empty with pid and system_wide */
};

/* Reads the command line. 0 or -errno. */
int opf_options_parse(struct opf_options *options, int argc, const char **argv,
		      enum opr_request *ret_request) OP_NONNULL OP_MUST_CHECK;
void opf_options_free(struct opf_options *options) OP_NONNULL;

#endif
