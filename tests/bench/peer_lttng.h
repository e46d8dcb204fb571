/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * LTTng-UST for bench_memory. Its reader is another process, so tests/bench/lttng_writer.c measures
 * it and sends the figures.
 */
#ifndef PEER_LTTNG_H
#define PEER_LTTNG_H

#include <stdio.h>

#include "libop/base/compiler.h"

struct peer_lttng {
	FILE *requests;
	FILE *answers;
	pid_t pid;
};

struct lttng_figures {
	double write_ns;
	double through_ns;
	uint64_t lost_permille;
};

/* Runs `command` (tests/bench/lttng.sh and the writer's path) with sh. 0 or -errno. */
int peer_lttng_start(const char *command, struct peer_lttng *ret_peer) OP_NONNULL OP_MUST_CHECK;

/*
 * Writes nr records of 32, 64 or 256 bytes. 0; -EPIPE: it has ended, and has said why on its
 * standard error.
 */
int peer_lttng_measure(struct peer_lttng *peer, size_t record_bytes, uint64_t nr,
		       struct lttng_figures *ret_figures) OP_NONNULL OP_MUST_CHECK;

/* Ends it and its session daemon, and waits for them. Allowed on a zeroed one. */
void peer_lttng_stop(struct peer_lttng *peer) OP_NONNULL;

#endif
