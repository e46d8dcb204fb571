/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/bfd_file.h"

#include <errno.h>
#include <sys/stat.h>

#include "tools/symbols/debug_damage.h"
#include "tools/symbols/image_identity.h"
#include "tools/symbols/module_file.h"
#include "tools/common/log.h"
#include "tools/symbols/symbols.h"
#include "tools/symbols/lines.h"

#define TEXT_SECTION    ".text"
#define NS_PER_S        1000000000u
#define UNREADABLE_NAME "(null)" /* bfd_elf_sym_name of libbfd */

static bfd *open_packed(const char *path)
{
	int fd = opr_module_unpack(path);

	return fd < 0 ? NULL : bfd_fopen(path, NULL, "rb", fd);
}

bfd *opr_bfd_open(const char *path)
{
	static bool initialised;
	struct stat st;
	bfd *abfd;

	if (!initialised) {
		bfd_init();
		opr_debug_hush();
		initialised = true;
	}
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	abfd = opr_module_is_packed(path) ? open_packed(path) : bfd_openr(path, NULL);
	if (!abfd)
		return NULL;
	abfd->flags |= BFD_DECOMPRESS;
	if (!bfd_check_format(abfd, bfd_object)) {
		bfd_close(abfd);
		return NULL;
	}
	return abfd;
}

bool opr_bfd_has_debug_info(bfd *abfd)
{
	static const char *const names[] = { ".debug_info", ".zdebug_info", ".stab" };

	for (size_t i = 0; i < op_array_size(names); i++)
		if (bfd_get_section_by_name(abfd, names[i]))
			return true;
	return false;
}

/* ---- symbols ---- */

const char *opr_bfd_symbol_name(const asymbol *symbol)
{
	return symbol->name && !strcmp(symbol->name, UNREADABLE_NAME) ? NULL : symbol->name;
}

static asymbol **read_table(bfd *abfd, long *ret_nr_symbols, bool *is_damaged)
{
	long bytes = bfd_get_file_flags(abfd) & HAS_SYMS ? bfd_get_symtab_upper_bound(abfd) : 0;
	asymbol **table = bytes > 0 ? malloc((size_t)bytes) : NULL;
	long nr_symbols = table ? bfd_canonicalize_symtab(abfd, table) : 0;

	*is_damaged |= bytes < 0 || nr_symbols < 0;
	if (nr_symbols <= 0) {
		free(table);
		return NULL;
	}
	*ret_nr_symbols = nr_symbols;
	return table;
}

asymbol **opr_bfd_read_table(bfd *abfd)
{
	bool is_damaged = false;
	long nr_symbols;

	return read_table(abfd, &nr_symbols, &is_damaged);
}

static bool is_boring_name(const char *name)
{
	static const char *const mapping[] = { "$a", "$t", "$d", "$x", "gcc2_compiled." };

	for (size_t i = 0; i < op_array_size(mapping); i++)
		if (!strcmp(name, mapping[i]))
			return true;
	return !strncmp(name, ".L", 2);
}

/* Of a module the sections that are loaded elsewhere, and not where its samples are counted from. */
static bool lies_elsewhere(const asection *section)
{
	return !bfd_section_vma(section) && strcmp(bfd_section_name(section), TEXT_SECTION);
}

/* The section of the image that a symbol, of it or of its debug file, lies in; NULL when the symbol is of no interest. */
static asection *section_of(bfd *image, const asymbol *symbol)
{
	asection *section = symbol->section;

	if (!section || !(bfd_section_flags(section) & SEC_CODE) || (symbol->flags & BSF_SECTION_SYM) ||
	    (symbol->name && is_boring_name(symbol->name)))
		return NULL;
	if (section->owner != image)
		section = bfd_get_section_by_name(image, bfd_section_name(section));
	return section && lies_elsewhere(section) ? NULL : section;
}

/* Where a section begins, in positions. */
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

	if (!section || section->index >= bfd_count_sections(image))
		return 0;
	symbols->is_damaged |= symbol->name && !name;
	if (!name || !*name) {
		snprintf(unnamed, sizeof(unnamed), "??%s", bfd_section_name(section));
		name = unnamed;
	}
	to_add = (struct opr_symbol){
		.vma = bfd_asymbol_value(symbol),
		.name = name,
		.section = section->index,
	};
	to_add.start = to_add.vma - bfd_section_vma(section) + section_start(section, options);
	to_add.rank = opr_symbol_rank(to_add.name, symbol->flags & BSF_GLOBAL, symbol->flags & BSF_WEAK);
	return opr_symbols_add(symbols, &to_add);
}

static uint64_t greatest_start(const struct opr_symbols *symbols)
{
	uint64_t greatest = 0;

	for (size_t i = 0; i < symbols->nr_symbols; i++)
		greatest = op_max_u64(greatest, symbols->symbols[i].start);
	return greatest;
}

