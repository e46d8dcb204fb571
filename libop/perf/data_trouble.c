/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/perf/data_trouble.h"

void op_perf_trouble_note(struct op_perf_trouble *trouble, const char *file, uint64_t offset, const char *what, int err)
{
	if (trouble->what) {
		trouble->nr_more++;
		return;
	}
	*trouble = (struct op_perf_trouble){ .what = what, .offset = offset, .err = err };
	snprintf(trouble->file, sizeof(trouble->file), "%s", file);
}
