/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * opd itself: command line, start-up and shutdown as one list read forwards and backwards, and the main thread's event
 * loop, which serves the control socket and signals while the sync thread profiles.
 *
 * Fatal before READY, degraded after: what fails in the start-up list ends opd with one line; afterwards errors are counted
 * and logged.
 */
#ifndef OPD_OPD_H
#define OPD_OPD_H

#include "libop/base/compiler.h"

#define OPD_EXIT_UNWRITTEN 2 /* opd.service knows it */

/* The program. Returns its exit code: 0, 1 with a line on stderr, or OPD_EXIT_UNWRITTEN with one when the last samples could not be written. */
int opd_main(int argc, char **argv) OP_NONNULL;

#endif
