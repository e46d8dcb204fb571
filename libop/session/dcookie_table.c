/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/dcookie_table.h"

#include <errno.h>
#include <sys/random.h>

#include "libop/base/clock.h"
#include "libop/base/grow.h"

struct op_dcookie_table *op_dcookie_table_new(void)
{
	struct op_dcookie_table *table = calloc(1, sizeof(*table));

	if (table)
		table->of_no_row = calloc(1, sizeof(*table->of_no_row));
	if (!table || !table->of_no_row) {
		free(table);
		return NULL;
	}
	table->of_no_row->id.name.name = "";
	table->of_no_row->id.is_pseudo = true;
	table->next = 1;
	table->max_counted = table->max_uncounted = table->max_counted_bytes = table->max_uncounted_bytes = SIZE_MAX;
	table->max_programs = SIZE_MAX;
	/*
	 * A random seed: processes cannot choose names that share a bucket. Without one, lookups
	 * may be slow.
	 */
	if (getrandom(&table->seed, sizeof(table->seed), GRND_NONBLOCK) != (ssize_t)sizeof(table->seed))
		table->seed = (uintptr_t)table;
	return table;
}

/* ---- bytes ---- */

static void add_bytes(struct op_dcookie_table *table, struct op_dcookie_entry *entry, size_t nr_bytes)
{
	entry->nr_bytes += nr_bytes;
	table->nr_bytes += nr_bytes;
	if (entry->row.name)
		table->nr_counted_bytes += nr_bytes;
}

bool op_dcookie_is_full(const struct op_dcookie_table *table, bool counted)
{
	return counted ? table->nr_counted_bytes >= table->max_counted_bytes :
			 table->nr_bytes - table->nr_counted_bytes >= table->max_uncounted_bytes;
}

static size_t bytes_of(const char *string)
{
	return string ? strlen(string) + 1 : 0;
}

/* ---- the table ---- */

static void free_entry(struct op_dcookie_entry *entry)
{
	for (struct op_dcookie_identity *next, *identity = entry->identities; identity; identity = next) {
		next = identity->next;
		free(identity);
	}
	free(entry->name);
	free(entry->host_path);
	free(entry->container);
	free(entry->file_path);
	free(entry);
}

static void free_visited(struct op_hlink *link, void *arg OP_UNUSED)
{
	free_entry(op_container_of(link, struct op_dcookie_entry, by_cookie));
}

void op_dcookie_table_free(struct op_dcookie_table *table)
{
	if (!table)
		return;
	op_htable_visit(&table->rows, free_visited, NULL);
	op_htable_free(&table->rows);
	op_htable_free(&table->identities);
	op_htable_free(&table->names);
	free(table->unwritten);
	free(table->of_no_row);
	free(table);
}

void op_dcookie_limit(struct op_dcookie_table *table, size_t max_uncounted, size_t max_counted, uint64_t overflow)
{
	table->max_uncounted = max_uncounted;
	table->max_counted = max_counted;
	table->overflow = overflow;
}

void op_dcookie_limit_bytes(struct op_dcookie_table *table, size_t max_uncounted, size_t max_counted)
{
	table->max_uncounted_bytes = max_uncounted;
	table->max_counted_bytes = max_counted;
}

void op_dcookie_limit_programs(struct op_dcookie_table *table, size_t max_programs)
{
	table->max_programs = max_programs;
}

uint64_t op_dcookie_overflow(const struct op_dcookie_table *table)
{
	return table->overflow;
}

/* ---- identities ---- */

static uint64_t hash_name(const struct op_dcookie_table *table, const struct op_image_name *name)
{
	uint64_t hash = op_hash_bytes(op_hash_u64(table->seed + name->kind), name->name, strlen(name->name));

	if (name->kind == OP_IMAGE_ANON) {
		hash = op_hash_add(hash, (uint32_t)name->tgid);
		hash = op_hash_add(hash, name->start ^ name->end << 1);
	}
	return hash;
}

static uint64_t hash_id(const struct op_dcookie_table *table, const struct op_image_id *id)
{
	uint64_t hash = op_hash_bytes(hash_name(table, &id->name), id->build_id, id->build_id_bytes);

	hash = op_hash_add(hash, id->device ^ id->inode << 20 ^ id->inode_generation << 40);
	if (op_dcookie_is_program(id))
		hash = op_hash_bytes(op_hash_add(hash, id->program_of ^ (uint64_t)id->user << 32), id->comm, strlen(id->comm));
	return op_hash_add(hash, id->mtime_ns + id->bytes);
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
	       a->mtime_ns == b->mtime_ns && a->bytes == b->bytes && a->is_kernel == b->is_kernel &&
	       a->program_of == b->program_of && (!op_dcookie_is_program(a) || (a->user == b->user && !strcmp(a->comm, b->comm)));
}

