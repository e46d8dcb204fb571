/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opd-tables/functions.h"

#include <errno.h>
#include <gelf.h>
#include <lzma.h>
#include <stdlib.h>

#include "libop/base/grow.h"

#define FUNCTIONS_MAX  (2u << 20)
#define NAME_MAX_BYTES 4096u /* longer names are cut */
#define DEBUGDATA_MAX  (256u << 20)

/* Which of several names of an address is shown: as opreport has it. Ranges come last. */
enum { RANK_LOCAL = 2, RANK_UNDERSCORE = 1, RANK_GO = 4, RANK_RANGE = 8 };

static uint32_t rank_of(const char *name, unsigned char info)
{
	return (GELF_ST_BIND(info) == STB_LOCAL ? RANK_LOCAL : 0) + (name[0] == '_' ? RANK_UNDERSCORE : 0);
}

static int add(struct opt_functions *functions, const struct opt_rows *rows, uint64_t address, uint64_t nr_bytes, const char *name,
	       uint32_t rank)
{
	const struct opt_segment *segment = NULL;
	uint64_t start;

	for (size_t i = 0; i < rows->nr_segments && !segment; i++)
		if (address >= rows->segments[i].address && address - rows->segments[i].address < rows->segments[i].nr_bytes)
			segment = &rows->segments[i];
	if (!segment)
		return 0;
	start = address - segment->address + segment->position;
	nr_bytes = op_min_u64(nr_bytes, segment->nr_bytes - (address - segment->address));
	if (functions->nr_functions == FUNCTIONS_MAX || functions->names.length > OP_ROW_NAME_BYTES_MAX - NAME_MAX_BYTES ||
	    start + nr_bytes > UINT32_MAX) {
		functions->is_part = true;
		return 0;
	}
	if (!op_grow(&functions->functions, &functions->capacity, functions->nr_functions + 1))
		return -ENOMEM;
	functions->functions[functions->nr_functions++] = (struct opt_function){
		.start = start, .end = start + nr_bytes, .name = (uint32_t)functions->names.length, .rank = rank
	};
	op_text_add_bytes(&functions->names, name, strnlen(name, NAME_MAX_BYTES - 1));
	op_text_add_bytes(&functions->names, "", 1);
	return functions->names.failed ? -ENOMEM : 0;
}

static int read_symbols(struct opt_functions *functions, const struct opt_rows *rows, Elf *elf, Elf_Scn *section,
			const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t nr_symbols = data ? data->d_size / sizeof(Elf64_Sym) : 0;
	int err = 0;

	for (size_t i = 0; i < nr_symbols && !err; i++) {
		GElf_Sym symbol;
		const char *name;

		if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF ||
		    (GELF_ST_TYPE(symbol.st_info) != STT_FUNC && GELF_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC))
			continue;
		name = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (name && *name)
			err = add(functions, rows, symbol.st_value, symbol.st_size, name, rank_of(name, symbol.st_info));
	}
	return err;
}

