/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of optop, and the lines that it shows. One thread. */
#ifndef TOP_H
#define TOP_H

#include "libop/base/text.h"
#include "libop/process/stop.h"
#include "tools/optop/daemon.h"
#include "tools/optop/reading.h"

struct top_options {
	int batch, accumulate;
	double delay;        /* seconds from one reading to the next, at least */
	size_t iterations;   /* 0: no end */
	size_t top;          /* rows of --batch */
	enum top_view view;
	char *session_dir;
	struct opr_words words;
};

#define TOP_DELAY_MIN 0.1
#define TOP_DELAY_MAX 3600.0

struct top {
	const struct top_options *options;
	const struct op_stop *stop;
	enum top_view view;
	size_t event;
	bool accumulates, is_paused;
	double delay;
	char *socket, *session_dir;
	struct top_base base;
	struct top_reading reading;
	struct top_daemon daemon, before; /* now, and when the base was read */
	uint64_t base_ns, reading_ns;     /* CLOCK_MONOTONIC */
	uint64_t cost_ns;                 /* that the last reading took */
	uint64_t own_cpu_ns;              /* of optop when the base was read */
	double own_share;                 /* of a CPU since then */
	bool is_new; /* the base was just read: there are no rows yet */
	int err;     /* of the last reading */
};

/* Finds opd, or the session that the options name. 0 or -errno after a message. */
int top_open(struct top *top, const struct top_options *options) OP_NONNULL OP_MUST_CHECK;

/* Begins a new base: another view, event, or way of counting. */
void top_restart(struct top *top) OP_NONNULL;

/*
 * Asks opd and reads the session. 0; -ENOENT after a message: nothing to show now; another -errno
 * after a message.
 */
int top_step(struct top *top) OP_NONNULL OP_MUST_CHECK;

/* How long to wait for the next step: less for a new base, more where a reading takes long. */
int top_wait_ms(const struct top *top) OP_NONNULL;

#define TOP_HEADER_LINES 3

/* A line above the rows, from 0; the title of the rows; and a row. */
void top_add_header(const struct top *top, size_t line, struct op_text *text) OP_NONNULL;
void top_add_title(const struct top *top, struct op_text *text) OP_NONNULL;
/* Of a path that has no room in nr_columns the first functions are left out. */
void top_add_row(const struct top *top, const struct top_row *row, size_t nr_columns, struct op_text *text) OP_NONNULL;

const char *top_view_word(enum top_view view);

void top_free(struct top *top) OP_NONNULL;

/* Shows it on the terminal until the user or a signal ends it. 0 or -errno after a message. */
int top_show(struct top *top) OP_NONNULL OP_MUST_CHECK;

#endif
