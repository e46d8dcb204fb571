/* SPDX-License-Identifier: GPL-3.0-or-later */
/* opreport -l --waits: the functions that waited, and what --explain says of them. One thread. */
#ifndef OPR_OPREPORT_WAITS_H
#define OPR_OPREPORT_WAITS_H

#include "tools/opreport/options.h"
#include "tools/report/run.h"
#include "tools/stacks/wait_list.h"

/* Writes the report. The run is at OPR_STEP_READ. 0 or -errno after a message. */
int opr_waits_report(struct opr_run *run, const struct opr_options *options) OP_NONNULL OP_MUST_CHECK;

/*
 * The same of two profiles: how the share of each function changed, in points of percent without
 * waits for work, and what is noise of the records.
 */
int opr_waits_compare(struct opr_run *before, struct opr_run *after,
		      const struct opr_options *options) OP_NONNULL OP_MUST_CHECK;

#endif
