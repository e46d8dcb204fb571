/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/serialize.h"

#include <errno.h>

#include "libop/base/grow.h"

#define MAGIC        "opdsym10"
#define MAGIC_BYTES  8
#define HAS_CODE     1u
#define HAS_DEBUG    2u
#define IS_DAMAGED   4u
#define HAS_TABLE    8u
#define NO_STRING    UINT32_MAX
#define MAX_SECTIONS 65536

/* Strings of the image itself, whose offsets are in the header. */
enum text { DEBUG_PATH, DEBUG_LINK, BUILD_ID, NR_TEXTS };

static const size_t text_fields[NR_TEXTS] = {
	[DEBUG_PATH] = offsetof(struct opr_symbols, debug_path),
	[DEBUG_LINK] = offsetof(struct opr_symbols, debug_link),
	[BUILD_ID] = offsetof(struct opr_symbols, build_id),
};

struct header {
	char magic[MAGIC_BYTES];
	uint32_t flags;
	uint32_t nr_sections;
	uint64_t nr_symbols;
	uint64_t nr_string_bytes;
	uint64_t start_offset;
	uint64_t debug_size, debug_mtime_ns;
	uint32_t texts[NR_TEXTS + 1]; /* offsets in the strings; the last one is unused */
};

struct item {
	uint64_t start, size, vma;
	uint32_t name, shown; /* offsets in the strings */
	uint32_t section;
	uint32_t flags;
};

#define HAS_ALIASES 1u /* of an item: other names follow the name, up to an empty one */
#define IS_UNNAMED  2u
#define IS_LOCAL    4u

static_assert(sizeof(struct header) % 8 == 0 && sizeof(struct opr_section) % 8 == 0, "items are aligned");
static_assert(sizeof(struct header) == 72 && sizeof(struct item) == 40, "no holes");

/* ---- writing ---- */

static const char *text_of(const struct opr_symbols *symbols, size_t i)
{
	return *(const char *const *)(const void *)((const char *)symbols + text_fields[i]);
}

/* Appends a string with its NUL and returns its offset. */
static uint32_t add_string(struct op_text *strings, const char *string)
{
	size_t offset = strings->length;

	op_text_add_bytes(strings, string, strlen(string) + 1);
	return (uint32_t)offset;
}

static uint32_t add_names(struct op_text *strings, const struct opr_symbol *symbol)
{
	uint32_t offset = add_string(strings, symbol->name);
	const char *alias = symbol->name;

	while ((alias = opr_symbol_next_name(symbol, alias)))
		add_string(strings, alias);
	if (symbol->has_aliases)
		add_string(strings, "");
	return offset;
}

static void add_items(struct item *items, struct op_text *strings, const struct opr_symbols *symbols)
{
	for (size_t i = 0; i < symbols->nr_symbols; i++) {
		const struct opr_symbol *symbol = &symbols->symbols[i];
		uint32_t name = add_names(strings, symbol);
		uint32_t shown = symbol->shown == symbol->name ? name : add_string(strings, symbol->shown);
		uint32_t flags = (symbol->has_aliases ? HAS_ALIASES : 0) | (symbol->is_unnamed ? IS_UNNAMED : 0) |
				 (symbol->is_local ? IS_LOCAL : 0);

		items[i] = (struct item){ symbol->start, symbol->size, symbol->vma, name, shown, symbol->section, flags };
	}
}

int opr_symbols_serialize(struct opr_symbols_bytes *bytes, const struct opr_symbols *symbols)
{
	size_t nr_sections = symbols->sections ? symbols->nr_sections : 0;
	size_t nr_head_bytes =
		sizeof(struct header) + nr_sections * sizeof(*symbols->sections) + symbols->nr_symbols * sizeof(struct item);
	struct header header = {
		.magic = MAGIC,
		.flags = (symbols->code_path ? HAS_CODE : 0) | (symbols->has_debug_info ? HAS_DEBUG : 0) |
			 (symbols->is_damaged ? IS_DAMAGED : 0) | (symbols->has_table ? HAS_TABLE : 0),
		.nr_sections = (uint32_t)nr_sections,
		.nr_symbols = symbols->nr_symbols,
		.start_offset = symbols->start_offset,
		.debug_size = symbols->debug_size,
		.debug_mtime_ns = symbols->debug_mtime_ns,
	};
	char *head;

	if (!op_grow(&bytes->head, &bytes->capacity, nr_head_bytes))
		return -ENOMEM;
	head = bytes->head + sizeof(header);
	bytes->nr_head_bytes = nr_head_bytes;
	bytes->strings.length = 0;
	for (size_t i = 0; i < NR_TEXTS; i++)
		header.texts[i] = text_of(symbols, i) ? add_string(&bytes->strings, text_of(symbols, i)) : NO_STRING;
	if (nr_sections)
		memcpy(head, symbols->sections, nr_sections * sizeof(*symbols->sections));
	add_items((struct item *)(void *)(head + nr_sections * sizeof(*symbols->sections)), &bytes->strings, symbols);
	header.nr_string_bytes = bytes->strings.length;
	memcpy(bytes->head, &header, sizeof(header));
	if (bytes->strings.failed)
		return -ENOMEM;
	return header.nr_string_bytes >= NO_STRING ? -EOVERFLOW : 0;
}

