/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Asks opd-events for the events that the kernel refuses with EACCES because
 * kernel.perf_event_paranoid is above 2 (libop/events/event_request.h). Any thread.
 */
#ifndef OPD_OPENER_H
#define OPD_OPENER_H

#include "libop/base/compiler.h"

/*
 * From now on op_sys_perf_event_open asks opd-events, whose socket lies beside this control socket.
 * It must be of root. The connection stays, for CPUs that come later. Before there are threads.
 */
void opd_opener_use(const char *control_socket) OP_NONNULL;

/* True where the kernel wants CAP_SYS_ADMIN for each event. */
bool opd_opener_is_needed(void);

#endif
