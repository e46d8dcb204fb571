/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A tool whose standard output cannot be written ends with an error. One thread. */
#ifndef OPR_STANDARD_OUTPUT_H
#define OPR_STANDARD_OUTPUT_H

#include "libop/base/compiler.h"

/* Makes exit(3) flush standard output; the process ends with `failed` when that fails and the user does not know yet. 0 or -ENOMEM. */
int opr_stdout_guard(int failed) OP_MUST_CHECK;

/* Flushes standard output. 0, or -EIO when something could not be written; the user is told once. */
int opr_stdout_flush(void) OP_MUST_CHECK;

#endif
