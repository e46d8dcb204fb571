/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writes stacks as files of other tools. Each form has the samples of the arranged tree, all of
 * them, and tells what was lost where it has a place for that. One thread.
 */
#ifndef OPR_EXPORT_H
#define OPR_EXPORT_H

#include "tools/stacks/write_stacks.h"

/* pprof: gzip. The tree has places. 0 or -errno after a message. */
int opr_export_pprof(const struct opr_stack_report *report, FILE *out) OP_NONNULL OP_MUST_CHECK;

/* A perf.data file. The tree has places. 0 or -errno after a message. */
int opr_export_perf(const struct opr_stack_report *report, FILE *out) OP_NONNULL OP_MUST_CHECK;

/* Text of trees without places. 0 or -errno after a message. */
int opr_export_firefox(const struct opr_stack_report *report, FILE *out) OP_NONNULL OP_MUST_CHECK;
int opr_export_speedscope(const struct opr_stack_report *report, FILE *out) OP_NONNULL OP_MUST_CHECK;
int opr_export_callgrind(const struct opr_stack_report *report, FILE *out) OP_NONNULL OP_MUST_CHECK;

#endif
