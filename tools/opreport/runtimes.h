/* SPDX-License-Identifier: GPL-3.0-or-later */
/* opreport -l --runtime: the functions of runtimes such as Python. One thread. */
#ifndef OPR_OPREPORT_RUNTIMES_H
#define OPR_OPREPORT_RUNTIMES_H

#include "tools/opreport/options.h"
#include "tools/report/run.h"

/* Writes the report. The run is at OPR_STEP_READ. 0 or -errno after a message. */
int opr_runtimes_report(struct opr_run *run, const struct opr_options *options) OP_NONNULL OP_MUST_CHECK;

/* The same of two runs: how the share of each function has changed. */
int opr_runtimes_compare(struct opr_run *before, struct opr_run *after,
			 const struct opr_options *options) OP_NONNULL OP_MUST_CHECK;

#endif
