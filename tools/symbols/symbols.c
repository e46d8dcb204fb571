/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"
#include "libop/base/text.h"
#include "libop/base/grow.h"
#include "tools/elf/line_table.h"
#include "tools/elf/module_file.h"
#include "tools/elf/open_file.h"

#define PIECE_BYTES     256 /* the first; each is twice as long as the one before */
#define PIECE_DOUBLINGS 8
#define CODE_BYTES_MAX  (16u << 20)  /* of one symbol */
#define NAMES_BYTES_MAX (256u << 20) /* of all; then names are cut and stay mangled */
#define NAME_CUT_BYTES  64u

/* The contents of a compressed module, from the first opr_symbols_code on. */
struct opr_unpacked {
	int fd;        /* or -errno */
	bool is_tried; /* fd is set */
};

/* Returns a new piece of memory for strings. */
static char *add_piece(struct opr_symbols *symbols, size_t nr_bytes)
{
	char *piece;

	if (!op_grow(&symbols->strings, &symbols->strings_capacity, symbols->nr_strings + 1))
		return NULL;
	piece = malloc(nr_bytes);
	if (piece)
		symbols->strings[symbols->nr_strings++] = piece;
	return piece;
}

/* Copies bytes and adds a NUL. */
static const char *keep_bytes(struct opr_symbols *symbols, const char *bytes, size_t nr_bytes)
{
	char *copy = symbols->free_bytes;

	if (nr_bytes >= symbols->nr_free_bytes) {
		size_t next_bytes = (size_t)PIECE_BYTES << op_min_u64(symbols->nr_strings, PIECE_DOUBLINGS);
		size_t piece_bytes = op_max_u64(nr_bytes + 1, next_bytes);

		copy = add_piece(symbols, piece_bytes);
		if (!copy)
			return NULL;
		symbols->nr_free_bytes = piece_bytes;
	}
	symbols->free_bytes = copy + nr_bytes + 1;
	symbols->nr_free_bytes -= nr_bytes + 1;
	memcpy(copy, bytes, nr_bytes);
	copy[nr_bytes] = '\0';
	return copy;
}

/*
 * Many symbols of a hostile file may share the bytes of one long name. None of them makes the image
 * lose its other symbols: what is too long is cut.
 */
static const char *keep_name(struct opr_symbols *symbols, const char *name)
{
	bool is_full = symbols->nr_name_bytes > NAMES_BYTES_MAX;
	size_t nr_bytes = strnlen(name, is_full ? NAME_CUT_BYTES : OPR_NAME_BYTES_MAX);

	symbols->nr_name_bytes += nr_bytes;
	return keep_bytes(symbols, name, nr_bytes);
}

int opr_symbols_add(struct opr_symbols *symbols, const struct opr_symbol *symbol)
{
	const char *name = keep_name(symbols, symbol->name);
	struct opr_symbol *added;

	if (!name || !op_grow(&symbols->symbols, &symbols->capacity, symbols->nr_symbols + 1))
		return -ENOMEM;
	added = &symbols->symbols[symbols->nr_symbols];
	*added = *symbol;
	added->name = name;
	added->order = (uint32_t)symbols->nr_symbols++;
	return 0;
}

/* The kernel has copies of names: for code that runs early, and for system calls of 32 bits. */
static bool is_alias_of_kernel(const char *name)
{
	return !strncmp(name, "__pi_", 5) || !strncmp(name, "__ia32_", 7);
}

uint32_t opr_symbol_rank(const char *name, bool local, bool weak)
{
	return (uint32_t)is_alias_of_kernel(name) << 5 | (uint32_t)!strcmp(name, "Letext") << 4 |
	       (uint32_t)!strncmp(name, "??", 2) << 3 | (uint32_t)local << 2 | (uint32_t)(name[0] == '_') << 1 | (uint32_t)weak;
}

