/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What opd-waits sends to opd over its socket (descriptor 3): it loads the program, sends the
 * descriptors, one with each message, and ends.
 */
#ifndef OPD_WAITS_LOADING_H
#define OPD_WAITS_LOADING_H

#include <stdint.h>

/* The oldest kernel: sched_switch tells the state, and perf events count what they lost. */
#define OPD_WAITS_LINUX_MAJOR 6
#define OPD_WAITS_LINUX_MINOR 1

#define OPD_WAITS_SOCKET_FD  3
#define OPD_WAITS_NONE "--no-waits" /* its argument: no programs at switches of threads */
#define OPD_WAITS_WORDS_MAX  240u

enum opd_waits_piece {
	OPD_WAITS_CONTROL, /* maps of shared.h */
	OPD_WAITS_CPUS,
	OPD_WAITS_OUTPUT,
	OPD_WAITS_NOTES,
	OPD_WAITS_DEEP_CPUS,
	OPD_WAITS_INTERPRETER_IMAGES,  /* maps of pipeline/runtimes/shared.h */
	OPD_WAITS_INTERPRETER_CONTROL,
	OPD_WAITS_KICK,     /* of one CPU: `index` */
	OPD_WAITS_LINK,     /* keeps a program attached */
	OPD_WAITS_ITERATOR, /* the link of the iterator */
	OPD_WAITS_SAMPLE,   /* the program on_sample, which opd attaches to its events */
	OPD_WAITS_MISSING,  /* `index`: an enum opd_wait_part; `words`: why; no descriptor */
	OPD_WAITS_DONE,     /* `index`: the number of CPUs; no descriptor */
	OPD_WAITS_FAILED,   /* the reason in `words`; no descriptor */
};

struct opd_waits_message {
	uint32_t piece; /* enum opd_waits_piece */
	uint32_t index;
	char words[OPD_WAITS_WORDS_MAX];
};

#endif