static struct op_dcookie_identity *find(const struct op_dcookie_table *table, const struct op_image_id *id, uint64_t hash)
{
	for (struct op_hlink *link = op_htable_first(&table->identities, hash); link; link = op_htable_next(link)) {
		struct op_dcookie_identity *identity = op_container_of(link, struct op_dcookie_identity, link);

		if (same_id(&identity->id, id))
			return identity;
	}
	return NULL;
}

static struct op_dcookie_identity *add_identity(struct op_dcookie_table *table, struct op_dcookie_entry *entry,
						const struct op_image_id *id, uint64_t hash)
{
	size_t name_bytes = strlen(id->name.name) + 1;
	struct op_dcookie_identity *identity = calloc(1, sizeof(*identity) + name_bytes);

	if (!identity)
		return NULL;
	identity->id = *id;
	identity->id.name.name = memcpy(identity + 1, id->name.name, name_bytes);
	if (op_htable_insert(&table->identities, &identity->link, hash) < 0) {
		free(identity);
		return NULL;
	}
	identity->entry = entry;
	identity->next = entry->identities;
	entry->identities = identity;
	add_bytes(table, entry, sizeof(*identity) + name_bytes);
	return identity;
}

/* ---- names of counted rows ---- */

int op_dcookie_note_unwritten(struct op_dcookie_table *table, struct op_dcookie_entry *entry)
{
	if (entry->is_unwritten)
		return 0;
	if (!op_grow(&table->unwritten, &table->unwritten_capacity, table->nr_unwritten + 1))
		return -ENOMEM;
	table->unwritten[table->nr_unwritten++] = entry->row.cookie;
	entry->is_unwritten = true;
	return 0;
}

struct op_image_name op_dcookie_name(const struct op_dcookie_row *row)
{
	struct op_image_name name = row->id.name;

	name.name = row->name;
	return name;
}

uint64_t op_dcookie_by_name(const struct op_dcookie_table *table, const struct op_image_name *name)
{
	for (struct op_hlink *link = op_htable_first(&table->names, hash_name(table, name)); link; link = op_htable_next(link)) {
		const struct op_dcookie_row *row = &op_container_of(link, struct op_dcookie_entry, by_name)->row;
		struct op_image_name other = op_dcookie_name(row);

		if (same_name(&other, name))
			return row->cookie;
	}
	return OP_DCOOKIE_NONE;
}

int op_dcookie_enter_name(struct op_dcookie_table *table, struct op_dcookie_entry *entry, char *name)
{
	struct op_image_name key = entry->row.id.name;

	if (!name)
		return -ENOMEM;
	key.name = name;
	if (op_dcookie_note_unwritten(table, entry) < 0 ||
	    op_htable_insert(&table->names, &entry->by_name, hash_name(table, &key)) < 0) {
		free(name);
		return -ENOMEM;
	}
	add_bytes(table, entry, bytes_of(name));
	entry->row.name = entry->name = name;
	table->nr_counted++;
	table->nr_counted_bytes += entry->nr_bytes;
	table->nr_regions += key.kind == OP_IMAGE_ANON;
	table->nr_programs += op_dcookie_is_program(&entry->row.id);
	return 0;
}

void op_dcookie_leave_name(struct op_dcookie_table *table, struct op_dcookie_entry *entry)
{
	if (!entry->row.name)
		return;
	op_htable_remove(&table->names, &entry->by_name);
	add_bytes(table, entry, -bytes_of(entry->name));
	table->nr_counted_bytes -= entry->nr_bytes;
	free(entry->name);
	entry->row.name = entry->name = NULL;
	table->nr_counted--;
	table->nr_regions -= entry->row.id.name.kind == OP_IMAGE_ANON;
	table->nr_programs -= op_dcookie_is_program(&entry->row.id);
}

/* ---- rows ---- */

struct op_dcookie_entry *op_dcookie_entry_of(const struct op_dcookie_table *table, uint64_t cookie)
{
	struct op_hlink *link = op_htable_first(&table->rows, cookie);

	return link ? op_container_of(link, struct op_dcookie_entry, by_cookie) : NULL;
}

bool op_dcookie_has(const struct op_dcookie_table *table, uint64_t cookie)
{
	return op_dcookie_entry_of(table, cookie);
}

