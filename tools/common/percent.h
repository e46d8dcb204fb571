/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Percentages as oprofile writes them. */
#ifndef OPR_PERCENT_H
#define OPR_PERCENT_H

#include "libop/base/compiler.h"

#define OPR_PERCENT_WIDTH 7

struct opr_percent_text {
	char text[64];
};

/* Percent of a total, 0 of none. */
static inline double opr_percent(uint64_t count, uint64_t total)
{
	return total ? (double)count / (double)total * 100.0 : 0;
}

/* Seven columns: four decimals as far as they fit, small numbers in scientific notation, nothing at all as one 0. */
struct opr_percent_text opr_format_percent(uint64_t count, uint64_t total);

#endif
