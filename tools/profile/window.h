/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A span of a session, from its timeline (libop/timeline/read.h), in the shapes that reports read
 * from a whole session: samples by sample file, a tree of stacks, and a ledger. Reports name and
 * select them by the same rules. A span is made of whole blocks, which are minutes as a rule. So it
 * may be a little longer than what was asked for.
 *
 * Samples and callers are at the start of their function, or at a place in it. Samples that the
 * writer had no room to keep apart are at OPR_WINDOW_REST of their image or application.
 *
 * One thread makes a window, then any thread may read it.
 */
#ifndef OPR_WINDOW_H
#define OPR_WINDOW_H

#include "libop/odb/read.h"
#include "libop/session/dcookie.h"
#include "libop/session/ledger_file.h"
#include "libop/stacks/read.h"
#include "libop/timeline/minute.h"

/* A position where no code is: user addresses end below 2^56, the kernel's begin far above. */
#define OPR_WINDOW_REST (UINT64_C(1) << 62)

/* Also when the begin of a region or of a section was added to it. */
static inline bool opr_window_is_rest(uint64_t position)
{
	return position >> 57 == OPR_WINDOW_REST >> 57;
}

struct opr_window;

struct opr_window_span {
	uint64_t begin_ns, end_ns; /* since 1970; of all blocks */
	uint64_t covered_ns;       /* without the gaps between them */
	uint64_t grain_ns;         /* the longest block */
	size_t nr_blocks;
	uint64_t nr_damaged;       /* places in the file that cannot be read */
	uint64_t nr_nowhere;       /* samples of no application, for lack of room */
};

/*
 * Reads the blocks of [since_ns, until_ns) of the session whose directory is open. `images`: its
 * table, which must outlive the window. 0 and a window for opr_window_free, which has no blocks if
 * nothing is kept of that time; -ENOENT: the session has no timeline; -EBADMSG: it is damaged as a
 * whole, or of a later version; -ENOMEM; another -errno.
 */
int opr_window_read(int dir_fd, const struct op_dcookie_table *images, uint64_t since_ns, uint64_t until_ns,
		    struct opr_window **ret_window) OP_NONNULL OP_MUST_CHECK;

const struct opr_window_span *opr_window_span(const struct opr_window *window) OP_NONNULL;

/* Whether a sample file has samples in the window. `path`: below the session's directory. */
bool opr_window_has(const struct opr_window *window, const char *path) OP_NONNULL;

/*
 * Replaces the nodes of a file that was read by those of the window; the header stays. A key may
 * stand twice, as in files. 0 or -ENOMEM.
 */
int opr_window_samples(const struct opr_window *window, const char *path, struct op_odb_samples *samples) OP_NONNULL OP_MUST_CHECK;

/*
 * Makes a tree as op_stacks_read does, for op_stack_tree_free; of a window without stacks it has no
 * node but the root. 0 or -ENOMEM.
 */
int opr_window_stacks(const struct opr_window *window, struct op_stack_tree *ret_tree) OP_NONNULL OP_MUST_CHECK;

/* The same of a span that was read. */
int opr_minute_stacks(const struct op_minute *minute, struct op_stack_tree *ret_tree) OP_NONNULL OP_MUST_CHECK;

/* Makes the ledger of the session that of the window. */
void opr_window_set_ledger(const struct opr_window *window, struct op_session_ledger *ledger) OP_NONNULL;

/* NULL is allowed. */
void opr_window_free(struct opr_window *window);

#endif
