/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/percent.h"

struct opr_percent_text opr_format_percent(uint64_t count, uint64_t total)
{
	double percent = opr_percent(count, total);
	struct opr_percent_text text;

	if (!count || !total)
		snprintf(text.text, sizeof(text.text), "%*s", OPR_PERCENT_WIDTH, "0");
	else if (percent > 0.001)
		snprintf(text.text, OPR_PERCENT_WIDTH + 1, "%*.4f", OPR_PERCENT_WIDTH, percent);
	else
		snprintf(text.text, sizeof(text.text), "%*.1e", OPR_PERCENT_WIDTH, percent);
	return text;
}
