/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Symbols of an object file, through libbfd. */
#include <errno.h>
#include <sys/stat.h>

#include "libop/base/build_id.h"
#include "tools/common/log.h"
#include "tools/symbols/bfd_file.h"
#include "tools/symbols/symbol_sources.h"

#define NS_PER_S 1000000000u

/* ---- one symbol ---- */

/* Mapping symbols of Arm, labels of compilers. */
static bool is_boring_name(const char *name)
{
	static const char *const names[] = { "$a", "$t", "$d", "$x", "gcc2_compiled." };

	for (size_t i = 0; i < op_array_size(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return !strncmp(name, ".L", 2);
}

/* The section of the image that a symbol, maybe of its debug file, is in. NULL: no code. */
static asection *section_of(bfd *image, const asymbol *symbol)
{
	asection *section = symbol->section;

	if (!section || !(bfd_section_flags(section) & SEC_CODE) || (symbol->flags & BSF_SECTION_SYM) ||
	    (symbol->name && is_boring_name(symbol->name)))
		return NULL;
	if (section->owner != image)
		section = bfd_get_section_by_name(image, bfd_section_name(section));
	return section && !opr_bfd_has_addresses(section) ? NULL : section;
}

/* Where a section begins, as a position (symbols.h). */
static uint64_t section_start(const asection *section, const struct opr_symbol_options *options)
{
	return options->by_address ? bfd_section_vma(section) : (uint64_t)section->filepos;
}

static int add_symbol(struct opr_symbols *symbols, bfd *image, const asymbol *symbol, const struct opr_symbol_options *options)
{
	asection *section = section_of(image, symbol);
	const char *name = opr_bfd_symbol_name(symbol);
	char unnamed[256];
	struct opr_symbol to_add;
	bool local;

	if (!section || section->index >= bfd_count_sections(image))
		return 0;
	symbols->is_damaged |= symbol->name && !name;
	if (!name || !*name) {
		snprintf(unnamed, sizeof(unnamed), "??%s", bfd_section_name(section));
		name = unnamed;
	}
	/* A weak symbol is neither. */
	local = symbol->flags & BSF_LOCAL && !(symbol->flags & BSF_GLOBAL);
	to_add = (struct opr_symbol){
		.vma = bfd_asymbol_value(symbol),
		.name = name,
		.section = section->index,
		.rank = opr_symbol_rank(name, local, symbol->flags & BSF_WEAK),
	};
	to_add.start = to_add.vma - bfd_section_vma(section) + section_start(section, options);
	return opr_symbols_add(symbols, &to_add);
}

/* ---- the table ---- */

static int add_sections(struct opr_symbols *symbols, bfd *image, const struct opr_symbol_options *options)
{
	asection *text = bfd_get_section_by_name(image, ".text");

	symbols->start_offset = text ? (uint64_t)text->filepos : 0;
	symbols->sections = calloc(bfd_count_sections(image) + 1, sizeof(*symbols->sections));
	if (!symbols->sections)
		return -ENOMEM;
	for (asection *section = image->sections; section; section = section->next) {
		uint64_t start = section_start(section, options);

		symbols->sections[section->index] = (struct opr_section){ start, start + bfd_section_size(section) };
	}
	symbols->nr_sections = bfd_count_sections(image);
	return 0;
}

static int read_symbols(struct opr_symbols *symbols, bfd *image, asymbol **table, long nr_symbols,
			const struct opr_symbol_options *options)
{
	uint64_t file_bytes = bfd_get_file_size(image), greatest = 0;
	int err = add_sections(symbols, image, options);

	for (long i = 0; i < nr_symbols && !err; i++)
		err = add_symbol(symbols, image, table[i], options);
	if (err)
		return err;
	for (size_t i = 0; i < symbols->nr_symbols; i++)
		greatest = op_max_u64(greatest, symbols->symbols[i].start);
	err = opr_symbols_finish(symbols, file_bytes > UINT64_MAX - greatest ? UINT64_MAX : greatest + file_bytes);
	return err || options->by_address ? err : opr_symbols_keep_path(symbols, bfd_get_filename(image));
}

/* ---- what tells the cache whether the symbols are still valid ---- */

static int note_debug_file(struct opr_symbols *symbols, bfd *debug)
{
	struct stat st;

	if (stat(bfd_get_filename(debug), &st) < 0)
		return 0;
	symbols->debug_path = opr_symbols_keep_string(symbols, bfd_get_filename(debug));
	symbols->debug_size = (uint64_t)st.st_size;
	symbols->debug_mtime_ns = (uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
	return symbols->debug_path ? 0 : -ENOMEM;
}

static int note_debug_link(struct opr_symbols *symbols, bfd *image)
{
	unsigned long crc;
	char *link = bfd_get_debug_link_info(image, &crc);

	if (link)
		symbols->debug_link = opr_symbols_keep_string(symbols, link);
	free(link);
	return link && !symbols->debug_link ? -ENOMEM : 0;
}

static int note_build_id(struct opr_symbols *symbols, bfd *image)
{
	char digits[OP_BUILD_ID_DIGITS];

	if (!image->build_id)
		return 0;
	op_build_id_format(image->build_id->data, image->build_id->size, digits);
	symbols->build_id = opr_symbols_keep_string(symbols, digits);
	return symbols->build_id ? 0 : -ENOMEM;
}

/* ---- an image ---- */

/* The symbols of its debug file, if that has any, else its own. */
static int read_image(struct opr_symbols *symbols, bfd *image, const char *path, const char *name,
		      const struct opr_symbol_options *options)
{
	bfd *debug = opr_bfd_has_debug_info(image) ? NULL : opr_bfd_open_debug_file(image, path, name, options->root);
	long nr_symbols = 0;
	asymbol **table = debug ? opr_bfd_read_table(debug, &nr_symbols, &symbols->is_damaged) : NULL;
	int err;

	if (!table)
		table = opr_bfd_read_table(image, &nr_symbols, &symbols->is_damaged);
	symbols->has_debug_info = opr_bfd_has_debug_info(image);
	err = read_symbols(symbols, image, table, nr_symbols, options);
	if (!err && debug)
		err = note_debug_file(symbols, debug);
	if (!err)
		err = note_debug_link(symbols, image);
	if (!err)
		err = note_build_id(symbols, image);
	if (!err)
		err = opr_symbols_demangle(symbols, options->demangle);
	opr_verbose(OPR_TOPIC_bfd, "%s: %zu symbols", path, symbols->nr_symbols);
	free(table);
	if (debug)
		bfd_close(debug);
	return err;
}

int opr_symbols_read_bfd(struct opr_symbols *symbols, const char *path, const char *name, const struct opr_symbol_options *options)
{
	bfd *image = opr_bfd_open(path);
	int err;

	if (!image)
		return -ENOEXEC;
	err = read_image(symbols, image, path, name, options);
	bfd_close(image);
	return err;
}
