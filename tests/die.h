/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How a program of the tests ends when it cannot go on. */
#ifndef TESTS_DIE_H
#define TESTS_DIE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libop/base/compiler.h"

/* Says what failed and why; NULL: nothing more is to be said. */
static inline void OP_NORETURN die_since(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s%s%s\n", program_invocation_short_name, what, why ? ": " : "", why ? why : "");
	exit(1);
}

/* The same for a negative errno, or 0. */
static inline void OP_NORETURN die(const char *what, int err)
{
	die_since(what, err ? strerror(-err) : NULL);
}

#endif
