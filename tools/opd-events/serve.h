/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef OPE_SERVE_H
#define OPE_SERVE_H

#include "tools/opd-events/rule.h"

/*
 * Answers requests until the other end closes the socket, or sends what is no request. Calls
 * recvfrom, perf_event_open, sendmsg and close, and nothing else. What the rule refuses is -EPERM.
 */
void ope_serve(int socket_fd, const struct ope_samplers *samplers) OP_NONNULL;

#endif