void opr_symbols_bytes_free(struct opr_symbols_bytes *bytes)
{
	free(bytes->head);
	op_text_free(&bytes->strings);
}

/* ---- reading ---- */

static bool is_sound(const struct header *header, size_t nr_bytes)
{
	uint64_t left = nr_bytes - sizeof(*header);

	if (memcmp(header->magic, MAGIC, MAGIC_BYTES) || header->nr_sections > MAX_SECTIONS || header->nr_string_bytes > left)
		return false;
	left -= header->nr_string_bytes;
	if (header->nr_sections * sizeof(struct opr_section) > left)
		return false;
	left -= header->nr_sections * sizeof(struct opr_section);
	return left % sizeof(struct item) == 0 && left / sizeof(struct item) == header->nr_symbols;
}

static bool read_item(const struct header *header, const char *strings, const char *bytes, struct opr_symbol *symbol)
{
	struct item item;

	memcpy(&item, bytes, sizeof(item));
	if (item.name >= header->nr_string_bytes || item.shown >= header->nr_string_bytes ||
	    (header->nr_sections && item.section >= header->nr_sections))
		return false;
	*symbol = (struct opr_symbol){ .start = item.start,
				       .size = item.size,
				       .vma = item.vma,
				       .name = strings + item.name,
				       .shown = strings + item.shown,
				       .section = item.section,
				       .has_aliases = item.flags & HAS_ALIASES,
				       .is_unnamed = item.flags & IS_UNNAMED,
				       .is_local = item.flags & IS_LOCAL };
	return true;
}

/* The items must be sorted, as opr_symbols_find needs them. */
static int read_items(struct opr_symbols *symbols, const struct header *header, const char *bytes, const char *strings)
{
	symbols->symbols = reallocarray(NULL, header->nr_symbols + 1, sizeof(*symbols->symbols));
	if (!symbols->symbols)
		return -ENOMEM;
	for (uint64_t i = 0; i < header->nr_symbols; i++) {
		if (!read_item(header, strings, bytes + i * sizeof(struct item), &symbols->symbols[i]) ||
		    (i && symbols->symbols[i - 1].start >= symbols->symbols[i].start))
			return -EBADMSG;
		symbols->nr_symbols++;
	}
	return 0;
}

/* Copies all strings at once, with an empty one behind them, so that aliases have an end. */
static int keep_strings(struct opr_symbols *symbols, const struct header *header, const char **strings)
{
	char *copy = malloc(header->nr_string_bytes + 2);

	symbols->strings = calloc(2, sizeof(*symbols->strings));
	if (!copy || !symbols->strings) {
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, *strings, header->nr_string_bytes);
	copy[header->nr_string_bytes] = copy[header->nr_string_bytes + 1] = '\0';
	symbols->strings[symbols->nr_strings++] = copy;
	symbols->strings_capacity = 2;
	*strings = copy;
	return 0;
}

static bool find_string(const char *strings, const struct header *header, uint32_t offset, const char **ret_string)
{
	if (offset == NO_STRING)
		return true;
	if (offset >= header->nr_string_bytes)
		return false;
	*ret_string = strings + offset;
	return true;
}

static int keep_rest(struct opr_symbols *symbols, const struct header *header, const char *sections, const char *strings)
{
	symbols->start_offset = header->start_offset;
	symbols->has_debug_info = header->flags & HAS_DEBUG;
	symbols->is_damaged = header->flags & IS_DAMAGED;
	symbols->has_table = header->flags & HAS_TABLE;
	symbols->debug_size = header->debug_size;
	symbols->debug_mtime_ns = header->debug_mtime_ns;
	for (size_t i = 0; i < NR_TEXTS; i++)
		if (!find_string(strings, header, header->texts[i], (const char **)(void *)((char *)symbols + text_fields[i])))
			return -EBADMSG;
	symbols->sections = calloc(header->nr_sections + 1, sizeof(*symbols->sections));
	if (!symbols->sections)
		return -ENOMEM;
	symbols->nr_sections = header->nr_sections;
	memcpy(symbols->sections, sections, header->nr_sections * sizeof(*symbols->sections));
	return 0;
}

int opr_symbols_deserialize(struct opr_symbols *symbols, const char *bytes, size_t nr_bytes, const char *path, bool copies)
{
	const char *sections = bytes + sizeof(struct header), *items, *strings;
	struct header header;
	int err;

	if (nr_bytes < sizeof(header))
		return -EBADMSG;
	memcpy(&header, bytes, sizeof(header));
	if (!is_sound(&header, nr_bytes))
		return -EBADMSG;
	items = sections + header.nr_sections * sizeof(struct opr_section);
	strings = items + header.nr_symbols * sizeof(struct item);
	err = copies ? keep_strings(symbols, &header, &strings) : 0;
	if (!err)
		err = keep_rest(symbols, &header, sections, strings);
	if (!err)
		err = read_items(symbols, &header, items, strings);
	return !err && header.flags & HAS_CODE ? opr_symbols_keep_path(symbols, path) : err;
}
