/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The capabilities that opd uses, each with what breaks without it. */
#ifndef OPD_PRIVILEGES_H
#define OPD_PRIVILEGES_H

#include "libop/compiler.h"

/*
 * Logs a line for each capability that this process lacks and would use. Nothing is refused for it here: what cannot be
 * done without one fails where it is done, with its own reason.
 */
void opd_privileges_report(void);

#endif
