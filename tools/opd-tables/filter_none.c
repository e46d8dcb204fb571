/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opd-tables/filter.h"

int opt_filter_apply(void)
{
	return 0;
}
