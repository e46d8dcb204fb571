/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Makes one table at a time: a helper process runs opd-tables (tabler.h), and a looker opens the
 * image. A helper that does not end is abandoned, and another one takes its place; as many as
 * OPD_MAKER_HANGING_MAX may hang, each on files of another user.
 *
 * Sync thread only.
 */
#ifndef OPD_MAKER_H
#define OPD_MAKER_H

#include "libop/base/compiler.h"
#include "libop/process/nursery.h"
#include "pipeline/files/pass_file.h"

#define OPD_MAKER_HANGING_MAX 4u
/* opd-tables ends itself after 10 s of CPU time */
#define OPD_MAKER_WAIT_NS     (60ull * 1000000000u)
/*
 * opd-tables has one percent of a CPU at normal priority, saved up to OPD_MAKER_CREDIT_NS, and at
 * most OPD_MAKER_NORMAL_NS for one table. What it needs more it gets at idle priority: on a host
 * that is always busy that may be nothing.
 */
#define OPD_MAKER_CREDIT_SHARE 100u
#define OPD_MAKER_CREDIT_NS    (2ull * 1000000000u)
#define OPD_MAKER_NORMAL_NS    (1ull * 1000000000u)

enum opd_make_result {
	OPD_MAKE_MADE,
	OPD_MAKE_FAILED,     /* no table in this file */
	OPD_MAKE_NO_SANDBOX, /* opd-tables cannot set its limits or its filter */
	OPD_MAKE_CHANGED,    /* it is another file, or was written to meanwhile */
	OPD_MAKE_CRASHED,    /* by a signal */
	OPD_MAKE_KILLED,     /* as where memory is short */
	OPD_MAKE_HELPER_ENDED,
	OPD_MAKE_TIMED_OUT,  /* it had its CPU time */
	OPD_MAKE_NO_ANSWER,  /* it got no CPU, or a file system does not answer */
	OPD_MAKE_NOT_STARTED,
};

struct opd_maker {
	struct op_nursery *nursery;
	struct opd_lookers *lookers;
	struct op_helper *helper; /* NULL: none runs */
	bool is_making;
	int table_fd;             /* of the table that is made */
	bool has_wanted;
	struct opd_pass_wanted wanted; /* the image; its path is not kept */
	uint64_t begin_ns, wait_ns;
	bool is_awaited;    /* tables are never made at idle priority */
	uint64_t credit_ns; /* of CPU time at normal priority, at credit_at_ns */
	uint64_t credit_at_ns;
	uint64_t normal_ns; /* of the credit, for the table that is made */
	uint64_t owner; /* of the image: the user who is to blame when it hangs */
	uint64_t nr_ended; /* helpers that ended by themselves, or were killed */
	struct {
		struct op_helper *helper;
		uint64_t owner;
	} hanging[OPD_MAKER_HANGING_MAX];
	size_t nr_hanging;
	int epoll_fd; /* has the socket of the helper */
};

/*
 * The nursery and the lookers stay the caller's. wait_ns: for one table; 0: OPD_MAKER_WAIT_NS.
 * is_awaited: a program waits for the tables, and has nothing else to do. 0 or -errno.
 */
int opd_maker_init(struct opd_maker *maker, struct op_nursery *nursery, struct opd_lookers *lookers,
		   uint64_t wait_ns, bool is_awaited) OP_NONNULL_ARGS(1) OP_MUST_CHECK;
void opd_maker_free(struct opd_maker *maker) OP_NONNULL;

/* False: all helpers that may be there hang. */
bool opd_maker_can(struct opd_maker *maker) OP_NONNULL;

/*
 * Begins with a file of a process: makes its table, or only the header of it. 0; -EBUSY: a helper
 * hangs on another file of the same user; -EAGAIN: the helper is not there yet, nothing has begun;
 * an -errno of opd_pass_file, or of starting the helper.
 */
int opd_maker_start(struct opd_maker *maker, const struct opd_pass_wanted *wanted, bool only_header) OP_NONNULL OP_MUST_CHECK;

/* The same with an image in memory, open as image_fd, which stays the caller's. */
int opd_maker_start_memory(struct opd_maker *maker, int image_fd) OP_NONNULL OP_MUST_CHECK;

/*
 * The table that was made: *ret_fd is a sealed memfd, which the caller closes; -1 unless the result
 * is OPD_MAKE_MADE. Then it is the table of the wanted file, and *ret_image is the file that was
 * read. 0; -EAGAIN: it is not ready.
 */
int opd_maker_take(struct opd_maker *maker, enum opd_make_result *ret_result, int *ret_fd,
		   struct opd_file_identity *ret_image) OP_NONNULL OP_MUST_CHECK;

/* Ends the helper that has no work. */
void opd_maker_rest(struct opd_maker *maker) OP_NONNULL;

#endif
