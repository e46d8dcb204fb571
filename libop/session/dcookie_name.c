/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which name an image has in the session: one image, one name, for as long as the session is. */
#include <errno.h>
#include <limits.h>

#include "libop/session/dcookie_table.h"

#define BUILD_ID_SHOWN_BYTES 6
#define NAME_LONG_BYTES	     1200 /* three of these, in a callgraph file, and an event make a path that the kernel takes */
#define NAME_SHOWN_BYTES     128  /* of the last component of a longer one */
#define IDENTITY_BYTES	     64	  /* " (inode 18446744073709551615 #18446744073709551615)" and the NUL */

static uint64_t hash_name(const struct op_dcookie_table *table, const struct op_image_name *name)
{
	uint64_t hash = op_hash_bytes(op_hash_u64(table->seed + name->kind), name->name, strlen(name->name));

	if (name->kind == OP_IMAGE_ANON) {
		hash = op_hash_add(hash, (uint32_t)name->tgid);
		hash = op_hash_add(hash, name->start ^ name->end << 1);
	}
	return hash;
}

struct op_image_name op_dcookie_name(const struct op_dcookie_row *row)
{
	struct op_image_name name = row->id.name;

	name.name = row->name;
	return name;
}

uint64_t op_dcookie_by_name(const struct op_dcookie_table *table, const struct op_image_name *name)
{
	struct op_hlink *link = op_htable_first(&table->names, hash_name(table, name));

	for (; link; link = op_htable_next(link)) {
		const struct op_dcookie_row *row = &op_container_of(link, struct op_dcookie_entry, by_name)->row;

		if (row->id.name.kind == name->kind && !strcmp(row->name, name->name) &&
		    (name->kind != OP_IMAGE_ANON || (row->id.name.tgid == name->tgid && row->id.name.start == name->start &&
						     row->id.name.end == name->end)))
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
	if (op_dcookie_note_unwritten(table, entry) < 0 || op_htable_insert(&table->names, &entry->by_name, hash_name(table, &key)) < 0) {
		free(name);
		return -ENOMEM;
	}
	op_dcookie_charge(table, entry, name);
	entry->row.name = entry->name = name;
	table->nr_counted++;
	table->nr_counted_bytes += entry->nr_bytes;
	table->nr_regions += key.kind == OP_IMAGE_ANON;
	return 0;
}

void op_dcookie_leave_name(struct op_dcookie_table *table, struct op_dcookie_entry *entry)
{
	if (!entry->row.name)
		return;
	op_htable_remove(&table->names, &entry->by_name);
	op_dcookie_discharge(table, entry, entry->name);
	table->nr_counted_bytes -= entry->nr_bytes;
	free(entry->name);
	entry->row.name = entry->name = NULL;
	table->nr_counted--;
	table->nr_regions -= entry->row.id.name.kind == OP_IMAGE_ANON;
}

/* How much a name has to tell. */
enum telling {
	TELLING_NOTHING,  /* the image has the path for itself */
	TELLING_IDENTITY, /* " (build-id 0123456789ab)", " (inode 12)" */
	TELLING_COOKIE,	  /* " (inode 12 #345)": written anew in place, the inode is the same */
};

static void format_identity(const struct op_dcookie_row *row, enum telling telling, char text[IDENTITY_BYTES])
{
	char ordinal[24] = "", digits[2 * BUILD_ID_SHOWN_BYTES + 1];
	const struct op_image_id *id = &row->id;

	if (telling == TELLING_COOKIE)
		snprintf(ordinal, sizeof(ordinal), " #%llu", (unsigned long long)row->cookie);
	if (id->build_id_bytes < BUILD_ID_SHOWN_BYTES) {
		snprintf(text, IDENTITY_BYTES, " (inode %llu%s)", (unsigned long long)id->inode, ordinal);
		return;
	}
	for (size_t i = 0; i < BUILD_ID_SHOWN_BYTES; i++)
		snprintf(digits + 2 * i, 3, "%02x", id->build_id[i]);
	snprintf(text, IDENTITY_BYTES, " (build-id %s%s)", digits, ordinal);
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "/(long path HASH)/" and the end of the last component; what belongs to the kernel has one component only. */
static void add_short(const struct op_image_name *image, const char *mangled, struct op_text *name)
{
	const char *last = last_component(mangled);
	size_t nr_bytes = strlen(last);

	op_text_printf(name, image->kind == OP_IMAGE_FILE ? "/(long path %016llx)/" : "(long name %016llx) ",
		       (unsigned long long)op_hash_bytes(0, image->name, strlen(image->name)));
	op_text_add(name, nr_bytes > NAME_SHOWN_BYTES ? last + nr_bytes - NAME_SHOWN_BYTES : last);
}

/* Whether the kernel would not take it as a path, with so many bytes more behind it. */
static bool is_too_long(const char *mangled, size_t nr_more)
{
	size_t length;

	if (strlen(mangled) > NAME_LONG_BYTES)
		return true;
	for (; *mangled; mangled += length) {
		mangled += strspn(mangled, "/");
		length = strcspn(mangled, "/");
		if (length + (mangled[length] ? 0 : nr_more) > NAME_MAX)
			return true;
	}
	return false;
}

/* As it stands in the paths of sample files. */
static char *make_name(const struct op_dcookie_row *row, enum telling telling)
{
	char identity[IDENTITY_BYTES] = "";
	struct op_text mangled = { 0 }, name = { 0 };
	const struct op_image_name *image = &row->id.name;

	if (telling != TELLING_NOTHING)
		format_identity(row, telling, identity);
	if (image->kind == OP_IMAGE_FILE)
		op_mangle_path(image->name, &mangled);
	else
		op_mangle_kernel(image->name, &mangled);
	if (is_too_long(op_text_get(&mangled), strlen(identity)))
		add_short(image, op_text_get(&mangled), &name);
	else
		op_text_add(&name, op_text_get(&mangled));
	op_text_add(&name, identity);
	name.failed |= mangled.failed;
	op_text_free(&mangled);
	return op_text_steal(&name);
}

static bool is_taken(const struct op_dcookie_table *table, const struct op_image_id *id, const char *string)
{
	struct op_image_name name = id->name;

	name.name = string;
	return op_dcookie_by_name(table, &name) != OP_DCOOKIE_NONE;
}

/* Of what has no file only a module may come again as another one, and its build-id tells. */
static bool can_be_told_apart(const struct op_image_id *id)
{
	return id->name.kind == OP_IMAGE_FILE || (id->is_kernel && id->build_id_bytes);
}

/* Pseudo-images and regions have their names for themselves; a cookie is nobody else's. */
static char *choose_name(const struct op_dcookie_table *table, const struct op_dcookie_row *row, enum telling telling)
{
	char *name;

	if (row->id.name.kind == OP_IMAGE_ANON)
		return strdup(row->id.name.name);
	if (!can_be_told_apart(&row->id))
		return make_name(row, TELLING_NOTHING);
	for (name = make_name(row, telling); name && telling != TELLING_COOKIE && is_taken(table, &row->id, name);
	     name = make_name(row, telling)) {
		free(name);
		telling++;
	}
	return name;
}

/* Each short-lived process has regions of its own; they leave room for files. */
static bool is_full_for(const struct op_dcookie_table *table, const struct op_image_id *id)
{
	if (id->is_kernel || id->is_pseudo)
		return false;
	return table->nr_counted >= table->max_counted || op_dcookie_is_full(table, true) ||
	       (id->name.kind == OP_IMAGE_ANON && table->nr_regions >= table->max_counted / 2);
}

int op_dcookie_count_in(struct op_dcookie_table *table, uint64_t cookie, int64_t now_seconds)
{
	struct op_dcookie_entry *entry = op_dcookie_entry_of(table, cookie);
	int err;

	assert(entry);
	if (entry->row.name)
		return 0;
	if (is_full_for(table, &entry->row.id))
		return -EDQUOT;
	err = op_dcookie_enter_name(table, entry, choose_name(table, &entry->row, TELLING_NOTHING));
	if (!err)
		entry->row.first_seen = entry->row.last_seen = now_seconds;
	return err;
}

int op_dcookie_tell_apart(struct op_dcookie_table *table, uint64_t cookie)
{
	struct op_dcookie_entry *entry = op_dcookie_entry_of(table, cookie);
	char *name;
	bool is_plain;

	assert(entry && entry->row.name);
	if (entry->row.id.name.kind != OP_IMAGE_FILE)
		return 0;
	name = make_name(&entry->row, TELLING_NOTHING);
	if (!name)
		return -ENOMEM;
	is_plain = !strcmp(entry->row.name, name);
	free(name);
	if (!is_plain)
		return 0;
	name = choose_name(table, &entry->row, TELLING_IDENTITY);
	if (!name)
		return -ENOMEM;
	op_dcookie_leave_name(table, entry);
	return op_dcookie_enter_name(table, entry, name);
}

static void uncount(struct op_dcookie_row *row, void *arg)
{
	struct op_dcookie_entry *entry = op_container_of(row, struct op_dcookie_entry, row);

	op_dcookie_leave_name(arg, entry);
	entry->is_unwritten = false;
	if (entry->was_seen)
		row->id.mtime_ns = entry->seen_mtime_ns;
	row->first_seen = row->last_seen = 0;
}

void op_dcookie_uncount_all(struct op_dcookie_table *table)
{
	op_dcookie_visit(table, uncount, table);
	table->nr_unwritten = 0;
}
