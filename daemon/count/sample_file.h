/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A sample file as count sees it; between count.c, which counts, sample_file.c, which opens and closes, and out.c, which hands out. Sync thread only. */
#ifndef OPD_COUNT_FILE_H
#define OPD_COUNT_FILE_H

#include "daemon/count/count.h"
#include "libop/odb/odb.h"

struct opd_file {
	struct opd_file_key key; /* up to `link` is what each sample needs: one cache line */
	struct op_odb *odb;      /* NULL: not open */
	uint64_t last_ns;        /* of the last sample; 0: the rows have it */
	bool is_plain;           /* open, and a sample of its key is that and nothing else: count.c's put_plain is for these */
	bool changed;
	bool used;       /* since it was last thought of to close it */
	bool was_let_go; /* and not used since */
	struct op_hlink link;
	struct opd_file *newer, *older; /* among those that are open, or closed */
	char *path;                     /* below the session directory; NULL until it was opened once */
	bool beyond;                    /* there is no room for this file: its samples go to that of a wider key */
	uint32_t nr_memory_nodes;       /* that opd_count.nr_memory_nodes has of it */
	uint64_t total, inode;          /* of its counts, and its own, when it was closed last */
	int error;                      /* of the last attempt to open */
	uint64_t retry_ns;
};

static_assert(offsetof(struct opd_file, link) == OP_CACHE_LINE_BYTES, "one cache line");

/* The event is what the memory view keeps; the key is that of a callgraph file. */
static inline bool opd_is_of_memory(const struct opd_count *count, uint32_t event)
{
	return count->events[event].role == OP_EVENT_MEMORY;
}

static inline bool opd_is_of_calls(const struct opd_file_key *key)
{
	return key->callee_cookie != OP_DCOOKIE_NONE;
}

/* It has samples of images that there was no room for. */
static inline bool opd_is_too_many(const struct opd_count *count, const struct opd_file_key *key)
{
	uint64_t overflow = op_dcookie_overflow(count->table);

	return overflow != OP_DCOOKIE_NONE && (key->image_cookie == overflow || key->app_cookie == overflow);
}

/* Field by field: a key that was put together just now is in registers, and need not be. */
static inline bool opd_same_file_key(const struct opd_file_key *a, const struct opd_file_key *b)
{
	return !((a->app_cookie ^ b->app_cookie) | (a->image_cookie ^ b->image_cookie) | (a->callee_cookie ^ b->callee_cookie) |
		 (uint32_t)(a->tgid ^ b->tgid) | (uint32_t)(a->tid ^ b->tid) | (uint32_t)(a->cpu ^ b->cpu) |
		 (uint32_t)(a->event ^ b->event) | (uint32_t)(a->cgroup_slot ^ b->cgroup_slot));
}

/* Where opd_count.recent has the file of a key, when that was the last one there. */
static inline uint32_t opd_recent_index(const struct opd_file_key *key)
{
	uint32_t images = (uint32_t)(key->image_cookie + 7 * key->callee_cookie) * 0x9e3779b1u;
	uint32_t class = (uint32_t)key->tid ^ (uint32_t)key->event << 16 ^ (uint32_t)key->cpu << 24 ^ (uint32_t)key->cgroup_slot << 8;
	uint32_t mix = images ^ (uint32_t)key->app_cookie * 0x85ebca6bu ^ class * 0xc2b2ae35u;

	return mix / (UINT32_MAX / OPD_RECENT_SLOTS + 1);
}

static inline struct opd_file **opd_recent_of(struct opd_count *count, const struct opd_file_key *key)
{
	return &count->recent[opd_recent_index(key)];
}

/* The path below the session directory that a key has (file_name.c). 0, freed by the caller, or -ENOMEM. */
int opd_file_path(const struct opd_count *count, const struct opd_file_key *key, char **ret_path) OP_NONNULL OP_MUST_CHECK;

/* The header of a file that is new (file_name.c). */
void opd_file_header(const struct opd_count *count, const struct opd_file *file, struct op_odb_header *ret_header) OP_NONNULL;

/* Opens a file, or makes it; others are closed where there are too many. 0; -EMLINK: there is no room for it; another -errno, for a while without trying. */
int opd_file_open(struct opd_count *count, struct opd_file *file) OP_NONNULL OP_MUST_CHECK;

/* The path of the sample file that an image of this file has, or would have: for a callgraph file one of its two. 0, freed by the caller, or -ENOMEM. */
int opd_file_plain_path(const struct opd_count *count, const struct opd_file *file, uint64_t image_cookie, char **ret_path) OP_NONNULL OP_MUST_CHECK;

/* Looks at open files after one has lost what it had: such are opened anew, and what is gone of them is counted. */
void opd_files_mend(struct opd_count *count) OP_NONNULL;

/* What was counted in a file is not there any more: it is booked as lost, and the log says why. */
void opd_file_lose(struct opd_count *count, const struct opd_file *file, uint64_t nr_gone, const char *why) OP_NONNULL;

/* What kind of file the key is one of, for the limits of a session. */
enum opd_file_kind opd_file_kind_of(const struct opd_count *count, const struct opd_file_key *key) OP_NONNULL OP_MUST_CHECK;

/* The file of a key; NULL: none is known. */
struct opd_file *opd_file_find(const struct opd_count *count, const struct opd_file_key *key) OP_NONNULL OP_MUST_CHECK;

/* Another file, which is closed; what was known of others may be forgotten. NULL without memory. */
struct opd_file *opd_file_add(struct opd_count *count, const struct opd_file_key *key) OP_NONNULL OP_MUST_CHECK;

/* Closes and forgets it. Names do not change, so it is found again. */
void opd_file_forget(struct opd_count *count, struct opd_file *file) OP_NONNULL;

/* Closes it but keeps what is known of it; nothing when it is closed. */
void opd_file_close(struct opd_count *count, struct opd_file *file) OP_NONNULL;

/* Closes and frees it; it is not in count.files any more. */
void opd_file_free(struct opd_count *count, struct opd_file *file) OP_NONNULL;

/* Tells the rows of the table when the last sample was. */
void opd_file_note_seen(struct opd_count *count, struct opd_file *file) OP_NONNULL;

#endif