struct op_dcookie_entry *op_dcookie_add_entry(struct op_dcookie_table *table, const struct op_image_id *id, uint64_t cookie)
{
	uint64_t hash = hash_id(table, id);
	struct op_dcookie_entry *entry = find(table, id, hash) ? NULL : calloc(1, sizeof(*entry));
	struct op_dcookie_identity *identity = entry ? add_identity(table, entry, id, hash) : NULL;

	if (!identity) {
		free(entry);
		return NULL;
	}
	entry->row.id = identity->id;
	entry->row.cookie = cookie;
	entry->mark = table->mark;
	/* Cookies are consecutive numbers, which spread as well as hashes. */
	if (op_htable_insert(&table->rows, &entry->by_cookie, cookie) < 0) {
		op_htable_remove(&table->identities, &identity->link);
		table->nr_bytes -= entry->nr_bytes;
		free_entry(entry);
		return NULL;
	}
	add_bytes(table, entry, sizeof(*entry));
	table->next = op_max_u64(table->next, cookie + 1);
	return entry;
}

void op_dcookie_remove_entry(struct op_dcookie_table *table, struct op_dcookie_entry *entry)
{
	for (struct op_dcookie_identity *identity = entry->identities; identity; identity = identity->next)
		op_htable_remove(&table->identities, &identity->link);
	op_dcookie_leave_name(table, entry);
	op_htable_remove(&table->rows, &entry->by_cookie);
	table->nr_bytes -= entry->nr_bytes;
	free_entry(entry);
}

bool op_dcookie_drop_alias(struct op_dcookie_table *table, const struct op_image_id *id)
{
	struct op_dcookie_identity *identity = find(table, id, hash_id(table, id)), **link;

	if (!identity || !identity->next)
		return false;
	for (link = &identity->entry->identities; *link != identity; link = &(*link)->next)
		;
	*link = identity->next;
	op_htable_remove(&table->identities, &identity->link);
	add_bytes(table, identity->entry, -(sizeof(*identity) + strlen(identity->id.name.name) + 1));
	free(identity);
	return true;
}

uint64_t op_dcookie_find(const struct op_dcookie_table *table, const struct op_image_id *id)
{
	const struct op_dcookie_identity *identity = find(table, id, hash_id(table, id));

	return identity ? identity->entry->row.cookie : OP_DCOOKIE_NONE;
}

uint64_t op_dcookie_get(struct op_dcookie_table *table, const struct op_image_id *id)
{
	uint64_t cookie = op_dcookie_find(table, id);
	const struct op_dcookie_entry *entry;
	bool has_room;

	if (cookie != OP_DCOOKIE_NONE)
		return cookie;
	has_room = table->rows.nr_entries - table->nr_counted < table->max_uncounted && !op_dcookie_is_full(table, false);
	if (!has_room && !id->is_kernel && !id->is_pseudo) {
		table->nr_refused++;
		return table->overflow;
	}
	entry = op_dcookie_add_entry(table, id, table->next);
	return entry ? entry->row.cookie : OP_DCOOKIE_NONE;
}

int op_dcookie_alias(struct op_dcookie_table *table, const struct op_image_id *id, uint64_t cookie)
{
	uint64_t hash = hash_id(table, id);
	const struct op_dcookie_identity *identity = find(table, id, hash);
	struct op_dcookie_entry *entry = op_dcookie_entry_of(table, cookie);

	if (identity)
		return identity->entry == entry ? 0 : -EEXIST;
	if (!entry || entry->row.id.is_pseudo)
		return 0;
	if (op_dcookie_is_full(table, entry->row.name)) {
		table->nr_refused++;
		return 0;
	}
	return add_identity(table, entry, id, hash) ? 0 : -ENOMEM;
}

struct op_dcookie_row *op_dcookie_row(const struct op_dcookie_table *table, uint64_t cookie)
{
	struct op_dcookie_entry *entry = op_dcookie_entry_of(table, cookie);

	return op_likely(entry) ? &entry->row : table->of_no_row;
}

uint64_t op_dcookie_mtime(const struct op_dcookie_row *row)
{
	return row->id.mtime_ns / OP_NS_PER_S;
}

struct visiting {
	void (*visit)(struct op_dcookie_row *row, void *arg);
	void *arg;
};

static void visit_entry(struct op_hlink *link, void *arg)
{
	const struct visiting *visiting = arg;

	visiting->visit(&op_container_of(link, struct op_dcookie_entry, by_cookie)->row, visiting->arg);
}

void op_dcookie_visit(struct op_dcookie_table *table, void (*visit)(struct op_dcookie_row *row, void *arg), void *arg)
{
	struct visiting visiting = { visit, arg };

	op_htable_visit(&table->rows, visit_entry, &visiting);
}

