/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The inside of the dcookie table, for the files dcookie*.c only. */
#ifndef OP_DCOOKIE_TABLE_H
#define OP_DCOOKIE_TABLE_H

#include "libop/base/htable.h"
#include "libop/session/dcookie.h"

/*
 * An identity of a row. The last one in the list of a row made it; the others are aliases. The name
 * stands behind the struct.
 */
struct op_dcookie_identity {
	struct op_hlink link;
	struct op_image_id id;
	struct op_dcookie_entry *entry;
	struct op_dcookie_identity *next; /* of the same row */
};

/* A row with what the table knows of it. */
struct op_dcookie_entry {
	struct op_dcookie_row row;
	struct op_hlink by_cookie;
	struct op_hlink by_name; /* when it is counted */
	struct op_dcookie_identity *identities;
	char *name, *host_path, *container, *file_path; /* the strings of the row */
	size_t nr_bytes;		    /* with its strings and identities */
	uint32_t mark;			    /* the last round in which it was marked */
	bool is_unwritten;		    /* is in the list of unwritten rows */
	bool was_seen;			    /* a file was looked at later: op_dcookie_get_seen */
	uint64_t seen_mtime_ns;		    /* of that file, for the next session */
};

struct op_dcookie_table {
	struct op_htable identities, rows, names;
	uint64_t seed; /* of hashes over names that processes choose */
	uint64_t next;
	struct op_dcookie_row *of_no_row; /* for cookies that are in no row */
	size_t nr_counted, nr_regions, max_counted, max_uncounted; /* nr_regions: counted ones */
	size_t nr_programs, max_programs; /* counted ones */
	/* of all rows, of counted ones */
	size_t nr_bytes, nr_counted_bytes;
	size_t max_counted_bytes, max_uncounted_bytes;
	uint64_t overflow, nr_refused;
	uint32_t mark;
	uint64_t *unwritten; /* cookies */
	size_t nr_unwritten, unwritten_capacity;
};

/* Whether there is no room for more bytes of counted rows, or of others. */
bool op_dcookie_is_full(const struct op_dcookie_table *table, bool counted) OP_NONNULL;

/* The entry of a cookie, or NULL. */
struct op_dcookie_entry *op_dcookie_entry_of(const struct op_dcookie_table *table, uint64_t cookie) OP_NONNULL;

/* A new row with a given unused number. NULL without memory, or when the identity is known. */
struct op_dcookie_entry *op_dcookie_add_entry(struct op_dcookie_table *table, const struct op_image_id *id, uint64_t cookie)
	OP_NONNULL OP_MUST_CHECK;

/* Forgets an alias. False: the identity is unknown, or made a row. */
bool op_dcookie_drop_alias(struct op_dcookie_table *table, const struct op_image_id *id) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds the alias of a file that cannot be looked at: device, inode and generation. Takes it from
 * another row. 0 or -ENOMEM.
 */
int op_dcookie_alias_unseen(struct op_dcookie_table *table, uint64_t cookie) OP_NONNULL OP_MUST_CHECK;

/* Forgets a row and its identities. */
void op_dcookie_remove_entry(struct op_dcookie_table *table, struct op_dcookie_entry *entry) OP_NONNULL;

/* Puts a counted row on the list of unwritten rows. 0 or -ENOMEM. */
int op_dcookie_note_unwritten(struct op_dcookie_table *table, struct op_dcookie_entry *entry) OP_NONNULL OP_MUST_CHECK;

/* Makes a row counted. Takes `name` over, also when it fails; NULL is -ENOMEM. 0 or -ENOMEM. */
int op_dcookie_enter_name(struct op_dcookie_table *table, struct op_dcookie_entry *entry, char *name)
	OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/* Makes a row uncounted. */
void op_dcookie_leave_name(struct op_dcookie_table *table, struct op_dcookie_entry *entry) OP_NONNULL;

#endif
