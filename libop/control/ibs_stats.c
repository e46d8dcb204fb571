/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/control/ibs_stats.h"

const char *op_ibs_stat_meaning(enum op_ibs_stat stat)
{
	static const char *const meanings[OP_NR_IBS_STATS] = {
#define X(name, member, meaning) [OP_IBS_STAT_##name] = meaning,
		OP_IBS_STATS(X)
#undef X
	};

	return meanings[stat];
}

void op_ibs_stats_add(uint64_t stats[OP_NR_IBS_STATS], const struct op_ibs_counts *counts)
{
#define X(name, member, meaning) stats[OP_IBS_STAT_##name] += counts->member;
	OP_IBS_STATS(X)
#undef X
}
