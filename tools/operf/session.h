/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The session directory of operf, ./oprofile_data by default. */
#ifndef OPF_SESSION_H
#define OPF_SESSION_H

#include "libop/base/compiler.h"

#define OPF_SESSION_DIR "oprofile_data"

struct opf_session {
	const char *dir;  /* the caller's */
	int fd, lock_fd;  /* -1: not open */
	bool was_unclean; /* the last operf was killed */
};

/*
 * Opens the directory and locks it. Makes it if needed, and refuses one of another user. Repairs
 * what a killed operf left. Without `append`, samples of the last run become samples/previous, and
 * those of the run before are removed. 0 or -errno.
 */
int opf_session_open(struct opf_session *session, const char *dir, bool append) OP_NONNULL OP_MUST_CHECK;

/* Unlocks and closes. A session that is not `complete` is checked by the next operf. */
void opf_session_close(struct opf_session *session, bool complete) OP_NONNULL;

#endif
