/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * opd: the command line, start-up and shutdown as one list that is read forwards and backwards, and
 * the event loop of the main thread, which serves the control socket and signals while the sync
 * thread profiles.
 *
 * An error in the start-up list ends opd with one line. Later errors are counted and logged.
 */
#ifndef OPD_OPD_H
#define OPD_OPD_H

#include "libop/base/compiler.h"

#define OPD_EXIT_UNWRITTEN 2 /* used in opd.service */

/*
 * Runs opd and returns its exit code: 0; 1 after a line on stderr; OPD_EXIT_UNWRITTEN after a line
 * on stderr when the last samples could not be written.
 */
int opd_main(int argc, char **argv) OP_NONNULL;

#endif
