/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is done after side-band records were lost. What every process did in that time is in doubt, and only /proc can tell. Thousands of
 * processes cannot be read at once without losing more: who runs is asked when it has its next sample (resolver.c); here /proc is listed, new and
 * young processes are read first, and then the others, for a short time at each visit. Of the kernel's run-time code /proc/kallsyms tells, which is long: it is read
 * at once, but not again for some seconds.
 *
 * Sync thread only.
 */
#ifndef OPD_RESCAN_H
#define OPD_RESCAN_H

#include "daemon/resolve/resolver.h"
#include "libop/base/compiler.h"

struct opd_rescan {
	bool wanted;          /* /proc has to be listed */
	bool code_wanted;     /* and /proc/kallsyms read, for what the kernel made at run time since code_from_ns */
	uint64_t code_from_ns, code_next_ns;
	uint64_t next_ns;     /* at most once a second, however long the storm */
	uint32_t *pids;       /* to be read, the most urgent first */
	size_t nr_pids, next; /* next: index of the first one that was not read yet */
	uint64_t nr_lists;    /* times that /proc was listed */
};

/* Side-band records of the time from from_ns to until_ns were lost. */
void opd_rescan_lost(struct opd_rescan *rescan, struct opd_resolver *resolver, uint64_t from_ns, uint64_t until_ns) OP_NONNULL;

/* What is due at a visit; resolver->now_ns is its time. 0; -ENOMEM or -errno of reading /proc: it is tried again. */
int opd_rescan_go_on(struct opd_rescan *rescan, struct opd_resolver *resolver) OP_NONNULL OP_MUST_CHECK;

/* True while something is to be done at the next visits. */
static inline bool opd_rescan_is_under_way(const struct opd_rescan *rescan)
{
	return rescan->wanted || rescan->pids || rescan->code_wanted;
}

/* Allowed on a zeroed rescan. */
void opd_rescan_free(struct opd_rescan *rescan) OP_NONNULL;

#endif
