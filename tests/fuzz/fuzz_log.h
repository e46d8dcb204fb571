/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages of the tools in fuzz targets: they are counted and not printed. */
#ifndef OPD_FUZZ_LOG_H
#define OPD_FUZZ_LOG_H

#include "tools/common/log.h"

extern unsigned int fuzz_nr_errors; /* that were told */

#endif
