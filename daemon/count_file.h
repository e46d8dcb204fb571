/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A sample file as count sees it; between count.c, which counts, and count_out.c, which hands out and closes. Sync thread only. */
#ifndef OPD_COUNT_FILE_H
#define OPD_COUNT_FILE_H

#include "daemon/count.h"
#include "libop/odb.h"

struct opd_file {
	struct op_hlink link; /* it, the key and odb are looked at for each sample: one cache line */
	struct opd_file_key key;
	struct op_odb *odb; /* NULL: not open */
	bool changed;
	bool beyond;                    /* there is no room for this file: its samples go to that of a wider key */
	bool used;                      /* since it was last thought of to close it */
	bool was_let_go;                /* and not used since */
	struct opd_file *newer, *older; /* among those that are open, or closed */
	char *path;                     /* below the session directory; NULL until it was opened once */
	uint64_t last_ns;               /* of the last sample; 0: the rows have it */
	uint64_t total, inode;          /* of its counts, and its own, when it was closed last */
	int error;                      /* of the last attempt to open */
	uint64_t retry_ns;
};

static_assert(offsetof(struct opd_file, odb) < 64, "one cache line");

/* The event is what the memory view keeps; the key is that of a callgraph file. */
static inline bool opd_is_of_memory(const struct opd_count *count, uint32_t event)
{
	return count->events[event].role == OP_EVENT_MEMORY;
}

static inline bool opd_is_of_calls(const struct opd_file_key *key)
{
	return key->callee_cookie != OP_DCOOKIE_NONE;
}

/* The path below the session directory that a key has (count_name.c). 0, freed by the caller, or -ENOMEM. */
int opd_file_path(const struct opd_count *count, const struct opd_file_key *key, char **ret_path) OP_NONNULL OP_MUST_CHECK;

/* The header of a file that is new (count_name.c). */
void opd_file_header(const struct opd_count *count, const struct opd_file *file, struct op_odb_header *ret_header) OP_NONNULL;

/* Opens a file, or makes it; others are closed where there are too many. 0; -EMLINK: there is no room for it; another -errno, for a while without trying. */
int opd_file_open(struct opd_count *count, struct opd_file *file) OP_NONNULL OP_MUST_CHECK;

/* The path of the sample file that an image of this file has, or would have: for a callgraph file one of its two. 0, freed by the caller, or -ENOMEM. */
int opd_file_plain_path(const struct opd_count *count, const struct opd_file *file, uint64_t image_cookie, char **ret_path) OP_NONNULL OP_MUST_CHECK;

/* Looks at open files after one has lost what it had: such are opened anew, and what is gone of them is counted. */
void opd_files_mend(struct opd_count *count) OP_NONNULL;

/* What was counted in a file is not there any more: it is booked as lost, and the log says why. */
void opd_file_lose(struct opd_count *count, const struct opd_file *file, uint64_t nr_gone, const char *why) OP_NONNULL;

/* The files were counted (opd_file_limit_recount), and it is one of them. */
void opd_file_note_kept(struct opd_count *count, const struct opd_file *file) OP_NONNULL;

/* Closes it but keeps what is known of it; nothing when it is closed. */
void opd_file_close(struct opd_count *count, struct opd_file *file) OP_NONNULL;

/* Closes and frees it; it is not in count.files any more. */
void opd_file_free(struct opd_count *count, struct opd_file *file) OP_NONNULL;

/* Tells the rows of the table when the last sample was. */
void opd_file_note_seen(struct opd_count *count, struct opd_file *file) OP_NONNULL;

#endif
