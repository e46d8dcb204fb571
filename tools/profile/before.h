/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Counts as an earlier reading of the same files found them, for a tool that shows what is new
 * (optop). Counts are subtracted before anything is named, so only images with new samples need
 * their symbols. A file is known by its directory and path: a session that begins has no earlier
 * counts. A writer maps its files, so their times do not tell whether they changed.
 *
 *   call                                   several threads at once
 *   opr_before_subtract, opr_before_keep             x
 *   everything else
 */
#ifndef OPR_BEFORE_H
#define OPR_BEFORE_H

#include <pthread.h>

#include "libop/base/htable.h"

struct opr_count {
	uint64_t key, count;
};

/* opr_before_init at first; opr_before_free in any case. */
struct opr_before {
	struct op_htable files;
	pthread_mutex_t lock;
	bool is_set; /* else a reading finds no new samples: there is nothing to compare with */
};

void opr_before_init(struct opr_before *earlier) OP_NONNULL;

/*
 * Subtracts the earlier counts of the file at `path` below dir_fd, in place. Counts are in the
 * order of the file, which only appends; in another order they are found by key. The counts as they
 * were become those of the next reading, at opr_before_end. 0 or -ENOMEM.
 */
int opr_before_subtract(struct opr_before *earlier, int dir_fd, const char *path, struct opr_count *counts, size_t nr_counts)
	OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;

/*
 * Notes that the file is there, but cannot be read now: what is known of it stays. earlier: NULL is
 * allowed. 0 or -ENOMEM.
 */
int opr_before_keep(struct opr_before *earlier, int dir_fd, const char *path) OP_NONNULL_ARGS(3) OP_MUST_CHECK;

/* Ends a reading. moves: its counts replace the earlier ones; else those stay. */
void opr_before_end(struct opr_before *earlier, bool moves) OP_NONNULL;

void opr_before_free(struct opr_before *earlier) OP_NONNULL;

#endif
