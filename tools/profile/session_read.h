/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is read of one session whose directory is open: ledger, table of images, list of sample
 * files.
 */
#ifndef OPR_SESSION_READ_H
#define OPR_SESSION_READ_H

#include "tools/profile/profile.h"

#define OPR_REPAIR_HINT ": opcheck --repair repairs what it can"

/*
 * Reads the table of images. A table that cannot be read is a warning, none is not. 0 or -ENOMEM.
 */
int opr_session_read_images(struct opr_session *session) OP_NONNULL OP_MUST_CHECK;

/* Reads the ledger, after the images. A ledger that cannot be read is a warning. 0 or -ENOMEM. */
int opr_session_read_ledger(struct opr_session *session) OP_NONNULL OP_MUST_CHECK;

/*
 * After the ledger: if the session is only in part in [since_ns, until_ns), reads that window of it
 * and makes the ledger that of the window. Without a timeline the session is used as a whole, with
 * a warning. until_ns 0: no span was chosen. 0, or -ENOMEM.
 */
int opr_session_read_window(struct opr_session *session, uint64_t since_ns, uint64_t until_ns) OP_NONNULL OP_MUST_CHECK;

/* Whether a daemon runs in the session directory: it may write this session. */
bool opr_session_has_daemon(const struct opr_session *session) OP_NONNULL;

/* Adds the path of a sample file from the directory of the whole session on. */
void opr_session_path_below(const struct opr_profile *profile, size_t index, const char *path, struct op_text *below) OP_NONNULL;

/*
 * Lists the sample files. The paths of other files go to bad_paths. 0 or -errno; -ESTALE: the
 * session was removed.
 */
int opr_session_read_list(struct opr_session *session) OP_NONNULL OP_MUST_CHECK;

/*
 * Warns of a path that is no sample file, and adds it to the bad_paths of `session`, a struct
 * opr_session.
 */
void opr_session_leave_out(const char *path, int why, void *session) OP_NONNULL;

/*
 * Warns of a session that was removed while it was read, by opd or by opcontrol --reset. `path`:
 * the file that is missing, or NULL. -ESTALE.
 */
int opr_session_warn_removed(const struct opr_session *session, const char *path) OP_NONNULL_ARGS(1);

#endif