static int read_tables(struct opt_functions *functions, const struct opt_rows *rows, Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	int err = 0;

	while (!err && (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
			err = read_symbols(functions, rows, elf, section, &header);
	return err;
}

/* Unpacks .gnu_debugdata: an ELF file with a symbol table, packed by xz. NULL: it cannot be. */
static char *unpack(const Elf_Data *data, size_t *ret_nr_bytes)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	uint64_t capacity = 4 * (uint64_t)data->d_size + 4096; /* a size_t may have 32 bits */
	char *bytes = NULL, *more;
	lzma_ret status = lzma_stream_decoder(&stream, DEBUGDATA_MAX, 0);

	stream.next_in = data->d_buf;
	stream.avail_in = data->d_size;
	while (status == LZMA_OK && capacity <= DEBUGDATA_MAX) {
		more = realloc(bytes, capacity);
		if (!more)
			break;
		bytes = more;
		stream.next_out = (uint8_t *)bytes + stream.total_out;
		stream.avail_out = capacity - stream.total_out;
		status = lzma_code(&stream, LZMA_FINISH);
		capacity *= 2;
	}
	*ret_nr_bytes = stream.total_out;
	lzma_end(&stream);
	if (status == LZMA_STREAM_END)
		return bytes;
	free(bytes);
	return NULL;
}

static int read_debugdata(struct opt_functions *functions, const struct opt_image *image, const struct opt_rows *rows)
{
	Elf_Scn *section = NULL;
	const Elf_Data *data;
	GElf_Shdr header;
	size_t names, nr_bytes;
	char *bytes = NULL;
	Elf *elf;
	int err = 0;

	while (!bytes && (section = elf_nextscn(image->elf, section))) {
		const char *name;

		if (!gelf_getshdr(section, &header) || elf_getshdrstrndx(image->elf, &names) < 0)
			continue;
		name = elf_strptr(image->elf, names, header.sh_name);
		data = name && !strcmp(name, ".gnu_debugdata") ? elf_rawdata(section, NULL) : NULL;
		bytes = data && data->d_buf ? unpack(data, &nr_bytes) : NULL;
	}
	if (!bytes)
		return 0;
	elf = elf_memory(bytes, nr_bytes);
	if (elf && elf_kind(elf) == ELF_K_ELF)
		err = read_tables(functions, rows, elf);
	elf_end(elf);
	free(bytes);
	return err;
}

/* The names of Go come behind those of symbols, which are the same where there are some. */
static int read_go(struct opt_functions *functions, const struct opt_image *image, const struct opt_rows *rows)
{
	struct opr_go_function function;
	int err = 0;

	for (uint64_t i = 0; image->has_go && i < image->go.nr_functions && !functions->is_part && !err; i++)
		if (opr_go_function(&image->go, i, &function))
			err = add(functions, rows, function.start, function.end - function.start, function.name, RANK_GO);
	return err;
}

static int add_ranges(struct opt_functions *functions, const struct opt_rows *rows)
{
	for (size_t i = 0; i < rows->nr_ranges; i++) {
		if (functions->nr_functions == FUNCTIONS_MAX) {
			functions->is_part = true;
			return 0;
		}
		if (!op_grow(&functions->functions, &functions->capacity, functions->nr_functions + 1))
			return -ENOMEM;
		functions->functions[functions->nr_functions++] = (struct opt_function){
			.start = rows->ranges[i].start,
			.end = rows->ranges[i].end,
			.name = OP_ROW_NO_NAME,
			.rank = RANK_RANGE,
		};
	}
	return 0;
}

/* By start, then by rank. Names in the order of the file, so the result does not vary. */
static int compare(const void *left, const void *right)
{
	const struct opt_function *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

/* One function stays for each start, with the longest range. Each ends where the next begins. */
static void make_disjoint(struct opt_functions *functions)
{
	size_t nr_kept = 0;

	if (functions->nr_functions)
		qsort(functions->functions, functions->nr_functions, sizeof(*functions->functions), compare);
	for (size_t i = 0; i < functions->nr_functions; i++) {
		struct opt_function *function = &functions->functions[i];
		struct opt_function *last = nr_kept ? &functions->functions[nr_kept - 1] : NULL;

		if (last && last->start == function->start) {
			last->end = op_max_u64(last->end, function->end);
			continue;
		}
		if (last)
			last->end = op_min_u64(last->end, function->start);
		functions->functions[nr_kept++] = *function;
	}
	functions->nr_functions = nr_kept;
}

/* Drops the names that are not used, and puts the others in the order of the functions. */
static int pack_names(struct opt_functions *functions)
{
	struct op_text names = { 0 };

	for (size_t i = 0; i < functions->nr_functions; i++) {
		struct opt_function *function = &functions->functions[i];
		const char *name;

		if (function->name == OP_ROW_NO_NAME)
			continue;
		name = functions->names.data + function->name;
		function->name = (uint32_t)names.length;
		op_text_add_bytes(&names, name, strlen(name) + 1);
	}
	op_text_free(&functions->names);
	functions->names = names;
	return names.failed ? -ENOMEM : 0;
}

int opt_functions_read(struct opt_functions *functions, const struct opt_image *image, const struct opt_rows *rows)
{
	int err = read_tables(functions, rows, image->elf);

	if (err)
		return err;
	err = read_debugdata(functions, image, rows);
	if (err)
		return err;
	err = read_go(functions, image, rows);
	if (err)
		return err;
	err = add_ranges(functions, rows);
	if (err)
		return err;
	make_disjoint(functions);
	return pack_names(functions);
}

void opt_functions_free(struct opt_functions *functions)
{
	if (!functions)
		return;
	free(functions->functions);
	op_text_free(&functions->names);
	*functions = (struct opt_functions){ 0 };
}
