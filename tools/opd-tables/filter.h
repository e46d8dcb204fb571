/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The system calls of this process (seccomp(2)). */
#ifndef OPT_FILTER_H
#define OPT_FILTER_H

#include "libop/base/compiler.h"

/*
 * The filter of system calls. filter_none.c takes the place of filter.c where libseccomp is
 * missing, and in builds with sanitizers, which make calls of their own. 0 or -errno.
 */
int opt_filter_apply(void) OP_MUST_CHECK;

#endif
