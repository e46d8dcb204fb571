/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The state of optop, and the lines that it shows.
 *
 *   call           thread of the screen   thread of a step
 *   top_step                                     x
 *   everything else          x
 */
#ifndef TOP_H
#define TOP_H

#include "libop/base/text.h"
#include "libop/process/stop.h"
#include "tools/optop/daemon.h"
#include "tools/optop/past.h"
#include "tools/optop/reading.h"
#include "tools/symbols/kept.h"

struct top_options {
	int batch, accumulate;
	double delay;        /* seconds from one reading to the next, at least */
	size_t iterations;   /* 0: no end */
	size_t top;          /* rows of --batch */
	enum top_view view;
	struct opr_query query; /* the session and the specification */
};

#define TOP_DELAY_MIN 0.1
#define TOP_DELAY_MAX 3600.0

/* What a step found: all that is shown. Zeroed at first; top_display_free in any case. */
struct top_display {
	struct top_found {
		struct top_reading reading;
		double seconds; /* that it counts */
		bool is_new;    /* the base was just read: there are no rows yet */
		int err;        /* -ENOENT: nothing to show now */
	} of[TOP_NR_SOURCES];
	bool is_past;        /* a block of a timeline, not what is new */
	char *state;         /* host, time, and what opd does */
	bool has_daemon;     /* these are known: of the time that is shown */
	uint64_t lost, stacks, complete;
	double counted_share; /* of its time, for the event that was counted the least */
	double daemon_share; /* of a CPU */
	uint64_t daemon_rss_bytes;
	double own_share;
	uint64_t stack_rate_hz; /* 0: not known */
	double period;       /* seconds since the step before; 0: there is none */
	uint64_t cost_ns;    /* CPU time of the step */
};

struct top {
	const struct top_options *options;
	const struct op_stop *stop;
	enum top_view view;
	size_t event; /* with chose_event; else the first one that has samples is shown */
	bool chose_event, accumulates, is_paused;
	double delay;
	struct top_display display; /* of the last step that has ended */

	/* for steps */
	bool is_past;
	struct top_span span; /* that is shown */
	char *socket, *session_dir;
	struct opr_before bases[TOP_NR_SOURCES];
	struct opr_kept_symbols kept;
	uint64_t base_ns[TOP_NR_SOURCES]; /* CLOCK_MONOTONIC; 0: there is no base */
	struct top_daemon before;         /* when the bases were read */
	uint64_t before_ns, before_cpu_ns, last_ns;
	/* called after the reading of a source, whose messages are written; NULL: none */
	void (*take_message)(void *arg, enum top_source source);
	void *take_message_arg;
};

/* Finds opd, or the session that the options name. 0 or -errno after a message. */
int top_open(struct top *top, const struct top_options *options) OP_NONNULL OP_MUST_CHECK;

/* Where to go in time. */
struct top_move {
	int blocks;   /* of the timelines: less than 0, back; more, forward, at the end to now */
	bool to_live; /* before that: to now */
};

/*
 * Asks opd and reads the session: all views, or with --batch the one that is wanted. keep_base:
 * counts go on from the base of the step before. 0 or -errno after a message. It is no error that
 * there is nothing to show now, nor that a block of the past cannot be read.
 */
int top_step(struct top *top, bool keep_base, const struct top_move *move, struct top_display *display) OP_NONNULL OP_MUST_CHECK;

/*
 * Whether the next step goes on with the same base: counts are to be added up, or names are missing
 * and the display is not old.
 */
bool top_keeps_base(const struct top *top) OP_NONNULL;

/* The display of a step, which becomes that of `top`. */
void top_take(struct top *top, struct top_display *display) OP_NONNULL;

/* What was found for the view that is shown, and its rows. NULL: there are none. */
const struct top_found *top_found(const struct top *top) OP_NONNULL;
const struct top_table *top_table(const struct top *top) OP_NONNULL;

/* Shows the event after the one that is shown now. */
void top_next_event(struct top *top) OP_NONNULL;

/*
 * How long to wait for the next step: less after the first and while names are missing, more where
 * steps take much CPU time.
 */
int top_wait_ms(const struct top *top) OP_NONNULL;

void top_display_free(struct top_display *display) OP_NONNULL;

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
