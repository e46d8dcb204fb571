/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What main() of every tool does: read the command line and catch signals. One thread. */
#ifndef OPR_PROGRAM_H
#define OPR_PROGRAM_H

#include "libop/process/stop.h"
#include "tools/common/option_table.h"
#include "tools/common/words.h"

/* What a command line asks for: to run the tool, or nothing more, as after --help. */
enum opr_request { OPR_RUN, OPR_DONE };

/*
 * Reads a command line into `options`, and the words that are no options into `words`. Handles
 * --help, --usage, --version and --completion itself and stops there with OPR_DONE. Calls
 * opr_stdout_guard. 0, -EINVAL or -ENOMEM.
 */
int opr_command_read(const struct opr_command *command, int argc, const char **argv, void *options, struct opr_words *words,
		     enum opr_request *ret_request) OP_NONNULL OP_MUST_CHECK;

/* Frees the fields that functions of option_values.h filled. */
void opr_command_free(const struct opr_command *command, void *options) OP_NONNULL;

/* A whole tool: reads its command line, runs it, frees `options` and `words`. The exit code. */
int opr_command_run(const struct opr_command *command, int argc, const char **argv, void *options, struct opr_words *words,
		    int (*run)(const void *options)) OP_NONNULL;

/* "PROGRAM ARGUMENT ARGUMENT ", for the title of a report. Freed by the caller; NULL: no memory. */
char *opr_command_line(const char *program, int argc, const char **argv) OP_NONNULL OP_MUST_CHECK;

/* Makes SIGINT, SIGTERM and SIGHUP set *ret_stop. To be called once. 0 or -errno. */
int opr_interrupt_catch(const struct op_stop **ret_stop) OP_NONNULL OP_MUST_CHECK;

#endif
