/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The session directory of a tool: by default that of the daemon. */
#ifndef OPR_SESSION_DIR_H
#define OPR_SESSION_DIR_H

#include "tools/common/archive.h"
#include "tools/common/words.h"

/*
 * Chooses in this order: `option` (--session-dir), if not NULL; oprofile_data in the working
 * directory; the SESSION_DIR of `opcontrol --setup`; the SessionDir of opd.conf(5). Without the
 * option, a line on stderr names the choice. Freed by the caller. 0 or -errno.
 */
int opr_session_dir_choose(const char *option, char **ret_dir) OP_NONNULL_ARGS(2) OP_MUST_CHECK;

/*
 * The directory of row tables: that of the first one of `archives`, or without an archive TableDir=
 * of opd.conf(5). Freed by the caller. 0; -ENOENT: there is none; another -errno.
 */
int opr_table_dir(const struct opr_archive *archives, char **ret_dir) OP_NONNULL_ARGS(2) OP_MUST_CHECK;

/* ControlSocket= of opd.conf(5). Freed by the caller. 0 or -errno. */
int opr_control_socket(char **ret_socket) OP_NONNULL OP_MUST_CHECK;

/* MaxSampleFiles=, SessionKeepFree= and StackMaxUse= of opd.conf(5); 0: no limit. 0 or -errno. */
int opr_session_limits(uint64_t *ret_max_files, uint64_t *ret_keep_free_bytes, uint64_t *ret_max_stack_bytes) OP_NONNULL
	OP_MUST_CHECK;

/*
 * Reports that a directory of sessions, or what is below it, cannot be opened. Where the caller has
 * no right to it, says which group has, and how to become a member. Returns err.
 */
int opr_fail_open(int err, const char *path) OP_NONNULL;

/* Adds the names of the sessions below SESSION-DIR/samples, sorted. 0 or -errno. */
int opr_session_names(const char *session_dir, struct opr_words *names) OP_NONNULL OP_MUST_CHECK;

#endif
