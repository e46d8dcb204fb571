/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an unclean stop left: looked at before anything is counted, so that every reader takes the session. Main thread, at the start. */
#ifndef OPD_RECOVER_H
#define OPD_RECOVER_H

#include "libop/compiler.h"

/*
 * Ends what was under way in tmp/; after an unclean stop every sample file of the current session is looked at as well: nodes that are torn are
 * dropped, what is no sample file is put aside. The log says what was done and what failed.
 */
void opd_recover(int session_fd, bool was_unclean);

#endif
