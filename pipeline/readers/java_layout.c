/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/readers/java_layout.h"

#include <errno.h>
#include <string.h>

#define TABLE_MAX  4096u /* entries of a table of the machine */
#define STRIDE_MAX 256u
#define OFFSET_MAX 4096u /* of a field in its structure */
#define NAME_BYTES 64u   /* of the names that are looked for */

struct wanted {
	const char *type, *field, *kind;
	size_t at; /* in the layout */
	bool is_static;
};

static const struct wanted wanted[] = {
#define X(name, type, field, kind) { type, field, kind, offsetof(struct opd_java_layout, name), true },
	OPD_JAVA_STATICS(X)
#undef X
#define X(name, type, field, kind) { type, field, kind, offsetof(struct opd_java_layout, name), false },
		OPD_JAVA_FIELDS(X)
#undef X
			/* 21: its lower half is the same */
			{ "ConstMethod", "_flags._flags", "u4", offsetof(struct opd_java_layout, const_flags), false },
};

static const struct wanted wanted_sizes[] = {
#define X(name, type) { type, NULL, NULL, offsetof(struct opd_java_layout, name##_bytes), false },
	OPD_JAVA_SIZES(X)
#undef X
};

/* A table of the machine: its symbols are PREFIX + "s" and PREFIX + "Entry..." + "Offset". */
struct table {
	struct opd_far_memory *memory;
	uint64_t image, at, stride;
	const char *prefix;
};

static int read_symbol(const struct table *table, const char *words, uint64_t *ret_value)
{
	char name[NAME_BYTES];
	uint64_t address;
	int err;

	snprintf(name, sizeof(name), "%s%s", table->prefix, words);
	err = opd_far_memory_symbol(table->memory, table->image, name, &address);
	return err ? err : opd_far_memory_read(table->memory, address, ret_value, sizeof(*ret_value));
}

static int open_table(struct table *table)
{
	int err = read_symbol(table, "s", &table->at);

	err = err ? err : read_symbol(table, "EntryArrayStride", &table->stride);
	return err ? err : table->stride > STRIDE_MAX ? -EBADMSG : 0;
}

/* Where a column of the table is in each entry. */
static int read_column(const struct table *table, const char *words, uint64_t *ret_offset)
{
	int err = read_symbol(table, words, ret_offset);

	return err ? err : *ret_offset > STRIDE_MAX ? -EBADMSG : 0;
}

/* The text that a column points to; "" where it is longer than what is looked for. */
static int read_name(const struct table *table, uint64_t entry, uint64_t column, char name[NAME_BYTES], bool *ret_is_end)
{
	uint64_t address;
	int err = opd_far_memory_read(table->memory, entry + column, &address, sizeof(address));

	*ret_is_end = !err && !address;
	name[0] = '\0';
	if (err || !address)
		return err;
	err = opd_far_memory_string(table->memory, address, name, NAME_BYTES);
	if (err == -EBADMSG)
		name[0] = '\0';
	return err == -EBADMSG ? 0 : err;
}

static int set_offset(struct opd_java_layout *layout, const struct wanted *want, uint64_t value, uint64_t *found, size_t bit)
{
	uint32_t offset = (uint32_t)value;

	if (*found >> bit & 1 || (!want->is_static && value > OFFSET_MAX))
		return -EBADMSG;
	*found |= 1ull << bit;
	if (want->is_static)
		memcpy((char *)layout + want->at, &value, sizeof(value));
	else
		memcpy((char *)layout + want->at, &offset, sizeof(offset));
	return 0;
}

/* The row of a field; one that another version has shares the row of the first. */
static size_t row_of(size_t i)
{
	size_t row = 0;

	while (wanted[row].at != wanted[i].at)
		row++;
	return row;
}

static const uint64_t all_fields = (1ull << (op_array_size(wanted) - 1)) - 1;
static const uint64_t all_sizes = (1ull << op_array_size(wanted_sizes)) - 1;
static_assert(op_array_size(wanted) < 64, "a bit for each field");

