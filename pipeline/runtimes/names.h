/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The functions of runtimes that stacks have named. Each has a number, from 1 on, which stays as
 * long as the table is there, and a text (libop/stacks/runtime_name.h).
 *
 * Sync thread only.
 */
#ifndef OPD_RUNTIME_NAMES_H
#define OPD_RUNTIME_NAMES_H

#include "libop/base/compiler.h"
#include "libop/stacks/runtime_name.h"

/* Then a function is "(other functions)" of its runtime: a program can make any number of them. */
#define OPD_RUNTIME_NAMES_MAX 100000u

struct opd_runtime_names;

/* NULL: no memory. */
struct opd_runtime_names *opd_runtime_names_new(void) OP_MUST_CHECK;
void opd_runtime_names_free(struct opd_runtime_names *names); /* NULL is allowed */

/* Finds or adds a function. Its number; 0: no memory. */
uint32_t opd_runtime_names_add(struct opd_runtime_names *names, enum op_runtime runtime, const char *file, const char *function,
			       uint32_t line) OP_NONNULL OP_MUST_CHECK;

/* The text of a number that the table gave. Valid as long as the table. */
const char *opd_runtime_names_get(const struct opd_runtime_names *names, uint32_t number) OP_NONNULL;

size_t opd_runtime_names_nr(const struct opd_runtime_names *names) OP_NONNULL;

#endif
