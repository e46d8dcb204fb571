/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The names of images in a session. An image keeps its name as long as the session lasts. */
#include <errno.h>
#include <limits.h>

#include "libop/session/dcookie_table.h"

#define BUILD_ID_SHOWN_BYTES 6
/* three of them and an event, as in a callgraph file, stay below PATH_MAX */
#define NAME_LONG_BYTES	     1200
#define NAME_SHOWN_BYTES     128  /* of the last component of a longer one */
/* " (inode 18446744073709551615 #18446744073709551615)" and the NUL */
#define IDENTITY_BYTES	     64

/* What a name adds to the path. */
enum suffix {
	SUFFIX_NONE,
	SUFFIX_IDENTITY, /* " (build-id 0123456789ab)", " (inode 12)" */
	SUFFIX_COOKIE,	 /* " (inode 12 #345)": a file that was overwritten keeps its inode */
};

static void format_identity(const struct op_dcookie_row *row, enum suffix suffix, char text[IDENTITY_BYTES])
{
	char ordinal[24] = "", digits[2 * BUILD_ID_SHOWN_BYTES + 1];
	const struct op_image_id *id = &row->id;

	if (suffix == SUFFIX_COOKIE)
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

/*
 * "/(long path HASH)/" and the end of the last component. Names of the kernel have one component
 * only.
 */
static void add_short(const struct op_image_name *image, const char *mangled, struct op_text *name)
{
	const char *last = last_component(mangled);
	size_t nr_bytes = strlen(last);

	op_text_printf(name, image->kind == OP_IMAGE_FILE ? "/(long path %016llx)/" : "(long name %016llx) ",
		       (unsigned long long)op_hash_bytes(0, image->name, strlen(image->name)));
	op_text_add(name, nr_bytes > NAME_SHOWN_BYTES ? last + nr_bytes - NAME_SHOWN_BYTES : last);
}

/* Whether a path with nr_more bytes behind it is too long for the kernel. */
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

/* The name as in the paths of sample files. */
static char *make_name(const struct op_dcookie_row *row, enum suffix suffix)
{
	char identity[IDENTITY_BYTES] = "";
	struct op_text mangled = { 0 }, name = { 0 };
	const struct op_image_name *image = &row->id.name;

	if (suffix != SUFFIX_NONE)
		format_identity(row, suffix, identity);
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

/* " (COMM, user 1000)" behind the name of the application. */
static void add_program(const struct op_dcookie_row *row, enum suffix suffix, struct op_text *name)
{
	const char *between = " (";

	if (row->id.comm[0]) {
		op_text_add(name, between);
		for (const char *c = row->id.comm; *c; c++)
			op_text_add_char(name, *c == '/' || (unsigned char)*c < ' ' || *c == 0x7f ? '_' : *c);
		between = ", ";
	}
	if (row->id.user != OP_USER_NONE)
		op_text_printf(name, "%suser %u", between, row->id.user);
	if (suffix == SUFFIX_COOKIE)
		op_text_printf(name, " #%llu", (unsigned long long)row->cookie);
	op_text_add_char(name, ')');
}

/* The application is counted, so its name tells it from others of its path. */
static char *name_program(const struct op_dcookie_table *table, const struct op_dcookie_row *row, enum suffix suffix)
{
	const struct op_dcookie_entry *application = op_dcookie_entry_of(table, row->id.program_of);
	struct op_text name = { 0 }, program = { 0 };
	const char *base = application && application->row.name ? application->row.name : row->id.name.name;

	add_program(row, suffix, &program);
	if (is_too_long(base, program.length))
		add_short(&(struct op_image_name){ .kind = OP_IMAGE_FILE, .name = base }, base, &name);
	else
		op_text_add(&name, base);
	op_text_add(&name, op_text_get(&program));
	name.failed |= program.failed;
	op_text_free(&program);
	return op_text_steal(&name);
}

static bool is_taken(const struct op_dcookie_table *table, const struct op_image_id *id, const char *string)
{
	struct op_image_name name = id->name;

	name.name = string;
	return op_dcookie_by_name(table, &name) != OP_DCOOKIE_NONE;
}

/*
 * A module may be loaded again with another build-id. Records of another machine may give a thread
 * of the kernel the name of a part of the kernel. Names of pseudo-images are opd's own.
 */
static bool may_have_twins(const struct op_image_id *id)
{
	return !id->is_pseudo;
}

/*
 * Adds to the name until no other image has it. Pseudo-images and regions have unique names
 * already.
 */
static char *choose_name(const struct op_dcookie_table *table, const struct op_dcookie_row *row, enum suffix suffix)
{
	bool is_program = op_dcookie_is_program(&row->id);
	char *name = NULL;

	if (row->id.name.kind == OP_IMAGE_ANON)
		return strdup(row->id.name.name);
	if (!may_have_twins(&row->id))
		return make_name(row, SUFFIX_NONE);
	for (;; suffix++) {
		name = is_program ? name_program(table, row, suffix) : make_name(row, suffix);
		if (!name || suffix == SUFFIX_COOKIE || !is_taken(table, &row->id, name))
			return name;
		free(name);
	}
}

/* Regions may be half of the rows: each short-lived process has some, and files need room, too. */
static bool is_full_for(const struct op_dcookie_table *table, const struct op_image_id *id)
{
	if (id->is_kernel || id->is_pseudo)
		return false;
	if (op_dcookie_is_program(id) && table->nr_programs >= table->max_programs)
		return true;
	return table->nr_counted >= table->max_counted || op_dcookie_is_full(table, true) ||
	       (id->name.kind == OP_IMAGE_ANON && table->nr_regions >= table->max_counted / 2);
}

int op_dcookie_count_in(struct op_dcookie_table *table, uint64_t cookie, int64_t now_seconds)
{
	struct op_dcookie_entry *entry = op_dcookie_entry_of(table, cookie);
	enum suffix suffix;
	int err;

	if (!entry) {
		table->nr_refused++;
		return -EDQUOT;
	}
	if (entry->row.name)
		return 0;
	if (is_full_for(table, &entry->row.id))
		return -EDQUOT;
	if (op_dcookie_is_program(&entry->row.id)) {
		err = op_dcookie_count_in(table, entry->row.id.program_of, now_seconds);
		if (err)
			return err;
	}
	suffix = entry->row.host_has_another ? SUFFIX_IDENTITY : SUFFIX_NONE;
	err = op_dcookie_enter_name(table, entry, choose_name(table, &entry->row, suffix));
	if (!err)
		entry->row.first_seen = entry->row.last_seen = now_seconds;
	return err;
}

int op_dcookie_make_distinct(struct op_dcookie_table *table, uint64_t cookie)
{
	struct op_dcookie_entry *entry = op_dcookie_entry_of(table, cookie);
	char *name;
	bool is_plain;

	if (!entry || !entry->row.name || entry->row.id.name.kind != OP_IMAGE_FILE || op_dcookie_is_program(&entry->row.id))
		return 0;
	name = make_name(&entry->row, SUFFIX_NONE);
	if (!name)
		return -ENOMEM;
	is_plain = !strcmp(entry->row.name, name);
	free(name);
	if (!is_plain)
		return 0;
	name = choose_name(table, &entry->row, SUFFIX_IDENTITY);
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
