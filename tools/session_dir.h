/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the sessions are, when no option says so: what the daemon uses. */
#ifndef OPR_SESSION_DIR_H
#define OPR_SESSION_DIR_H

#include "libop/compiler.h"

/*
 * `option` (--session-dir) when there is one; oprofile_data in the working directory; the SESSION_DIR that `opcontrol --setup` wrote to the daemonrc of
 * the SessionDir of opd.conf(5), or that SessionDir. Without the option, a line on stderr names the choice. Freed by the caller. 0 or -errno.
 */
int opr_session_dir_choose(const char *option, char **ret_dir) OP_NONNULL_ARGS(2) OP_MUST_CHECK;

#endif
