/* SPDX-License-Identifier: GPL-3.0-or-later */
/* opimport: what is in the session and may be wrong. */
#include <errno.h>

#include "tools/opimport.h"
#include "tools/report_log.h"

static bool warn_of_order(const struct opd_import_counts *counts, const char *file)
{
	if (!counts->nr_unordered)
		return false;
	opr_error(-EBADMSG, "%s: %llu records came when younger ones had been counted: samples may be on wrong images", file,
		  (unsigned long long)counts->nr_unordered);
	return true;
}

bool opi_report_doubts(const struct opd_import *import, const char *file)
{
	struct opd_import_counts counts;

	opd_import_counts(import, &counts);
	return warn_of_order(&counts, file);
}
