/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kernel's tracepoints: names as perf(1) has them, SUBSYSTEM:NAME, and the numbers that tracefs gives them until the next start. Any thread. */
#ifndef OP_TRACEPOINT_H
#define OP_TRACEPOINT_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"

/* True when it has the form of a tracepoint's name; whether there is one is not asked. */
bool op_tracepoint_is_name(const char *name) OP_NONNULL;

/* True when tracefs has the subsystem that stands before the first colon. */
bool op_tracepoint_has_subsystem(const char *name) OP_NONNULL;

/* What stands for a tracepoint in sample files. Its number in tracefs holds until the next start of the machine, so this one comes of its name. */
#define OP_TRACEPOINT_NUMBER_BIT 0x40000000u
uint32_t op_tracepoint_number(const char *name) OP_NONNULL;

/* The number of a tracepoint, perf_event_attr.config. False, and `why` has a text: no such one, no tracefs, not permitted. */
bool op_tracepoint_find(const char *name, uint64_t *ret_id, struct op_text *why) OP_NONNULL OP_MUST_CHECK;

#endif
