/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes the samples of one program for llvm-bolt, which lays its code out anew. One thread. */
#ifndef OPR_BOLT_H
#define OPR_BOLT_H

#include "tools/report/symbol_rows.h"

/*
 * Whether the rows can be written: they have details. 0; -EINVAL after a message: they are of
 * several images or events; -ENOENT after a message: no sample is in a function.
 */
int opr_export_bolt_check(const struct opr_symbol_report *report) OP_NONNULL OP_MUST_CHECK;

/* Writes rows that passed the check. Warns of samples that are in no function. */
void opr_export_bolt(const struct opr_symbol_report *report, const char *event, FILE *out) OP_NONNULL;

#endif
