/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Counters of IBS in the status, both samplers together: name (ibs_<name> in every output), the
 * member of struct op_ibs_counts, meaning.
 */
#ifndef OP_IBS_STATS_H
#define OP_IBS_STATS_H

#include "libop/events/ibs.h"

#define OP_IBS_STATS(X) \
	X(decoded, by_reason[OP_IBS_OK], "samples that were decoded") \
	X(cut, by_reason[OP_IBS_CUT], "cut short: the sample is longer than its record") \
	X(short, by_reason[OP_IBS_SHORT], "fewer registers than any CPU has") \
	X(uneven, by_reason[OP_IBS_UNEVEN], "no whole number of registers") \
	X(no_caps, by_reason[OP_IBS_NO_CAPS], "no capability word") \
	X(extra, by_reason[OP_IBS_EXTRA], "more registers than the capability word announces") \
	X(not_valid, by_reason[OP_IBS_NOT_VALID], "registers that hold no sample") \
	X(no_address, by_reason[OP_IBS_NO_ADDRESS], "fetches at address 0 (erratum 1197)") \
	X(unknown_caps, unknown_caps, "decoded, with capabilities that opd does not know") \
	X(missing, missing, "decoded, with fewer registers than announced") \
	X(old_fetch, old_fetch, "decoded, fetches as kernels before 5.10 stored them") \
	X(redacted, redacted, "decoded, without the physical address: the kernel took it out")

enum op_ibs_stat {
#define X(name, member, meaning) OP_IBS_STAT_##name,
	OP_IBS_STATS(X)
#undef X
	OP_NR_IBS_STATS,
};

const char *op_ibs_stat_meaning(enum op_ibs_stat stat);

/* Adds the counts of one sampler. */
void op_ibs_stats_add(uint64_t stats[OP_NR_IBS_STATS], const struct op_ibs_counts *counts) OP_NONNULL;

#endif
