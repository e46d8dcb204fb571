/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * All sample files of the current session together: which of them changed, which are gone, and
 * closing them. Every function flushes the waiting samples first where it must. Sync thread only.
 */
#ifndef OPD_SESSION_FILES_H
#define OPD_SESSION_FILES_H

#include "libop/base/compiler.h"
#include "pipeline/count/state.h"

struct op_session_files;

/*
 * The paths, below the session directory, of files that changed since the last call. From now on
 * these files count as written. When forgot_changed is set, other files have changed, too. The
 * times of the last samples go to the dcookie table. 0, and strings and an array that the caller
 * frees; or -ENOMEM.
 */
int opd_count_take_changed(struct opd_count *count, char ***ret_paths, size_t *ret_nr_paths) OP_NONNULL OP_MUST_CHECK;

/* Marks every file as changed, after a dump could not write the files that it took. */
void opd_count_mark_changed(struct opd_count *count) OP_NONNULL;

/*
 * Replaces every sample file and every object of JIT code of the session by a new file with the
 * same contents. The next dump then writes all data again, also what the kernel took for written
 * and dropped. A damaged object stays as it is; missing samples are booked as lost. Takes as long
 * as making so many files. 0 or -errno.
 */
int opd_count_renew(struct opd_count *count) OP_NONNULL OP_MUST_CHECK;

/*
 * Calls `visit` for every file that was opened, with its image and its path below the session
 * directory. For a callgraph file it calls `visit` for each of its two images that is anonymous,
 * with the path that a sample file of that image would have.
 */
void opd_count_visit_files(struct opd_count *count, void (*visit)(uint64_t image_cookie, const char *path, void *arg),
			   void *arg) OP_NONNULL_ARGS(1, 2);

/* Drops the pages of files that had no sample in the last second. The files stay open. */
void opd_count_drop_idle_pages(struct opd_count *count) OP_NONNULL;

/* Closes every file but remembers it. The next sample opens it again. */
void opd_count_release_files(struct opd_count *count) OP_NONNULL;

/*
 * Checks that every known file is still at its path. Samples in a file that was removed or replaced
 * become lost_io_error, and the log names the file. True when there was such a file, or when files
 * that opd does not know are missing (opd_file_limit_misses). opd_count_take_changed still
 * returns a changed file that was removed.
 */
bool opd_count_check_files(struct opd_count *count, bool thorough) OP_NONNULL;

/* As opd_count_check_files; then closes all files, forgets the missing ones, and counts again. */
bool opd_count_forget_missing(struct opd_count *count) OP_NONNULL;

/*
 * The same result as op_session_files_look without a walk, for a session whose files were all made
 * by this opd. 0; -ESTALE: some files were forgotten, so the walk is needed; another -errno.
 */
int opd_count_note_files(struct opd_count *count, struct op_session_files *ret_files) OP_NONNULL OP_MUST_CHECK;

/* The session ends: closes all sinks. The next sample and the next stack begin another one. */
void opd_count_close_files(struct opd_count *count) OP_NONNULL;

/* The sample files as a sink: closes and forgets every one. */
void opd_files_close(void *host) OP_NONNULL;

#endif
