/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One sample file: finding, opening, closing, forgetting. Sync thread only. */
#ifndef OPD_SAMPLE_FILE_H
#define OPD_SAMPLE_FILE_H

#include "libop/base/compiler.h"
#include "pipeline/count/state.h"

/* The known file of a key; NULL: there is none. */
struct opd_file *opd_file_find(const struct opd_count *count, const struct opd_file_key *key) OP_NONNULL OP_MUST_CHECK;

/* Adds a closed file, and forgets the oldest ones beyond max_closed. NULL without memory. */
struct opd_file *opd_file_add(struct opd_count *count, const struct opd_file_key *key) OP_NONNULL OP_MUST_CHECK;

/*
 * Opens a file, or makes it, and closes others above max_open. 0; -EMLINK: the limits of the
 * session refuse it; another -errno, which the next calls return for 100 ms without another
 * attempt.
 */
int opd_file_open(struct opd_count *count, struct opd_file *file) OP_NONNULL OP_MUST_CHECK;

/* Closes a file but remembers it. Nothing when it is closed. */
void opd_file_close(struct opd_count *count, struct opd_file *file) OP_NONNULL;

/* Closes and forgets a file. Names do not change, so the next sample finds it again. */
void opd_file_forget(struct opd_count *count, struct opd_file *file) OP_NONNULL;

/* Closes and frees a file that is not in count.files any more. */
void opd_file_free(struct opd_count *count, struct opd_file *file) OP_NONNULL;

/* Reopens files whose mapping broke (op_odb_is_broken), and books the samples that are gone. */
void opd_files_reopen_broken(struct opd_count *count) OP_NONNULL;

/* Books nr_gone samples that were counted in a file as lost, and logs why. */
void opd_file_book_lost(struct opd_count *count, const struct opd_file *file, uint64_t nr_gone, const char *why) OP_NONNULL;

/* Gives replaced files, or NULL, to the hook of the program; without one they are forgotten. */
void opd_count_sync_later(const struct opd_count *count, struct op_odb_pending *pending) OP_NONNULL_ARGS(1);

/* The kind of file that a key is for, for the limits of a session. */
enum opd_file_kind opd_file_kind_of(const struct opd_count *count, const struct opd_file_key *key) OP_NONNULL OP_MUST_CHECK;

/* Brings the time of the last sample into the rows of the dcookie table. */
void opd_file_note_seen(struct opd_count *count, struct opd_file *file) OP_NONNULL;

#endif
