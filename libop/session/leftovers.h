/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a killed daemon, a killed import or a power cut leaves in a session directory, and damaged
 * files. Any thread.
 */
#ifndef OP_SESSION_LEFTOVERS_H
#define OP_SESSION_LEFTOVERS_H

#include "libop/base/compiler.h"

/*
 * An import works in tmp/import.XXXXXX. It holds a lock on that directory and removes it at the
 * end. One without a lock belongs to a killed import: the next import, a new daemon and opcheck
 * --repair remove it.
 */
#define OP_SESSION_IMPORT_SUFFIX_BYTES 6 /* of mkdtemp(3) */
#define OP_SESSION_IMPORT	       "import."
#define OP_SESSION_IMPORT_BYTES	       (sizeof(OP_SESSION_IMPORT) + OP_SESSION_IMPORT_SUFFIX_BYTES)

/*
 * Makes one, mode 0700. `name` is its name in tmp/. Returns a descriptor of it that holds the lock,
 * or -errno.
 */
int op_session_import_begin(int session_fd, char name[OP_SESSION_IMPORT_BYTES]) OP_NONNULL OP_MUST_CHECK;

/* Removes those without a lock, as far as the caller may, and returns their number. */
uint64_t op_session_import_sweep(int session_fd);

/*
 * Finishes the replacements of files that a stop interrupted, in all sessions (op_odb_recover).
 * Call it with the lock of the directory, before any change of sample files: a link in tmp/ names a
 * file by its inode, and is invalid when another file is at its path. *ret_nr_put_back: old files
 * that were restored. 0 or -errno.
 */
int op_session_recover_pending(int session_fd, uint64_t *ret_nr_put_back) OP_NONNULL OP_MUST_CHECK;

/*
 * Checks that a JIT object (*.jo beside sample files, doc/format.md) is whole: after a power cut
 * its name may have no contents. Its seal proves it, or, when another writer made it without a
 * seal, all sections of a 64-bit ELF file. 0; -EBADMSG: it is not whole, or no regular file;
 * another -errno from opening and reading.
 */
int op_jit_object_check(int dir_fd, const char *path) OP_NONNULL OP_MUST_CHECK;

#define OP_DAMAGED_NAME_BYTES 64

/*
 * Moves `path` below session_fd into damaged/, where the user can examine it; the new name is
 * returned in `aside`. 0 or -errno. One thread at a time.
 */
int op_damaged_put_aside(int session_fd, const char *path, char aside[OP_DAMAGED_NAME_BYTES]) OP_NONNULL OP_MUST_CHECK;

#endif
