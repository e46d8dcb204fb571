/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/dcookie.h"

#include <errno.h>

#include "libop/htable.h"

#define FIRST_ROWS 256

/* An identity and the row that it leads to; a row may have several. Its name stands behind it. */
struct identity {
	struct op_hlink link;
	struct op_image_id id;
	struct op_dcookie_row *row;
};

/* How often a name has been given: the next row of that name gets this number. */
struct name_count {
	struct op_hlink link;
	uint32_t nr_rows;
	char name[];
};

/* A row and the strings that it owns. */
struct owned_row {
	struct op_dcookie_row row;
	char *host_path, *container;
};

struct op_dcookie_table {
	struct op_htable identities;
	struct op_htable names;
	struct op_dcookie_row **rows; /* cookie - 1 is the index */
	size_t nr_rows, capacity;
};

struct op_dcookie_table *op_dcookie_table_new(void)
{
	return calloc(1, sizeof(struct op_dcookie_table));
}

static void free_identity(struct op_hlink *link, void *arg OP_UNUSED)
{
	free(op_container_of(link, struct identity, link));
}

static void free_name(struct op_hlink *link, void *arg OP_UNUSED)
{
	free(op_container_of(link, struct name_count, link));
}

static void free_row(struct op_dcookie_row *row)
{
	struct owned_row *owned = op_container_of(row, struct owned_row, row);

	free(owned->host_path);
	free(owned->container);
	free(owned);
}

void op_dcookie_table_free(struct op_dcookie_table *table)
{
	if (!table)
		return;
	op_htable_visit(&table->identities, free_identity, NULL);
	op_htable_free(&table->identities);
	op_htable_visit(&table->names, free_name, NULL);
	op_htable_free(&table->names);
	for (size_t i = 0; i < table->nr_rows; i++)
		free_row(table->rows[i]);
	free(table->rows);
	free(table);
}

static uint64_t hash_id(const struct op_image_id *id)
{
	uint64_t hash = op_hash_u64(id->name.kind);

	hash = op_hash_bytes(hash, id->name.name, strlen(id->name.name));
	hash = op_hash_bytes(hash, id->build_id, id->build_id_bytes);
	hash = op_hash_add(hash, id->device ^ id->inode << 20 ^ id->inode_generation << 40);
	hash = op_hash_add(hash, id->mtime_ns + id->bytes);
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
	       a->inode_generation == b->inode_generation &&
	       a->mtime_ns == b->mtime_ns && a->bytes == b->bytes && a->is_kernel == b->is_kernel;
}

static struct identity *find(const struct op_dcookie_table *table, const struct op_image_id *id, uint64_t hash)
{
	for (struct op_hlink *link = op_htable_first(&table->identities, hash); link; link = op_htable_next(link)) {
		struct identity *identity = op_container_of(link, struct identity, link);

		if (same_id(&identity->id, id))
			return identity;
	}
	return NULL;
}

static bool make_room(struct op_dcookie_table *table)
{
	size_t capacity = table->capacity ? table->capacity * 2 : FIRST_ROWS;
	struct op_dcookie_row **rows;

	if (table->nr_rows < table->capacity)
		return true;
	rows = realloc(table->rows, capacity * sizeof(*rows));
	if (!rows)
		return false;
	table->rows = rows;
	table->capacity = capacity;
	return true;
}

/* The number of rows that had this name before; UINT32_MAX without memory. Regions are told apart by their bounds. */
static uint32_t count_name(struct op_dcookie_table *table, const struct op_image_name *name)
{
	uint64_t hash = op_hash_bytes(name->kind, name->name, strlen(name->name));
	size_t bytes = strlen(name->name) + 1;
	struct name_count *count;

	if (name->kind == OP_IMAGE_ANON)
		return 0;
	for (struct op_hlink *link = op_htable_first(&table->names, hash); link; link = op_htable_next(link)) {
		count = op_container_of(link, struct name_count, link);
		if (!strcmp(count->name, name->name))
			return count->nr_rows++;
	}
	count = malloc(sizeof(*count) + bytes);
	if (!count)
		return UINT32_MAX;
	count->nr_rows = 1;
	memcpy(count->name, name->name, bytes);
	if (op_htable_insert(&table->names, &count->link, hash) < 0) {
		free(count);
		return UINT32_MAX;
	}
	return 0;
}