static int compare_symbols(const void *left, const void *right)
{
	const struct opr_symbol *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/*
 * The first of the symbols with one start, with the names of the others of its source behind its
 * own. A name that is listed twice in a row is kept once.
 */
static int merge_names(struct opr_symbols *symbols, const struct opr_symbol *same, size_t nr_same, struct op_text *names,
		       struct opr_symbol *ret_symbol)
{
	struct opr_symbol symbol = same[0];

	op_text_truncate(names, 0);
	for (size_t i = 1; i < nr_same && same[i].rank / OPR_RANK_SIZED == same[0].rank / OPR_RANK_SIZED; i++) {
		if (!strcmp(same[i].name, same[0].name) || !strcmp(same[i].name, same[i - 1].name))
			continue;
		if (!symbol.has_aliases)
			op_text_add_bytes(names, symbol.name, strlen(symbol.name) + 1);
		op_text_add_bytes(names, same[i].name, strlen(same[i].name) + 1);
		symbol.has_aliases = true;
	}
	if (symbol.has_aliases)
		symbol.name = names->failed ? NULL : keep_bytes(symbols, names->data, names->length);
	if (!symbol.name)
		return -ENOMEM;
	*ret_symbol = symbol;
	return 0;
}

/* Keeps one symbol for each start. */
static int merge_starts(struct opr_symbols *symbols)
{
	struct op_text names = { 0 };
	size_t nr_kept = 0, next;
	int err = 0;

	for (size_t i = 0; i < symbols->nr_symbols && !err; i = next) {
		const struct opr_symbol *first = &symbols->symbols[i];

		next = i + 1;
		while (next < symbols->nr_symbols && symbols->symbols[next].start == first->start)
			next++;
		err = merge_names(symbols, first, next - i, &names, &symbols->symbols[nr_kept]);
		nr_kept += !err;
	}
	op_text_free(&names);
	symbols->nr_symbols = nr_kept;
	return err;
}

int opr_symbols_finish(struct opr_symbols *symbols, uint64_t last_end)
{
	int err;

	if (!symbols->nr_symbols)
		return 0;
	qsort(symbols->symbols, symbols->nr_symbols, sizeof(*symbols->symbols), compare_symbols);
	err = merge_starts(symbols);
	for (size_t i = 0; i < symbols->nr_symbols && !err; i++) {
		struct opr_symbol *symbol = &symbols->symbols[i];
		const struct opr_symbol *next = i + 1 < symbols->nr_symbols ? symbol + 1 : NULL;
		uint64_t end = last_end;

		if (next)
			end = next->section == symbol->section ? next->start : symbols->sections[symbol->section].end;
		end = end > symbol->start ? end - symbol->start : 0;
		symbol->size = symbol->is_sized ? op_min_u64(symbol->size, end) : end;
	}
	return err;
}

const char *opr_symbols_keep_string(struct opr_symbols *symbols, const char *string)
{
	return keep_bytes(symbols, string, strlen(string));
}

int opr_symbols_keep_path(struct opr_symbols *symbols, const char *path)
{
	symbols->code_path = opr_symbols_keep_string(symbols, path);
	if (!symbols->code_path)
		return -ENOMEM;
	if (!opr_module_is_packed(path))
		return 0;
	symbols->unpacked = calloc(1, sizeof(*symbols->unpacked));
	return symbols->unpacked ? 0 : -ENOMEM;
}

/* An entry of the PLT: the name of the function, demangled, with the suffix. */
static bool show_plt(struct op_text *text, const char *name, size_t length, enum opr_demangle demangle)
{
	char *function = strndup(name, length);
	bool is_mangled = function && opr_demangle(text, function, demangle);

	text->failed |= !function;
	if (is_mangled)
		op_text_add(text, OPR_PLT_SUFFIX);
	free(function);
	return is_mangled || text->failed;
}

/* False: the name stays as it is. */
static bool make_shown(struct op_text *text, const char *name, enum opr_demangle demangle)
{
	size_t length = strlen(name), suffix = strlen(OPR_PLT_SUFFIX);

	if (length > suffix && !strcmp(name + length - suffix, OPR_PLT_SUFFIX))
		return show_plt(text, name, length - suffix, demangle);
	if (strncmp(name, "??", 2) != 0)
		return opr_demangle(text, name, demangle);
	text->length = 0;
	op_text_printf(text, "anonymous symbol from section %s", name + 2);
	return true;
}

int opr_symbols_demangle(struct opr_symbols *symbols, enum opr_demangle demangle)
{
	struct op_text text = { 0 };
	int err = 0;

	for (size_t i = 0; i < symbols->nr_symbols && !err; i++) {
		struct opr_symbol *symbol = &symbols->symbols[i];

		symbol->shown = symbol->name;
		if (symbols->nr_name_bytes <= NAMES_BYTES_MAX && make_shown(&text, symbol->name, demangle)) {
			symbols->nr_name_bytes += text.length;
			symbol->shown = text.failed ? NULL : keep_bytes(symbols, text.data ? text.data : "", text.length);
		}
		if (!symbol->shown)
			err = -ENOMEM;
	}
	op_text_free(&text);
	return err;
}

static bool has_vma(const struct opr_section *section, uint64_t vma)
{
	return section->vma != OPR_NO_VMA && vma >= section->vma && vma - section->vma < section->end - section->start;
}

bool opr_symbols_section(const struct opr_symbols *symbols, uint64_t vma, uint32_t *section)
{
	if (*section < symbols->nr_sections && has_vma(&symbols->sections[*section], vma))
		return true;
	for (uint32_t i = 0; i < symbols->nr_sections; i++) {
		if (!has_vma(&symbols->sections[i], vma))
			continue;
		*section = i;
		return true;
	}
	return false;
}

uint64_t opr_symbols_vma(const struct opr_symbols *symbols, uint64_t position)
{
	if (!symbols->nr_symbols)
		return position;
	if (!symbols->sections)
		return position - symbols->symbols[0].start + symbols->symbols[0].vma;
	for (size_t i = 0; i < symbols->nr_sections; i++) {
		const struct opr_section *section = &symbols->sections[i];

		if (section->vma != OPR_NO_VMA && position >= section->start && position < section->end)
			return position - section->start + section->vma;
	}
	return position;
}

const struct opr_symbol *opr_symbols_find(const struct opr_symbols *symbols, uint64_t position)
{
	size_t nr = op_nr_leading(symbols->symbols, symbols->nr_symbols, symbol, symbol->start <= position);
	const struct opr_symbol *last = nr ? &symbols->symbols[nr - 1] : NULL;

	return last && position - last->start < last->size ? last : NULL;
}

static int read_unpacked(const struct opr_symbols *symbols, uint64_t position, uint8_t *bytes, size_t *nr_bytes)
{
	struct opr_unpacked *unpacked = symbols->unpacked;
	struct stat st;

	if (!unpacked->is_tried)
		unpacked->fd = opr_module_unpack(symbols->code_path, &st);
	if (!unpacked->is_tried && unpacked->fd >= 0 && !opr_is_file_read(&st, &symbols->file)) {
		close(unpacked->fd);
		unpacked->fd = -ESTALE;
	}
	unpacked->is_tried = true;
	return unpacked->fd < 0 ? unpacked->fd : op_file_read_at(unpacked->fd, bytes, *nr_bytes, (off_t)position, nr_bytes);
}

static int read_at(const struct opr_symbols *symbols, uint64_t position, uint8_t *bytes, size_t *nr_bytes)
{
	struct stat st;
	int fd = opr_open_regular(symbols->code_path, &st), err = fd < 0 ? fd : opr_is_file_read(&st, &symbols->file) ? 0 : -ESTALE;
	ssize_t got = err ? err : op_sys_pread(fd, bytes, *nr_bytes, (off_t)position);

	if (got < 0)
		err = (int)got;

	if (fd >= 0)
		close(fd);
	if (!err)
		*nr_bytes = (size_t)got;
	return err;
}

int opr_symbols_code(const struct opr_symbols *symbols, const struct opr_symbol *symbol, uint8_t **ret_code, size_t *ret_nr_bytes)
{
	uint64_t end = symbols->sections ? symbols->sections[symbol->section].end : 0;
	size_t nr_bytes = end > symbol->start ? (size_t)(end - symbol->start) : 0;
	uint8_t *code;
	int err;

	if (nr_bytes > symbol->size)
		nr_bytes = (size_t)symbol->size;
	if (!symbols->code_path || !nr_bytes || nr_bytes > CODE_BYTES_MAX)
		return -ENODATA;
	code = malloc(nr_bytes);
	if (!code)
		return -ENOMEM;
	err = symbols->unpacked ? read_unpacked(symbols, symbol->start, code, &nr_bytes)
				: read_at(symbols, symbol->start, code, &nr_bytes);
	if (err < 0) {
		free(code);
		return err;
	}
	*ret_code = code;
	*ret_nr_bytes = nr_bytes;
	return 0;
}

bool opr_symbols_line(const struct opr_symbols *symbols, uint64_t vma, const char **ret_file, unsigned int *ret_line)
{
	return symbols->table && opr_line_table_find(symbols->table, vma, ret_file, ret_line);
}

const struct opr_frame *opr_symbols_frame(const struct opr_symbols *symbols, uint64_t vma)
{
	return symbols->table ? opr_line_table_frame(symbols->table, vma) : NULL;
}

void opr_symbols_free(struct opr_symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->nr_strings; i++)
		free(symbols->strings[i]);
	if (symbols->unpacked && symbols->unpacked->is_tried && symbols->unpacked->fd >= 0)
		close(symbols->unpacked->fd);
	free(symbols->unpacked);
	free(symbols->strings);
	free(symbols->symbols);
	free(symbols->sections);
	opr_line_table_free(symbols->table);
	*symbols = (struct opr_symbols){ 0 };
}
