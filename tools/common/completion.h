/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completion for bash and zsh, from the table of options. */
#ifndef OPR_COMPLETION_H
#define OPR_COMPLETION_H

#include "tools/common/option_table.h"

/* --completion=sessions writes the names of the sessions, for the scripts. */
#define OPR_COMPLETION_SESSIONS "sessions"

/* Writes the script of a shell, "bash" or "zsh". 0; -EINVAL without a message: another shell. */
int opr_completion_write(FILE *out, const struct opr_command *command, const char *shell) OP_NONNULL OP_MUST_CHECK;

#endif