static struct identity *add_identity(struct op_dcookie_table *table, const struct op_image_id *id, uint64_t hash)
{
	size_t name_bytes = strlen(id->name.name) + 1;
	struct identity *identity = calloc(1, sizeof(*identity) + name_bytes);

	if (!identity)
		return NULL;
	identity->id = *id;
	identity->id.name.name = memcpy(identity + 1, id->name.name, name_bytes);
	if (op_htable_insert(&table->identities, &identity->link, hash) < 0) {
		free(identity);
		return NULL;
	}
	return identity;
}

static struct op_dcookie_row *add_row(struct op_dcookie_table *table, struct identity *identity)
{
	struct owned_row *owned = make_room(table) ? calloc(1, sizeof(*owned)) : NULL;
	struct op_dcookie_row *row;

	if (!owned)
		return NULL;
	row = &owned->row;
	row->id = identity->id;
	row->nr_before = count_name(table, &identity->id.name);
	if (row->nr_before == UINT32_MAX) {
		free(owned);
		return NULL;
	}
	table->rows[table->nr_rows++] = row;
	row->cookie = table->nr_rows;
	return row;
}

uint64_t op_dcookie_find(const struct op_dcookie_table *table, const struct op_image_id *id)
{
	const struct identity *identity = find(table, id, hash_id(id));

	return identity ? identity->row->cookie : OP_DCOOKIE_NONE;
}

uint64_t op_dcookie_get(struct op_dcookie_table *table, const struct op_image_id *id)
{
	uint64_t hash = hash_id(id);
	struct identity *identity = find(table, id, hash);

	if (identity)
		return identity->row->cookie;
	identity = add_identity(table, id, hash);
	if (!identity)
		return OP_DCOOKIE_NONE;
	identity->row = add_row(table, identity);
	if (!identity->row) {
		op_htable_remove(&table->identities, &identity->link);
		free(identity);
		return OP_DCOOKIE_NONE;
	}
	return identity->row->cookie;
}

int op_dcookie_alias(struct op_dcookie_table *table, const struct op_image_id *id, uint64_t cookie)
{
	uint64_t hash = hash_id(id);
	struct identity *identity = find(table, id, hash);

	if (identity)
		return identity->row->cookie == cookie ? 0 : -EEXIST;
	identity = add_identity(table, id, hash);
	if (!identity)
		return -ENOMEM;
	identity->row = op_dcookie_row(table, cookie);
	return 0;
}

struct op_dcookie_row *op_dcookie_row(const struct op_dcookie_table *table, uint64_t cookie)
{
	assert(cookie != OP_DCOOKIE_NONE && cookie <= table->nr_rows);
	return table->rows[cookie - 1];
}

size_t op_dcookie_count(const struct op_dcookie_table *table)
{
	return table->nr_rows;
}

static int replace_string(char **string, const char *with)
{
	char *copy = with ? strdup(with) : NULL;

	if (with && !copy)
		return -ENOMEM;
	free(*string);
	*string = copy;
	return 0;
}

int op_dcookie_set_place(struct op_dcookie_table *table, uint64_t cookie, const char *host_path, const char *container)
{
	struct owned_row *owned = op_container_of(op_dcookie_row(table, cookie), struct owned_row, row);
	int err = replace_string(&owned->host_path, host_path);

	if (!err)
		err = replace_string(&owned->container, container);
	owned->row.host_path = owned->host_path;
	owned->row.container = owned->container;
	return err;
}
