/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --help and --usage, from the table of options, as wide as the terminal. */
#ifndef OPR_HELP_H
#define OPR_HELP_H

#include "tools/common/option_table.h"

void opr_help_write(FILE *out, const struct opr_command *command) OP_NONNULL;
void opr_usage_write(FILE *out, const struct opr_command *command) OP_NONNULL;

#endif
