/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Repairs the state after a loss of side-band records: every process is in doubt, and only /proc
 * has the truth. Reading thousands of processes at once would lose more records. Therefore a
 * running process is read when it has its next sample (resolver.c). Here /proc is listed, and
 * processes are read for a short time at each visit, new and young ones first. /proc/kallsyms,
 * which has the kernel's run-time code, is read at once, but then not for some seconds, because it
 * is long.
 *
 * Sync thread only.
 */
#ifndef OPD_RESCAN_H
#define OPD_RESCAN_H

#include "libop/base/compiler.h"
#include "pipeline/resolve/resolver.h"

struct opd_rescan {
	bool wanted;      /* /proc must be listed */
	bool code_wanted; /* /proc/kallsyms must be read for run-time code since code_from_ns */
	uint64_t code_from_ns, code_next_ns;
	uint64_t next_ns;     /* /proc is listed at most once a second */
	uint32_t *pids;       /* to be read, the most urgent first */
	size_t nr_pids, next; /* next: index of the next one to be read */
	uint64_t nr_lists;
};

/* Side-band records from from_ns until until_ns were lost. */
void opd_rescan_lost(struct opd_rescan *rescan, struct opd_resolver *resolver, uint64_t from_ns, uint64_t until_ns) OP_NONNULL;

/*
 * Does what is due at a visit, whose time is resolver->now_ns. 0; -ENOMEM, or -errno of reading
 * /proc: the next visit tries again.
 */
int opd_rescan_go_on(struct opd_rescan *rescan, struct opd_resolver *resolver) OP_NONNULL OP_MUST_CHECK;

/* Processes and lists that are left to read at the next visits. */
static inline uint64_t opd_rescan_left(const struct opd_rescan *rescan)
{
	return rescan->wanted + rescan->code_wanted + (rescan->nr_pids - rescan->next);
}

/* Accepts a zeroed rescan. */
void opd_rescan_free(struct opd_rescan *rescan) OP_NONNULL;

#endif
