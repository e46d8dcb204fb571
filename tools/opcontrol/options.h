/* SPDX-License-Identifier: GPL-3.0-or-later */
/* opcontrol's command line, as opcontrol(1) has it. */
#ifndef OPCONTROL_OPTIONS_H
#define OPCONTROL_OPTIONS_H

#include "tools/common/program.h"
#include "tools/opcontrol/opcontrol.h"

struct ctl_command_line {
	const struct ctl_option *request; /* NULL: none */
	char *request_arg;                /* NULL: the request takes none */
	struct ctl_edit *edits;           /* the setup options in their order */
	size_t nr_edits, edits_capacity;
	int setup, apply, status, json, verbose; /* 0 or 1 */
	enum ctl_format format;
	char *config;
};

/*
 * Reads the command line into an empty structure, to be freed with ctl_command_line_free in any
 * case. 0, or another value after a message, also when options are given that do not go together,
 * or without the rights that they need.
 */
int ctl_command_line_read(struct ctl_command_line *line, int argc, const char **argv,
			  enum opr_request *ret_request) OP_NONNULL OP_MUST_CHECK;

void ctl_command_line_free(struct ctl_command_line *line) OP_NONNULL;

#endif
