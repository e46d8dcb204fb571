/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Symbols of an object file: .symtab of the file or of its debug file, through libbfd, and what
 * other sources add.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "libop/base/build_id.h"
#include "libop/base/sys.h"
#include "tools/common/log.h"
#include "tools/elf/bfd_file.h"
#include "tools/elf/open_file.h"
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
		.is_local = local,
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

		symbols->sections[section->index] = (struct opr_section){ start, start + bfd_section_size(section), OPR_NO_VMA };
		if (bfd_section_flags(section) & SEC_CODE && opr_bfd_has_addresses(section))
			symbols->sections[section->index].vma = bfd_section_vma(section);
	}
	symbols->nr_sections = bfd_count_sections(image);
	return 0;
}

static int add_symbols(struct opr_symbols *symbols, bfd *image, asymbol **table, long nr_symbols,
		       const struct opr_symbol_options *options)
{
	int err = 0;

	for (long i = 0; i < nr_symbols && !err; i++)
		err = add_symbol(symbols, image, table[i], options);
	return err;
}

static bool is_wanted(const struct opr_symbol_options *options, enum opr_symbol_source source)
{
	return options->sources & source;
}

static int add_tables(struct opr_symbols *symbols, const struct opr_elf *elf, bool has_symtab,
		      const struct opr_symbol_options *options, struct opr_ranges *ranges)
{
	int err = opr_frame_ranges(elf, ranges); /* also for functions that have no size */

	symbols->is_damaged |= err == -EBADMSG;
	if (err && err != -EBADMSG)
		return err;
	err = is_wanted(options, OPR_FROM_DYNSYM) ? opr_symbols_add_exported(symbols, elf, ranges) : 0;
	if (!err && is_wanted(options, OPR_FROM_DEBUGDATA) && !has_symtab)
		err = opr_symbols_add_debugdata(symbols, elf, ranges);
	if (!err && is_wanted(options, OPR_FROM_GO) && !has_symtab)
		err = opr_symbols_add_go(symbols, elf);
	return err;
}

/*
 * What the file has beside .symtab. In a relocatable file these tables have no addresses, and an
 * object of JIT code has none of them.
 */
static int add_others(struct opr_symbols *symbols, bfd *image, asymbol **table, long nr_symbols,
		      const struct opr_symbol_options *options, struct opr_ranges *ranges)
{
	struct opr_elf elf;
	int err;

	if (opr_sources_are_genuine(options->sources) || options->by_address || !(bfd_get_file_flags(image) & (EXEC_P | DYNAMIC)))
		return 0;
	err = opr_elf_open(&elf, op_sys_fcntl(opr_bfd_fd(image), F_DUPFD_CLOEXEC, 0));
	if (!err)
		err = add_tables(symbols, &elf, nr_symbols, options, ranges);
	opr_elf_close(&elf);
	if (err == -ENOEXEC)
		err = 0;
	if (!err && is_wanted(options, OPR_FROM_PLT))
		err = opr_symbols_add_plt(symbols, image, table, nr_symbols);
	return err;
}

/* In oprofile the last symbol reaches beyond its section. */
static uint64_t end_of_last(const struct opr_symbols *symbols, bfd *image, const struct opr_symbol_options *options)
{
	uint64_t file_bytes = bfd_get_file_size(image);
	const struct opr_symbol *last = NULL;

	for (size_t i = 0; i < symbols->nr_symbols; i++)
		if (!last || symbols->symbols[i].start >= last->start)
			last = &symbols->symbols[i];
	if (!last)
		return 0;
	if (!opr_sources_are_genuine(options->sources))
		return symbols->sections[last->section].end;
	return file_bytes > UINT64_MAX - last->start ? UINT64_MAX : last->start + file_bytes;
}

static int make_table(struct opr_symbols *symbols, bfd *image, asymbol **table, long nr_symbols,
		      const struct opr_symbol_options *options)
{
	struct opr_ranges ranges = { 0 };
	int err = add_sections(symbols, image, options);

	if (err)
		return err;
	err = add_symbols(symbols, image, table, nr_symbols, options);
	if (err)
		return err;
	err = add_others(symbols, image, table, nr_symbols, options, &ranges);
	if (err)
		goto out;
	err = opr_symbols_finish(symbols, end_of_last(symbols, image, options));
	if (!err && is_wanted(options, OPR_FROM_PLT))
		err = opr_symbols_name_chosen(symbols);
	if (!err && is_wanted(options, OPR_FROM_RANGES))
		err = opr_symbols_add_ranges(symbols, &ranges);
out:
	opr_frame_ranges_free(&ranges);
	return err || options->by_address ? err : opr_symbols_keep_path(symbols, bfd_get_filename(image));
}

/* ---- what tells the cache whether the symbols are still valid ---- */

/* A safe image has a shared key: symbols of a file that others may write are not cached. */
static int note_debug_file(struct opr_symbols *symbols, bfd *image, bfd *debug)
{
	const struct stat *st = opr_bfd_stat(debug);

	symbols->is_uncertain = opr_is_safe_file(opr_bfd_stat(image)) && !opr_is_safe_file(st);
	symbols->debug_path = opr_symbols_keep_string(symbols, bfd_get_filename(debug));
	symbols->debug_size = (uint64_t)st->st_size;
	symbols->debug_mtime_ns = (uint64_t)st->st_mtim.tv_sec * NS_PER_S + (uint64_t)st->st_mtim.tv_nsec;
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

/* .symtab of its debug file, if that has one, else its own. *ret_debug is NULL or to be closed. */
static asymbol **read_symtab(struct opr_symbols *symbols, bfd *image, const char *path, const char *name,
			     const struct opr_symbol_options *options, bfd **ret_debug, long *ret_nr_symbols)
{
	asymbol **table = NULL;

	if (!(options->sources & OPR_FROM_SYMTAB))
		return NULL;
	if (!opr_bfd_has_debug_info(image))
		*ret_debug = opr_bfd_open_debug_file(image, path, name, options->root);
	if (*ret_debug)
		table = opr_bfd_read_table(*ret_debug, ret_nr_symbols, &symbols->is_damaged);
	return table ? table : opr_bfd_read_table(image, ret_nr_symbols, &symbols->is_damaged);
}

static int note_files(struct opr_symbols *symbols, bfd *image, bfd *debug)
{
	int err = debug ? note_debug_file(symbols, image, debug) : 0;

	if (!err)
		err = note_debug_link(symbols, image);
	return err ? err : note_build_id(symbols, image);
}

static int read_image(struct opr_symbols *symbols, bfd *image, const char *path, const char *name,
		      const struct opr_symbol_options *options)
{
	bfd *debug = NULL;
	long nr_symbols = 0;
	asymbol **table = read_symtab(symbols, image, path, name, options, &debug, &nr_symbols);
	int err;

	symbols->has_debug_info = opr_bfd_has_debug_info(image);
	symbols->has_table = table;
	err = make_table(symbols, image, table, nr_symbols, options);
	if (!err)
		err = note_files(symbols, image, debug);
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
	symbols->file = opr_file_read_of(opr_bfd_stat(image));
	err = read_image(symbols, image, path, name, options);
	bfd_close(image);
	return err;
}
