/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The loop of a program that samples: opd and operf. It waits until a ring, a side band, a row
 * table or a descriptor of the program has something. It drains what woke it. Every visit_ns comes
 * a turn: all CPUs are visited, and what the resolver need not know any more is forgotten. While no
 * process does anything that the loop must know, and nobody asks for figures, a turn comes every
 * five seconds. What else a program does in a turn are its chores.
 *
 * One thread.
 */
#ifndef OPD_LOOP_H
#define OPD_LOOP_H

#include "libop/base/compiler.h"
#include "pipeline/drive/visit.h"

/* The tags of the program's own descriptors begin here; the loop has those below. */
#define OPD_LOOP_HOST_TAG ((uint64_t)1 << 32)

/* NULL: the program does nothing then. The times are op_now_ns(). */
struct opd_chores {
	/* whenever a turn is due, even if it can wait */
	void (*look)(void *host, uint64_t now_ns);
	/* in each turn, before rings are read and at the end */
	void (*begin)(void *host, uint64_t now_ns);
	void (*end)(void *host, uint64_t now_ns);
	/* each second, after the resolver forgot what is over */
	void (*prune)(void *host, uint64_t now_ns);
	/* every ten seconds: writes it; there must be one, as for descriptors of opd_loop_watch */
	void (*ledger)(void *host);
	/* a descriptor of opd_loop_watch is readable */
	void (*event)(void *host, uint64_t tag);
};

struct opd_loop {
	const struct opd_chores *chores; /* the program's, as all before epoll_fd */
	void *host;                      /* the argument of chores */
	struct opd_pipeline *pipeline;
	struct opd_visits *visits;
	uint64_t visit_ns; /* between two turns; a chore may change it */
	bool is_watched;   /* somebody asked for figures: the next turn is a full one */
	bool quit;         /* a chore ends the loop */
	int epoll_fd;
	uint64_t next_ns, next_prune_ns, next_trim_ns, next_ledger_ns; /* op_now_ns() */
	uint64_t begin_ns;   /* of the last turn */
	uint64_t horizon_ns; /* samples from before it have been read */
	uint64_t nr_freed;   /* freed address spaces when memory was trimmed last */
	bool trim_again;
};

/*
 * Waits for all CPUs that are online, and for row tables. The program has filled what is its own in
 * *loop, all else is zero. 0 or -errno; opd_loop_close in any case.
 */
int opd_loop_open(struct opd_loop *loop) OP_NONNULL OP_MUST_CHECK;

/* Allowed on a loop that was never opened, all zero. */
void opd_loop_close(struct opd_loop *loop) OP_NONNULL;

/* Waits for a descriptor of the program, too; fd -1: none. 0 or -errno. */
int opd_loop_watch(struct opd_loop *loop, int fd, uint64_t tag) OP_NONNULL OP_MUST_CHECK;

/* Waits for the rings of a CPU that came online. 0 or -errno. */
int opd_loop_watch_cpu(struct opd_loop *loop, size_t index) OP_NONNULL OP_MUST_CHECK;

/* Returns when `quit` is true. */
void opd_loop_run(struct opd_loop *loop) OP_NONNULL;

#endif
