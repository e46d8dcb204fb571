/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The symbols of many images: from the cache, else read by processes of their own (tools/common/child.h), as many at a time as there are CPUs. */
#ifndef OPR_SYMBOL_JOBS_H
#define OPR_SYMBOL_JOBS_H

#include "tools/symbols/symbols.h"

struct opr_symbol_job {
	const char *path, *name; /* as for opr_symbols_read_bfd */
	struct opr_symbol_options options;
	struct opr_symbols *symbols; /* empty; filled when err is 0, to be freed in any case */
	int err;                     /* as of opr_symbols_read_bfd, or why its process ended: opr_child_reason */
	bool done;
};

/* Does all of them. 0, also when some have errors; -ENOMEM, or -errno of fork(2). */
int opr_symbol_jobs_run(struct opr_symbol_job *jobs, size_t nr_jobs) OP_MUST_CHECK;

#endif
