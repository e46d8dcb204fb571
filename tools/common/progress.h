/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One line about the work that goes on, for work of more than a second: on the terminal that stderr
 * is, and nowhere else. The line is erased before anything else is written there. The thread that
 * calls opr_progress first shows it; calls of other threads do nothing.
 */
#ifndef OPR_PROGRESS_H
#define OPR_PROGRESS_H

#include "libop/base/compiler.h"

/* Whether stderr is a terminal that can erase a line. */
bool opr_progress_is_on(void);

/* What goes on now. Control characters are escaped. */
void opr_progress(const char *format, ...) OP_NONNULL OP_PRINTF(1, 2);

/* The same for work of many equal steps: "what: 12 %". For inner loops. */
void opr_progress_count(const char *what, uint64_t nr_done, uint64_t nr_all) OP_NONNULL;

/* For one who waits: the same line is shown when its time has come. */
void opr_progress_tick(void);

/* Erases the line. The next opr_progress shows another one. */
void opr_progress_end(void);

/* The same, and none is shown any more: a report is written to the terminal. */
void opr_progress_stop(void);

#endif