size_t op_dcookie_count(const struct op_dcookie_table *table)
{
	return table->rows.nr_entries;
}

size_t op_dcookie_nr_counted(const struct op_dcookie_table *table)
{
	return table->nr_counted;
}

size_t op_dcookie_nr_programs(const struct op_dcookie_table *table)
{
	return table->nr_programs;
}

uint64_t op_dcookie_nr_refused(const struct op_dcookie_table *table)
{
	return table->nr_refused;
}

uint64_t op_dcookie_next(const struct op_dcookie_table *table)
{
	return table->next;
}

/* ---- facts that come later ---- */

static bool same_string(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static int replace_string(struct op_dcookie_table *table, struct op_dcookie_entry *entry, char **string, const char *value)
{
	char *copy = value ? strdup(value) : NULL;

	if (value && !copy)
		return -ENOMEM;
	add_bytes(table, entry, bytes_of(copy) - bytes_of(*string));
	free(*string);
	*string = copy;
	return 0;
}

int op_dcookie_set_place(struct op_dcookie_table *table, uint64_t cookie, const char *host_path, const char *container)
{
	struct op_dcookie_entry *entry = op_dcookie_entry_of(table, cookie);
	int err = 0;

	if (!entry)
		return 0;
	if (same_string(entry->host_path, host_path) && same_string(entry->container, container))
		return 0;
	if (entry->row.name)
		err = op_dcookie_note_unwritten(table, entry);
	if (!err)
		err = replace_string(table, entry, &entry->host_path, host_path);
	if (!err)
		err = replace_string(table, entry, &entry->container, container);
	entry->row.host_path = entry->host_path;
	entry->row.wanted = OP_DCOOKIE_NOT_ASKED;
	entry->row.container = entry->container;
	return err;
}

int op_dcookie_set_file(struct op_dcookie_table *table, uint64_t cookie, const struct op_image_file *file)
{
	struct op_dcookie_entry *entry = op_dcookie_entry_of(table, cookie);
	int err = 0;

	assert(entry);
	if (!same_string(entry->file_path, file->path))
		err = replace_string(table, entry, &entry->file_path, file->path);
	if (err)
		return err;
	entry->row.file = *file;
	entry->row.file.path = entry->file_path;
	return 0;
}

int op_dcookie_set_build_id(struct op_dcookie_table *table, uint64_t cookie, const uint8_t *build_id, uint8_t nr_bytes)
{
	struct op_dcookie_entry *entry = op_dcookie_entry_of(table, cookie);
	int err = 0;

	if (!entry || !nr_bytes || nr_bytes > sizeof(entry->row.id.build_id))
		return 0;
	if (entry->row.id.build_id_bytes || entry->row.id.is_pseudo)
		return 0;
	if (entry->row.name)
		err = op_dcookie_note_unwritten(table, entry);
	if (err)
		return err;
	entry->row.id.build_id_bytes = nr_bytes;
	memcpy(entry->row.id.build_id, build_id, nr_bytes);
	return 0;
}

/* ---- forgetting ---- */

void op_dcookie_mark_begin(struct op_dcookie_table *table)
{
	table->mark++;
}

void op_dcookie_mark(struct op_dcookie_table *table, uint64_t cookie)
{
	struct op_dcookie_entry *entry = op_dcookie_entry_of(table, cookie);

	if (entry)
		entry->mark = table->mark;
}

static void sweep_visited(struct op_hlink *link, void *arg)
{
	struct op_dcookie_entry *entry = op_container_of(link, struct op_dcookie_entry, by_cookie);
	struct op_dcookie_table *table = arg;

	if (entry->mark != table->mark && !entry->row.name && !entry->row.id.is_pseudo)
		op_dcookie_remove_entry(table, entry);
}

/* The application of a program that stays. It is counted if the program is. */
static void mark_application(struct op_hlink *link, void *arg)
{
	const struct op_dcookie_entry *entry = op_container_of(link, struct op_dcookie_entry, by_cookie);
	struct op_dcookie_table *table = arg;

	if (op_dcookie_is_program(&entry->row.id) && entry->mark == table->mark)
		op_dcookie_mark(table, entry->row.id.program_of);
}

size_t op_dcookie_sweep(struct op_dcookie_table *table)
{
	size_t nr_before = table->rows.nr_entries;

	op_htable_visit(&table->rows, mark_application, table);
	op_htable_visit(&table->rows, sweep_visited, table);
	return nr_before - table->rows.nr_entries;
}