static int read_fields(struct opd_far_memory *memory, uint64_t image, struct opd_java_layout *layout)
{
	struct table table = { .memory = memory, .image = image, .prefix = "gHotSpotVMStruct" };
	uint64_t type_column, field_column, kind_column, static_column, offset_column, address_column, value, found = 0;
	char type[NAME_BYTES], field[NAME_BYTES], kind[NAME_BYTES];
	uint32_t is_static;
	bool is_end;
	int err = open_table(&table);

	if (err || (err = read_column(&table, "EntryTypeNameOffset", &type_column)) ||
	    (err = read_column(&table, "EntryFieldNameOffset", &field_column)) ||
	    (err = read_column(&table, "EntryTypeStringOffset", &kind_column)) ||
	    (err = read_column(&table, "EntryIsStaticOffset", &static_column)) ||
	    (err = read_column(&table, "EntryOffsetOffset", &offset_column)) ||
	    (err = read_column(&table, "EntryAddressOffset", &address_column)))
		return err;
	for (uint64_t i = 0; i < TABLE_MAX; i++) {
		uint64_t entry = table.at + i * table.stride;

		err = read_name(&table, entry, type_column, type, &is_end);
		if (err || is_end)
			break;
		for (size_t j = 0; !err && j < op_array_size(wanted); j++) {
			if (strcmp(wanted[j].type, type))
				continue;
			err = read_name(&table, entry, field_column, field, &is_end);
			if (err || strcmp(wanted[j].field, field))
				continue;
			if ((err = read_name(&table, entry, kind_column, kind, &is_end)) ||
			    (err = opd_far_memory_read(memory, entry + static_column, &is_static, sizeof(is_static))) ||
			    (err = opd_far_memory_read(memory, entry + (wanted[j].is_static ? address_column : offset_column),
						       &value, sizeof(value))))
				break;
			err = strcmp(wanted[j].kind, kind) || wanted[j].is_static != !!is_static
				      ? -EPROTONOSUPPORT
				      : set_offset(layout, &wanted[j], value, &found, row_of(j));
		}
		if (err)
			break;
	}
	return err ? err : found == all_fields ? 0 : -EPROTONOSUPPORT;
}

static int read_sizes(struct opd_far_memory *memory, uint64_t image, struct opd_java_layout *layout)
{
	struct table table = { .memory = memory, .image = image, .prefix = "gHotSpotVMType" };
	uint64_t type_column, size_column, value, found = 0;
	char type[NAME_BYTES];
	bool is_end;
	int err = open_table(&table);

	if (err || (err = read_column(&table, "EntryTypeNameOffset", &type_column)) ||
	    (err = read_column(&table, "EntrySizeOffset", &size_column)))
		return err;
	for (uint64_t i = 0; i < TABLE_MAX; i++) {
		uint64_t entry = table.at + i * table.stride;

		err = read_name(&table, entry, type_column, type, &is_end);
		if (err || is_end)
			break;
		for (size_t j = 0; !err && j < op_array_size(wanted_sizes); j++) {
			if (strcmp(wanted_sizes[j].type, type))
				continue;
			err = opd_far_memory_read(memory, entry + size_column, &value, sizeof(value));
			err = err ? err : set_offset(layout, &wanted_sizes[j], value, &found, j);
		}
		if (err)
			break;
	}
	return err ? err : found == all_sizes ? 0 : -EPROTONOSUPPORT;
}

static int read_constant(struct opd_far_memory *memory, uint64_t image, const char *name, uint32_t *ret_value)
{
	struct table table = { .memory = memory, .image = image, .prefix = "gHotSpotVMIntConstant" };
	uint64_t name_column, value_column;
	char text[NAME_BYTES];
	bool is_end;
	int err = open_table(&table);

	if (err || (err = read_column(&table, "EntryNameOffset", &name_column)) ||
	    (err = read_column(&table, "EntryValueOffset", &value_column)))
		return err;
	for (uint64_t i = 0; i < TABLE_MAX; i++) {
		uint64_t entry = table.at + i * table.stride;

		err = read_name(&table, entry, name_column, text, &is_end);
		if (err || is_end)
			break;
		if (!strcmp(text, name))
			return opd_far_memory_read(memory, entry + value_column, ret_value, sizeof(*ret_value));
	}
	return err ? err : -EPROTONOSUPPORT;
}

/*
 * No table says where an interpreted frame keeps its method and its position, and how numbers are
 * compressed. Both are known for two versions (frame_x86.hpp; compressedStream.hpp of 17,
 * unsigned5.hpp of 21).
 */
static int read_version(struct opd_far_memory *memory, uint64_t image, struct opd_java_layout *layout)
{
	uint32_t sender_sp, last_sp;
	int32_t major;
	int err = opd_far_memory_read(memory, layout->vm_major, &major, sizeof(major));

	if (err || (err = read_constant(memory, image, "frame::interpreter_frame_sender_sp_offset", &sender_sp)) ||
	    (err = read_constant(memory, image, "frame::interpreter_frame_last_sp_offset", &last_sp)))
		return err;
	if (!major) /* it has not begun yet */
		return -EAGAIN;
	if ((major != OPD_JAVA_OLD && major != OPD_JAVA_NEW) || (int32_t)sender_sp != -1 || (int32_t)last_sp != -2)
		return -EPROTONOSUPPORT;
	layout->version = (uint32_t)major;
	return read_constant(memory, image,
			     major == OPD_JAVA_OLD ? "ConstMethod::_has_linenumber_table"
						   : "ConstMethodFlags::_misc_has_linenumber_table",
			     &layout->has_lines);
}

int opd_java_read_layout(struct opd_far_memory *memory, uint64_t start, struct opd_java_layout *ret_layout)
{
	struct opd_java_layout layout = { 0 };
	int err = read_fields(memory, start, &layout);

	if (err || (err = read_sizes(memory, start, &layout)) || (err = read_version(memory, start, &layout)))
		return err;
	*ret_layout = layout;
	return 0;
}
