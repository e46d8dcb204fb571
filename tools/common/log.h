/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the reporting tools tell the user beside the report: one line on stderr for each thing. The functions of tools/ that return 0 or -errno have
 * told the user why when they fail, unless their comment says otherwise.
 */
#ifndef OPR_REPORT_LOG_H
#define OPR_REPORT_LOG_H

#include "libop/base/compiler.h"

/* --verbose=: name and what it shows */
#define OPR_TOPICS(X)                                                                                                              \
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

/* One thread alone. */

/* The name every line starts with. Once, at the start. */
void opr_log_init(const char *program) OP_NONNULL;

/* Turns one topic on, or `all`. False when there is no such topic. */
bool opr_log_enable(const char *topic) OP_NONNULL;

/* "PROGRAM: text". Returns err, so that a caller can write `return opr_error(-EINVAL, ...)`. */
int opr_error(int err, const char *format, ...) OP_NONNULL OP_PRINTF(2, 3);

/* "warning: text". A line that was printed before is not printed again: what is read twice is told once. */
void opr_warn(const char *format, ...) OP_NONNULL OP_PRINTF(1, 2);

/* "note: text", of what is as the user wanted it. Nor is it printed again. */
void opr_note(const char *format, ...) OP_NONNULL OP_PRINTF(1, 2);

/* The text as it is, when the topic is on. */
void opr_verbose(enum opr_topic topic, const char *format, ...) OP_NONNULL OP_PRINTF(2, 3);

/* The line for -ENOMEM; returns -ENOMEM. */
int opr_no_memory(void);

#endif
