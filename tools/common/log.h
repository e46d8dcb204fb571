/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Messages of the tools: one line on stderr each. One thread. A function of tools/ that returns an
 * error has printed the reason, unless its comment says otherwise.
 */
#ifndef OPR_LOG_H
#define OPR_LOG_H

#include "libop/base/compiler.h"

/* --verbose=: name and what it shows */
#define OPR_TOPICS(X)                                                                                                              \
	X(details, "the whole header of a report, and each image that is gone")                                                    \
	X(debug, "what the tool decides")                                                                                          \
	X(bfd, "images, debug files and their symbols")                                                                            \
	X(level1, "the steps of the run")                                                                                          \
	X(sfile, "the sample files that are read")                                                                                 \
	X(stats, "numbers of files, images and samples")                                                                           \
	X(xml, "the XML writer")

enum opr_topic {
#define X(name, meaning) OPR_TOPIC_##name,
	OPR_TOPICS(X)
#undef X
		OPR_NR_TOPICS,
};

/* The name at the beginning of errors. To be called once, at the start. */
void opr_log_init(const char *program) OP_NONNULL;

/* Turns a topic on, or `all`. False: there is no such topic. */
bool opr_log_enable(const char *topic) OP_NONNULL;

bool opr_log_shows(enum opr_topic topic);

/* "PROGRAM: text". Returns err, so that a caller can write `return opr_error(-EINVAL, ...)`. */
int opr_error(int err, const char *format, ...) OP_NONNULL OP_PRINTF(2, 3);

/*
 * While a value of an option is taken, errors begin with "--NAME=VALUE: ", unless they name the
 * option themselves. The strings are used until the next call. NULL: none.
 */
void opr_log_set_option(const char *name, const char *value);

/*
 * Prints `why`, which it frees, or without one the text of err. Prints nothing when err is 0.
 * Returns err.
 */
int opr_error_why(int err, char *why) OP_MUST_CHECK;

/* "warning: text". A repeated line is printed only once, as files may be read twice. */
void opr_warn(const char *format, ...) OP_NONNULL OP_PRINTF(1, 2);

/* "note: text", for something that is as the user wanted it. Printed only once, too. */
void opr_note(const char *format, ...) OP_NONNULL OP_PRINTF(1, 2);

/* Prints the text alone, when the topic is on. */
void opr_verbose(enum opr_topic topic, const char *format, ...) OP_NONNULL OP_PRINTF(2, 3);

/* Prints the line for -ENOMEM, and returns -ENOMEM. */
int opr_no_memory(void);

#endif
