/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The directory tmp/import.XXXXXX of the session directory, in which an import works. The import
 * holds a lock on it and removes it at the end. One without a lock belongs to a killed import: the
 * next import, a new daemon and opcheck --repair remove it. Any thread.
 */
#ifndef OP_SESSION_IMPORT_H
#define OP_SESSION_IMPORT_H

#include "libop/base/compiler.h"

#define OP_SESSION_IMPORT_SUFFIX_BYTES 6 /* of mkdtemp(3) */
#define OP_SESSION_IMPORT	       "import."

/*
 * Makes one below session_dir, mode 0700. *ret_path is its path, freed by the caller. Returns a
 * descriptor that holds the lock, or -errno; then *ret_path is the path that failed, or NULL.
 */
int op_session_import_begin(const char *session_dir, char **ret_path) OP_NONNULL OP_MUST_CHECK;

/* Removes those without a lock, as far as the caller may, and returns their number. */
uint64_t op_session_import_sweep(int session_fd);

#endif
