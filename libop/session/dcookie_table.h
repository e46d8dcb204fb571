/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The inside of the dcookie table, for dcookie.c, dcookie_name.c and dcookie_file.c alone. */
#ifndef OP_DCOOKIE_TABLE_H
#define OP_DCOOKIE_TABLE_H

#include "libop/session/dcookie.h"
#include "libop/base/htable.h"

/*
 * An identity and the row that it leads to. A row has at least one: the last of the list made it, those before are its aliases. The name stands
 * behind it.
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
	char *name, *host_path, *container; /* what the row points to */
	size_t nr_bytes;		    /* of all that is its */
	uint32_t mark;			    /* the round it was marked in */
	bool is_unwritten;		    /* stands in the list of those */
	bool was_seen;			    /* after it was not: op_dcookie_get_seen */
	uint64_t seen_mtime_ns;		    /* what it had then, for the row once its session is over */
};

struct op_dcookie_table {
	struct op_htable identities, rows, names;
	uint64_t seed; /* of hashes over what processes choose */
	uint64_t next;
	size_t nr_counted, nr_regions, max_counted, max_uncounted; /* nr_regions: of the counted ones */
	size_t nr_bytes, nr_counted_bytes; /* of rows, of the counted ones */
	size_t max_counted_bytes, max_uncounted_bytes;
	uint64_t overflow, nr_refused;
	uint32_t mark;
	uint64_t *unwritten;
	size_t nr_unwritten, unwritten_capacity;
};

/* A string of a row came, or went; NULL has no bytes. */
void op_dcookie_charge(struct op_dcookie_table *table, struct op_dcookie_entry *entry, const char *string) OP_NONNULL_ARGS(1, 2);
void op_dcookie_discharge(struct op_dcookie_table *table, struct op_dcookie_entry *entry, const char *string) OP_NONNULL_ARGS(1, 2);

/* True when there is no room for more bytes of counted rows, or of others. */
bool op_dcookie_is_full(const struct op_dcookie_table *table, bool counted) OP_NONNULL;

/* The entry of a cookie; NULL for none. */
struct op_dcookie_entry *op_dcookie_entry_of(const struct op_dcookie_table *table, uint64_t cookie) OP_NONNULL;

/* A row with a number of its own choice that is not in use, known by this identity. NULL without memory or when the identity is known. */
struct op_dcookie_entry *op_dcookie_add_entry(struct op_dcookie_table *table, const struct op_image_id *id, uint64_t cookie) OP_NONNULL OP_MUST_CHECK;

/* Forgets that an identity is an alias. False when it is none: unknown, or what made a row. */
bool op_dcookie_drop_alias(struct op_dcookie_table *table, const struct op_image_id *id) OP_NONNULL OP_MUST_CHECK;

/* Lets what is known of a file from a record alone lead to the row: the one of its inode that was seen last. 0 or -ENOMEM. */
int op_dcookie_alias_unseen(struct op_dcookie_table *table, uint64_t cookie) OP_NONNULL OP_MUST_CHECK;

/* Forgets a row and its identities. */
void op_dcookie_remove_entry(struct op_dcookie_table *table, struct op_dcookie_entry *entry) OP_NONNULL;

/* Puts a counted row on the list of what the file does not have as it is. 0 or -ENOMEM. */
int op_dcookie_note_unwritten(struct op_dcookie_table *table, struct op_dcookie_entry *entry) OP_NONNULL OP_MUST_CHECK;

/* Makes a row a counted one under a name that is taken over, also when it fails. 0 or -ENOMEM. */
int op_dcookie_enter_name(struct op_dcookie_table *table, struct op_dcookie_entry *entry, char *name) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;
void op_dcookie_leave_name(struct op_dcookie_table *table, struct op_dcookie_entry *entry) OP_NONNULL;

#endif
