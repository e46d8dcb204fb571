/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Node: functions of JavaScript in V8. A frame has a context and a function at its frame pointer,
 * or the type of a frame of V8's own code. A looker reads whose frame it is
 * (pipeline/files/node_heap.h). Names are kept by what proves them: the bytecode of the
 * interpreter, or the place of compiled code. Both stay where they are while functions move. What
 * was used is asked for again once a second.
 *
 * Sync thread only.
 */
#ifndef OPD_RUNTIME_NODE_H
#define OPD_RUNTIME_NODE_H

#include "pipeline/runtimes/host.h"

#define OPD_NODE_FUNCTIONS_MAX 65536u /* that are known at a time, of all processes */

extern const struct opd_runtime_kind opd_runtime_node;

#endif
