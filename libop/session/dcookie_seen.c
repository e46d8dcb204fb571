/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that could not be looked at, and that are found later. */
#include <errno.h>

#include "libop/session/dcookie_table.h"

/* The identity of a file by a record alone, without a look at the file. */
static struct op_image_id unseen_of(const struct op_image_id *id)
{
	struct op_image_id unseen = *id;

	unseen.build_id_bytes = 0;
	memset(unseen.build_id, 0, sizeof(unseen.build_id));
	unseen.mtime_ns = unseen.bytes = 0;
	return unseen;
}

/* Without a generation, the inode may have belonged to another file. */
static bool can_be_known_unseen(const struct op_image_id *id)
{
	return id->name.kind == OP_IMAGE_FILE && !id->is_kernel && !id->is_pseudo && id->inode && id->inode_generation;
}

static int alias_unseen(struct op_dcookie_table *table, const struct op_image_id *id, uint64_t cookie)
{
	struct op_image_id unseen = unseen_of(id);
	int err;

	if (!can_be_known_unseen(id))
		return 0;
	err = op_dcookie_alias(table, &unseen, cookie);
	if (err == -EEXIST)
		err = op_dcookie_drop_alias(table, &unseen) ? op_dcookie_alias(table, &unseen, cookie) : 0;
	return err;
}

int op_dcookie_alias_unseen(struct op_dcookie_table *table, uint64_t cookie)
{
	return alias_unseen(table, &op_dcookie_row(table, cookie)->id, cookie);
}

int op_dcookie_alias_seen(struct op_dcookie_table *table, const struct op_image_id *seen, uint64_t cookie)
{
	int err = op_dcookie_alias(table, seen, cookie);

	if (err)
		return err == -EEXIST ? 0 : err;
	return op_dcookie_row(table, cookie)->id.is_pseudo ? 0 : alias_unseen(table, seen, cookie);
}

/* A row with samples from before a restart may know the size only. */
static bool waits_to_be_seen(const struct op_dcookie_entry *entry, const struct op_image_id *seen)
{
	const struct op_image_id *id = &entry->row.id;

	return !entry->was_seen && !id->is_pseudo && !id->is_kernel && !id->mtime_ns && (!id->bytes || id->bytes == seen->bytes);
}

/* 1: the row becomes that of the file; 0: it does not; or -ENOMEM. */
static int take_over(struct op_dcookie_table *table, uint64_t cookie, const struct op_image_id *seen)
{
	struct op_dcookie_entry *entry = op_dcookie_entry_of(table, cookie);
	struct op_image_id *id;
	int err;

	if (!entry || !waits_to_be_seen(entry, seen))
		return 0;
	err = op_dcookie_alias(table, seen, cookie);
	if (!err && entry->row.name)
		err = op_dcookie_note_unwritten(table, entry);
	if (err)
		return err == -EEXIST ? 0 : err;
	id = &entry->row.id;
	id->device = seen->device;
	id->inode = seen->inode;
	id->inode_generation = seen->inode_generation;
	id->bytes = seen->bytes;
	if (!entry->row.name)
		id->mtime_ns = seen->mtime_ns;
	entry->seen_mtime_ns = seen->mtime_ns;
	entry->was_seen = true;
	return 1;
}

uint64_t op_dcookie_find_seen(const struct op_dcookie_table *table, const struct op_image_id *seen)
{
	struct op_image_id unseen = unseen_of(seen);
	uint64_t cookie = op_dcookie_find(table, seen);

	if (cookie != OP_DCOOKIE_NONE || !can_be_known_unseen(seen))
		return cookie;
	cookie = op_dcookie_find(table, &unseen);
	return cookie != OP_DCOOKIE_NONE && waits_to_be_seen(op_dcookie_entry_of(table, cookie), seen) ? cookie : OP_DCOOKIE_NONE;
}

uint64_t op_dcookie_get_seen(struct op_dcookie_table *table, const struct op_image_id *seen)
{
	struct op_image_id unseen = unseen_of(seen);
	uint64_t cookie = op_dcookie_find(table, seen);
	int err;

	if (cookie != OP_DCOOKIE_NONE)
		return cookie;
	if (!can_be_known_unseen(seen))
		return op_dcookie_get(table, seen);
	cookie = op_dcookie_find(table, &unseen);
	err = cookie != OP_DCOOKIE_NONE ? take_over(table, cookie, seen) : 0;
	if (err)
		return err < 0 ? OP_DCOOKIE_NONE : cookie;
	cookie = op_dcookie_get(table, seen);
	return cookie != OP_DCOOKIE_NONE && op_dcookie_alias_unseen(table, cookie) < 0 ? OP_DCOOKIE_NONE : cookie;
}
