/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The log: lines on stderr, with sd-daemon(3) priorities when the journal reads it, else with the program's name. Any thread.
 */
#ifndef OPD_LOG_H
#define OPD_LOG_H

#include <systemd/sd-daemon.h>

#include "libop/base/clock.h"
#include "libop/base/compiler.h"
#include "libop/base/text.h"

/* One of SD_ERR, SD_WARNING, SD_NOTICE, SD_INFO, SD_DEBUG, and a line without its end. */
void opd_log(const char *priority, const char *format, ...) OP_NONNULL_ARGS(1, 2) OP_PRINTF(2, 3);

/* A field of the journal beside the line: OPD_SOMETHING=... */
struct opd_log_field {
	const char *name;
	const char *text; /* NULL: the number */
	uint64_t number;
};

/* The same with at most 8 fields, where the journal reads stderr; elsewhere the line alone, which says it all. */
void opd_log_with(const char *priority, const struct opd_log_field *fields, size_t nr_fields, const char *format, ...)
	OP_NONNULL_ARGS(1, 2, 4) OP_PRINTF(4, 5);

/*
 * Has lines with fields sent to the journal as such (log_journal.c); before there are threads. Who does not ask for it, as opimport, has the lines alone, and needs no
 * libsystemd, which takes a process a millisecond to load.
 */
void opd_log_use_journal(void);

/* Sends to the journal; false: nothing was sent. */
typedef bool opd_log_sender(const char *priority, const struct opd_log_field *fields, size_t nr_fields, const char *line);
void opd_log_set_sender(opd_log_sender *send) OP_NONNULL;

/* Lets a message of one kind pass once per interval: true when it may, and *ret_suppressed says how many were held back. */
struct opd_rate {
	uint64_t next_ns;
	uint64_t suppressed;
};

bool opd_rate_allows(struct opd_rate *rate, uint64_t now_ns, uint64_t interval_ns, uint64_t *ret_suppressed) OP_NONNULL;

#define OPD_LOG_INTERVAL_NS (60 * (uint64_t)OP_NS_PER_S) /* of what may happen again and again */

/* A warning that something failed, with its -errno, once in OPD_LOG_INTERVAL_NS. */
void opd_log_failure(struct opd_rate *rate, uint64_t now_ns, const char *what, int err) OP_NONNULL;

#endif
