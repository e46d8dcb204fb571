/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The tracepoints of the kernel: names SUBSYSTEM:NAME, as in perf(1), and their numbers. Any
 * thread.
 */
#ifndef OP_TRACEPOINT_H
#define OP_TRACEPOINT_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"

/* True for a name of that form, whether the tracepoint exists or not. */
bool op_tracepoint_is_name(const char *name) OP_NONNULL;

/* True when tracefs has the subsystem before the first colon. */
bool op_tracepoint_has_subsystem(const char *name) OP_NONNULL;

/* The number in sample files, a hash of the name: numbers of tracefs change with each boot. */
#define OP_TRACEPOINT_NUMBER_BIT 0x40000000u
uint32_t op_tracepoint_number(const char *name) OP_NONNULL;

/*
 * The number for perf_event_attr.config. False with a message in `why`: no such tracepoint, no
 * tracefs, not permitted.
 */
bool op_tracepoint_find(const char *name, uint64_t *ret_id, struct op_text *why) OP_NONNULL OP_MUST_CHECK;

#endif
