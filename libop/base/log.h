/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The log: lines on stderr, with priorities when the journal reads it (sd-daemon(3)), else with the
 * name of the program. Any thread.
 */
#ifndef OP_LOG_H
#define OP_LOG_H

#include "libop/base/clock.h"
#include "libop/base/compiler.h"
#include "libop/base/text.h"

/* Priorities. The digit is that of syslog(3). */
#define OP_LOG_ERR     "<3>"
#define OP_LOG_WARNING "<4>"
#define OP_LOG_NOTICE  "<5>"
#define OP_LOG_INFO    "<6>"
#define OP_LOG_DEBUG   "<7>"

/* Writes one line, escaped by op_escape; the format has no line end. */
void op_log(const char *priority, const char *format, ...) OP_NONNULL_ARGS(1, 2) OP_PRINTF(2, 3);

/* A field of the journal beside the line: OPD_SOMETHING=... */
struct op_log_field {
	const char *name;
	const char *text; /* NULL: the number */
	uint64_t number;
};

#define OP_LOG_MAX_FIELDS 8

/*
 * Writes one line with fields. The fields reach the sender that the program has set, when stderr
 * is the journal. Otherwise the line goes out alone, so it must say everything itself.
 */
void op_log_with(const char *priority, const struct op_log_field *fields, size_t nr_fields, const char *format, ...)
	OP_NONNULL_ARGS(1, 2, 4) OP_PRINTF(4, 5);

/* Sends a line with its fields to the journal; false: nothing was sent. */
typedef bool op_log_sender(const char *priority, const struct op_log_field *fields, size_t nr_fields, const char *line);

/* To be called before there are threads. */
void op_log_set_sender(op_log_sender *send) OP_NONNULL;

/* Limits how often a message of one kind is written. */
struct op_rate {
	uint64_t next_ns;
	uint64_t suppressed;
};

/* True when the message may be written; *ret_suppressed then says how many were held back. */
bool op_rate_allows(struct op_rate *rate, uint64_t now_ns, uint64_t interval_ns, uint64_t *ret_suppressed) OP_NONNULL;

#define OP_LOG_INTERVAL_NS (60 * (uint64_t)OP_NS_PER_S) /* between two messages of one kind */

/* Warns that something failed with this -errno, once in OP_LOG_INTERVAL_NS. */
void op_log_failure(struct op_rate *rate, uint64_t now_ns, const char *what, int err) OP_NONNULL;

#endif
