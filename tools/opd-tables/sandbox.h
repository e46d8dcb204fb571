/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What this process may still do before it opens an image: read that file, write the table, and use
 * a bounded amount of memory and of CPU time. Anything else ends it.
 */
#ifndef OPT_SANDBOX_H
#define OPT_SANDBOX_H

#include "libop/base/compiler.h"

/* For good: limits, then the filter. 0 or -errno. */
int opt_sandbox_enter(void) OP_MUST_CHECK;

#endif