static int finish(struct opr_symbols *symbols, bfd *image, const struct opr_symbol_options *options)
{
	struct opr_section *sections = calloc(bfd_count_sections(image) + 1, sizeof(*sections));
	uint64_t greatest = greatest_start(symbols), file_bytes = bfd_get_file_size(image);

	if (!sections)
		return -ENOMEM;
	for (asection *section = image->sections; section; section = section->next) {
		uint64_t start = section_start(section, options);

		sections[section->index] = (struct opr_section){ start, start + bfd_section_size(section) };
	}
	symbols->sections = sections;
	symbols->nr_sections = bfd_count_sections(image);
	opr_symbols_finish(symbols, sections, file_bytes > UINT64_MAX - greatest ? UINT64_MAX : greatest + file_bytes);
	return options->by_address ? 0 : opr_symbols_keep_path(symbols, bfd_get_filename(image));
}

static int read_symbols(struct opr_symbols *symbols, bfd *image, asymbol **table, long nr_symbols,
			const struct opr_symbol_options *options)
{
	asection *text = bfd_get_section_by_name(image, TEXT_SECTION);
	int err = 0;

	symbols->start_offset = text ? (uint64_t)text->filepos : 0;
	for (long i = 0; i < nr_symbols && !err; i++)
		err = add_symbol(symbols, image, table[i], options);
	return err ? err : finish(symbols, image, options);
}

/* ---- lines ---- */

static void keep_lines(struct opr_symbols *symbols, bfd **abfd, asymbol ***table)
{
	struct opr_lines *lines = opr_bfd_has_debug_info(*abfd) ? malloc(sizeof(*lines)) : NULL;

	if (!lines)
		return;
	*lines = (struct opr_lines){ *abfd, *table };
	symbols->lines = lines;
	*abfd = NULL;
	*table = NULL;
}

/*
 * Debugging information that is not relocated yet is, with the symbols. Else libbfd would look through all of them for the function of each address without a line,
 * and nobody asks it for that; without a table it does not unpack compressed sections.
 */
bool opr_lines_find(struct opr_lines *lines, uint64_t vma, const char **ret_file, unsigned int *ret_line)
{
	asymbol *none = NULL, **symbols = bfd_get_file_flags(lines->abfd) & HAS_RELOC ? lines->table : &none;

	for (asection *section = lines->abfd->sections; section; section = section->next) {
		uint64_t offset = vma - bfd_section_vma(section);
		const char *file = NULL, *function = NULL;
		unsigned int line = 0;

		if (!(bfd_section_flags(section) & SEC_CODE) || lies_elsewhere(section) || vma < bfd_section_vma(section) ||
		    offset >= bfd_section_size(section))
			continue;
		if (!bfd_find_nearest_line(lines->abfd, section, symbols, offset, &file, &function, &line) || !file || !line)
			continue;
		*ret_file = file;
		*ret_line = line;
		return true;
	}
	return false;
}

const char *opr_lines_damage(const struct opr_lines *lines, bool found, const char **ret_path)
{
	*ret_path = bfd_get_filename(lines->abfd);
	return opr_debug_damage(lines->abfd, found);
}

void opr_lines_free(struct opr_lines *lines)
{
	if (!lines)
		return;
	bfd_close(lines->abfd);
	free(lines->table);
	free(lines);
}

/* ---- an image ---- */

/* So that whoever keeps the symbols sees when the file is another. */
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

/* So that whoever keeps them sees when there is one. */
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
	char digits[2 * OP_BUILD_ID_BYTES_MAX + 1];

	if (!image->build_id)
		return 0;
	opr_format_build_id(image->build_id->data, image->build_id->size, digits);
	symbols->build_id = opr_symbols_keep_string(symbols, digits);
	return symbols->build_id ? 0 : -ENOMEM;
}

static int read_image(struct opr_symbols *symbols, bfd *image, const char *path, const char *name,
		      const struct opr_symbol_options *options)
{
	bfd *debug = opr_bfd_has_debug_info(image) ? NULL : opr_bfd_open_debug_file(image, path, name, options->root);
	long nr_symbols = 0;
	asymbol **table = debug ? read_table(debug, &nr_symbols, &symbols->is_damaged) : NULL;
	bfd *source = table ? debug : image;
	int err;

	if (!table)
		table = read_table(image, &nr_symbols, &symbols->is_damaged);
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
	if (!err && options->lines && table && source == debug)
		keep_lines(symbols, &debug, &table);
	free(table);
	if (debug)
		bfd_close(debug);
	return err;
}

int opr_symbols_read_bfd(struct opr_symbols *symbols, const char *path, const char *name, const struct opr_symbol_options *options)
{
	bfd *image = opr_bfd_open(path);
	long nr_symbols;
	int err;

	if (!image)
		return -ENOEXEC;
	err = read_image(symbols, image, path, name, options);
	if (!err && options->lines && !symbols->lines) {
		asymbol **table = read_table(image, &nr_symbols, &symbols->is_damaged);

		if (table)
			keep_lines(symbols, &image, &table);
		free(table);
	}
	if (image)
		bfd_close(image);
	return err;
}
