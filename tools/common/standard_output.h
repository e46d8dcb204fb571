/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a tool has written to standard output is there, or the tool ends with an error: also what --help and lists say, where nothing else looks. One thread. */
#ifndef OPR_STANDARD_OUTPUT_H
#define OPR_STANDARD_OUTPUT_H

#include "libop/base/compiler.h"

/* Writes what is left to be written. 0, or -EIO when not all of it could be: the user is told once. */
int opr_stdout_flush(void) OP_MUST_CHECK;

/* Has exit(3) do so, which then ends the program with `failed` unless the user was told of it before. 0 or -ENOMEM, which was said. */
int opr_stdout_guard(int failed) OP_MUST_CHECK;

#endif
