/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What operf says at the end. */
#ifndef OPF_REPORT_H
#define OPF_REPORT_H

#include "tools/operf/profile.h"

/* One line with the samples, the losses, and the next command; then what was lost, and why. */
void opf_report(const struct opf_profile *profile) OP_NONNULL;

#endif
