/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the symbols of many images: from the cache, else in a child process per CPU. */
#ifndef OPR_SYMBOL_JOBS_H
#define OPR_SYMBOL_JOBS_H

#include "tools/symbols/symbols.h"

struct opr_symbol_job {
	const char *path, *name; /* as for opr_symbols_read_bfd */
	struct opr_symbol_options options;
	struct opr_symbols *symbols; /* zeroed; filled when err is 0, to be freed in any case */
	/* of opr_symbols_read_bfd or _kallsyms, or why its child ended (opr_child_reason) */
	int err;
	bool done;
};

/* Runs all jobs. 0, also when some have an error of their own; -ENOMEM, or -errno of fork(2). */
int opr_symbol_jobs_run(struct opr_symbol_job *jobs, size_t nr_jobs) OP_MUST_CHECK;

#endif
