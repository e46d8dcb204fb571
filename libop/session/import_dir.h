/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where an import works: a directory tmp/import.XXXXXX of the session directory, which it locks as long as it lives and removes in the end. One that nobody has locked was left by an import that
 * was killed, and is removed by who comes next: an import, a daemon that starts, opcheck --repair. Any thread.
 */
#ifndef OP_SESSION_IMPORT_H
#define OP_SESSION_IMPORT_H

#include "libop/base/compiler.h"

#define OP_SESSION_IMPORT_SUFFIX_BYTES 6 /* as mkdtemp(3) has them */
#define OP_SESSION_IMPORT	       "import."

/*
 * Makes one below session_dir, mode 0700. *ret_path is where it is, freed by the caller. A descriptor that holds the lock; -errno, and then *ret_path says what could not be
 * made, or is NULL.
 */
int op_session_import_begin(const char *session_dir, char **ret_path) OP_NONNULL OP_MUST_CHECK;

/* Removes those that nobody has locked and that the caller may remove. Returns how many. */
uint64_t op_session_import_sweep(int session_fd);

#endif
