/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/dcookie.h"

#include <errno.h>

#include "libop/htable.h"

#define ROWS_PER_BLOCK 256

struct entry {
	struct op_hlink link;
	struct op_dcookie_row row;
};

struct op_dcookie_table {
	struct op_htable by_id;
	struct entry **rows; /* cookie - 1 is the index */
	size_t nr_rows, capacity;
};

struct op_dcookie_table *op_dcookie_table_new(void)
{
	return calloc(1, sizeof(struct op_dcookie_table));
}

void op_dcookie_table_free(struct op_dcookie_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->nr_rows; i++)
		free(table->rows[i]);
	free(table->rows);
	op_htable_free(&table->by_id);
	free(table);
}

static uint64_t hash_id(const struct op_image_id *id)
{
	uint64_t hash = op_hash_u64(id->name.kind);

	hash = op_hash_bytes(hash, id->name.name, strlen(id->name.name));
	hash = op_hash_bytes(hash, id->build_id, id->build_id_bytes);
	hash = op_hash_add(hash, id->device ^ id->inode << 20 ^ id->inode_generation << 40);
	if (id->name.kind == OP_IMAGE_ANON) {
		hash = op_hash_add(hash, (uint32_t)id->name.tgid);
		hash = op_hash_add(hash, id->name.start ^ id->name.end << 1);
	}
	return hash;
}

static bool same_name(const struct op_image_name *a, const struct op_image_name *b)
{
	if (a->kind != b->kind || strcmp(a->name, b->name) != 0)
		return false;
	return a->kind != OP_IMAGE_ANON || (a->tgid == b->tgid && a->start == b->start && a->end == b->end);
}

static bool same_id(const struct op_image_id *a, const struct op_image_id *b)
{
	return same_name(&a->name, &b->name) && a->build_id_bytes == b->build_id_bytes &&
	       !memcmp(a->build_id, b->build_id, a->build_id_bytes) && a->device == b->device && a->inode == b->inode &&
	       a->inode_generation == b->inode_generation && a->is_kernel == b->is_kernel;
}

static struct entry *find(const struct op_dcookie_table *table, const struct op_image_id *id, uint64_t hash)
{
	for (struct op_hlink *link = op_htable_first(&table->by_id, hash); link; link = op_htable_next(link)) {
		struct entry *entry = op_container_of(link, struct entry, link);

		if (same_id(&entry->row.id, id))
			return entry;
	}
	return NULL;
}

static bool make_room(struct op_dcookie_table *table)
{
	struct entry **rows;

	if (table->nr_rows < table->capacity)
		return true;
	rows = realloc(table->rows, (table->capacity + ROWS_PER_BLOCK) * sizeof(struct entry *));
	if (!rows)
		return false;
	table->rows = rows;
	table->capacity += ROWS_PER_BLOCK;
	return true;
}

static struct entry *add(struct op_dcookie_table *table, const struct op_image_id *id, uint64_t hash)
{
	size_t name_bytes = strlen(id->name.name) + 1;
	struct entry *entry;

	if (!make_room(table))
		return NULL;
	entry = calloc(1, sizeof(*entry) + name_bytes);
	if (!entry)
		return NULL;
	entry->row.id = *id;
	entry->row.id.name.name = memcpy(entry + 1, id->name.name, name_bytes);
	if (op_htable_insert(&table->by_id, &entry->link, hash) < 0) {
		free(entry);
		return NULL;
	}
	table->rows[table->nr_rows++] = entry;
	entry->row.cookie = table->nr_rows;
	return entry;
}

uint64_t op_dcookie_get(struct op_dcookie_table *table, const struct op_image_id *id, bool *ret_new)
{
	uint64_t hash = hash_id(id);
	struct entry *entry = find(table, id, hash);
	bool is_new = !entry;

	if (is_new)
		entry = add(table, id, hash);
	if (ret_new)
		*ret_new = is_new && entry;
	return entry ? entry->row.cookie : OP_DCOOKIE_NONE;
}

struct op_dcookie_row *op_dcookie_row(const struct op_dcookie_table *table, uint64_t cookie)
{
	assert(cookie != OP_DCOOKIE_NONE && cookie <= table->nr_rows);
	return &table->rows[cookie - 1]->row;
}

size_t op_dcookie_count(const struct op_dcookie_table *table)
{
	return table->nr_rows;
}
