/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The command line of ocount: that of oprofile 1.4. */
#ifndef OCN_OPTIONS_H
#define OCN_OPTIONS_H

#include "tools/common/program.h"

enum ocn_mode { OCN_COMMAND, OCN_PROCESSES, OCN_THREADS, OCN_CPUS, OCN_SYSTEM };

struct ocn_numbers {
	int *numbers; /* each is there once */
	size_t nr_numbers, capacity;
};

struct ocn_interval {
	uint64_t ns;           /* 0: one result at the end */
	uint64_t nr_intervals; /* 0: no end */
};

struct ocn_options {
	struct opr_words events; /* none: the default event */
	struct ocn_numbers processes, threads, cpus;
	struct ocn_interval interval;
	char *output_file; /* NULL: standard output */
	int system_wide, separate_cpu, separate_thread, brief, verbose;
	struct opr_words command;
	enum ocn_mode mode;
};

/* Reads the command line. 0 or -errno. */
int ocn_options_parse(struct ocn_options *options, int argc, const char **argv,
		      enum opr_request *ret_request) OP_NONNULL OP_MUST_CHECK;
void ocn_options_free(struct ocn_options *options) OP_NONNULL;

#endif
