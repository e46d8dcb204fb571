/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/jit/object.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/seal.h"
#include "libop/base/sys.h"
#include "libop/odb/replace.h"
#include "pipeline/jit/debug_line.h"
#include "pipeline/jit/elf_host.h"

#define COPY_BYTES      65536u
#define FILE_MODE       0644
#define SECTION_ALIGNED 16u
#define NAME_TEXT       ".text"
#define NAME_TEXT_MAP   ".text.map"

#define NAME_LATE ".text.late"

/* Each late function has a section of its own after these. */
enum section_id { NO_SECTION, CODE, ADDRESSES, SYMTAB, STRTAB, SHSTRTAB, ABBREV, INFO, LINE, NR_SECTIONS };

static_assert(NR_SECTIONS + OPD_JIT_LATE_MAX < SHN_LORESERVE, "the number of a section is a field of symbols");

struct builder {
	const struct opd_jit_map *map;
	const struct opd_jitdump *dump;
	int fd;
	struct op_text symbols, strings, section_names;
	struct opd_jit_lines lines;
	Elf64_Shdr *headers; /* NR_SECTIONS + map->nr_late */
	size_t nr_headers;
	const struct opd_jit_function **late; /* those of headers[NR_SECTIONS + i] */
	uint64_t end;                         /* end of the last section with contents */
};

/* ---- symbols ---- */

static void add_symbol(struct builder *builder, const struct opd_jit_function *function, size_t section, uint64_t at)
{
	Elf64_Sym symbol = {
		.st_name = (Elf64_Word)builder->strings.length,
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		.st_shndx = (Elf64_Section)section,
		.st_value = at,
		.st_size = function->bytes,
	};
	const char *name = function->name;

	op_text_add_bytes(&builder->strings, name, strlen(name) + 1);
	op_text_add_bytes(&builder->symbols, &symbol, sizeof(symbol));
}

static void make_symbols(struct builder *builder)
{
	static const Elf64_Sym none;

	op_text_add_bytes(&builder->symbols, &none, sizeof(none));
	op_text_add_bytes(&builder->strings, "", 1);
	for (size_t i = 0; i < builder->map->functions.nr_rows; i++) {
		const struct opd_jit_function *function = &builder->map->functions.rows[i];

		if (function->offset != OPD_JIT_NO_OFFSET)
			add_symbol(builder, function, function->code_at ? CODE : ADDRESSES, OPD_JIT_RANGE_START + function->offset);
	}
}

/* ---- sections ---- */

static Elf64_Word section_name(struct builder *builder, const char *name)
{
	size_t at = builder->section_names.length;

	op_text_add_bytes(&builder->section_names, name, strlen(name) + 1);
	return (Elf64_Word)at;
}

/* Adds the header of a section with contents. */
static void lay_out(struct builder *builder, enum section_id id, const char *name, uint32_t type, uint64_t bytes)
{
	builder->headers[id] = (Elf64_Shdr){
		.sh_name = section_name(builder, name),
		.sh_type = bytes ? type : SHT_NULL,
		.sh_offset = builder->end,
		.sh_size = bytes,
		.sh_addralign = SECTION_ALIGNED,
	};
	builder->end = (builder->end + bytes + SECTION_ALIGNED - 1) & ~(uint64_t)(SECTION_ALIGNED - 1);
}

static void lay_out_code(struct builder *builder)
{
	const struct opd_jit_map *map = builder->map;
	Elf64_Shdr *code = &builder->headers[CODE], *addresses = &builder->headers[ADDRESSES];

	lay_out(builder, CODE, NAME_TEXT, SHT_PROGBITS, map->next_code_offset);
	code->sh_addr = OPD_JIT_RANGE_START + OPD_JIT_CODE_AT;
	code->sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	*addresses = (Elf64_Shdr){
		.sh_name = section_name(builder, map->next_code_offset ? NAME_TEXT_MAP : NAME_TEXT),
		.sh_type = map->next_offset ? SHT_NOBITS : SHT_NULL,
		.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		.sh_addr = OPD_JIT_RANGE_START,
		.sh_offset = builder->end,
		.sh_size = map->next_offset,
		.sh_addralign = OPD_JIT_ALIGNMENT,
	};
}

/* The symbol and the section of a late function, at its own address. */
static void add_late(const struct opd_jit_piece *piece, void *arg)
{
	struct builder *builder = arg;
	const struct opd_jit_function *function = &builder->map->functions.rows[piece->function];
	Elf64_Shdr *header = &builder->headers[builder->nr_headers];

	add_symbol(builder, function, builder->nr_headers, piece->start);
	*header = (Elf64_Shdr){
		.sh_name = builder->headers[NR_SECTIONS].sh_name, /* one name for all */
		.sh_type = function->code_at ? SHT_PROGBITS : SHT_NOBITS,
		.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		.sh_addr = piece->start,
		.sh_offset = builder->end,
		.sh_size = function->bytes,
		.sh_addralign = 1,
	};
	if (function->code_at)
		builder->end = (builder->end + function->bytes + SECTION_ALIGNED - 1) & ~(uint64_t)(SECTION_ALIGNED - 1);
	builder->late[builder->nr_headers++ - NR_SECTIONS] = function;
}

static void lay_out_late(struct builder *builder)
{
	if (builder->map->nr_late)
		builder->headers[NR_SECTIONS].sh_name = section_name(builder, NAME_LATE);
	opd_jit_pieces_visit(&builder->map->late, add_late, builder);
}

static void lay_out_all(struct builder *builder)
{
	builder->end = sizeof(Elf64_Ehdr);
	op_text_add_bytes(&builder->section_names, "", 1);
	lay_out_code(builder);
	lay_out_late(builder);
	lay_out(builder, SYMTAB, ".symtab", SHT_SYMTAB, builder->symbols.length);
	builder->headers[SYMTAB].sh_link = STRTAB;
	builder->headers[SYMTAB].sh_info = 1;
	builder->headers[SYMTAB].sh_entsize = sizeof(Elf64_Sym);
	lay_out(builder, STRTAB, ".strtab", SHT_STRTAB, builder->strings.length);
	lay_out(builder, ABBREV, ".debug_abbrev", SHT_PROGBITS, builder->lines.abbrev.length);
	lay_out(builder, INFO, ".debug_info", SHT_PROGBITS, builder->lines.info.length);
	lay_out(builder, LINE, ".debug_line", SHT_PROGBITS, builder->lines.line.length);
	lay_out(builder, SHSTRTAB, ".shstrtab", SHT_STRTAB, builder->section_names.length + sizeof(".shstrtab"));
}

/* ---- the file ---- */

static int write_at(int fd, uint64_t offset, const void *bytes, size_t nr_bytes)
{
	if (lseek(fd, (off_t)offset, SEEK_SET) < 0)
		return -errno;
	return op_sys_write_all(fd, bytes, nr_bytes);
}

static bool is_zero(const uint8_t *bytes, size_t nr_bytes)
{
	return !nr_bytes || (!bytes[0] && !memcmp(bytes, bytes + 1, nr_bytes - 1));
}

/* Bytes that the dump does not have, and zeros, become a hole. */
static int copy_code(const struct builder *builder, const struct opd_jit_function *function, uint64_t to, uint8_t *buffer)
{
	int err = 0;

	for (uint64_t done = 0; done < function->bytes && !err;) {
		size_t wanted = op_min_u64(COPY_BYTES, function->bytes - done);
		ssize_t nr = opd_far_read(&builder->dump->file, buffer, wanted, (off_t)(function->code_at + done));

		if (nr <= 0)
			break;
		if (!is_zero(buffer, (size_t)nr))
			err = write_at(builder->fd, to + done, buffer, (size_t)nr);
		done += (uint64_t)nr;
	}
	return err;
}

static int copy_all_code(const struct builder *builder, uint8_t *buffer)
{
	const struct opd_jit_functions *functions = &builder->map->functions;
	uint64_t code_at = builder->headers[CODE].sh_offset;
	int err = 0;

	for (size_t i = 0; i < functions->nr_rows && !err; i++) {
		const struct opd_jit_function *function = &functions->rows[i];

		if (function->offset != OPD_JIT_NO_OFFSET && function->code_at)
			err = copy_code(builder, function, code_at + function->offset - OPD_JIT_CODE_AT, buffer);
	}
	for (size_t i = NR_SECTIONS; i < builder->nr_headers && !err; i++)
		if (builder->headers[i].sh_type == SHT_PROGBITS)
			err = copy_code(builder, builder->late[i - NR_SECTIONS], builder->headers[i].sh_offset, buffer);
	return err;
}

static int write_code(const struct builder *builder)
{
	uint8_t *buffer;
	int err;

	if (!builder->map->next_code_offset && !builder->map->late_code_bytes)
		return 0;
	buffer = malloc(COPY_BYTES);
	if (!buffer)
		return -ENOMEM;
	err = copy_all_code(builder, buffer);
	free(buffer);
	return err;
}

static int write_header(const struct builder *builder)
{
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, OPD_ELF_DATA, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = OPD_ELF_MACHINE,
		.e_version = EV_CURRENT,
		.e_shoff = builder->end,
		.e_ehsize = sizeof(header),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (Elf64_Half)builder->nr_headers,
		.e_shstrndx = SHSTRTAB,
	};

	return write_at(builder->fd, 0, &header, sizeof(header));
}

static int write_sections(const struct builder *builder)
{
	const struct op_text *const contents[NR_SECTIONS] = {
		[SYMTAB] = &builder->symbols,      [STRTAB] = &builder->strings,  [SHSTRTAB] = &builder->section_names,
		[ABBREV] = &builder->lines.abbrev, [INFO] = &builder->lines.info, [LINE] = &builder->lines.line,
	};
	int err = write_header(builder);

	for (size_t i = 0; i < NR_SECTIONS && !err; i++)
		if (contents[i] && contents[i]->length)
			err = write_at(builder->fd, builder->headers[i].sh_offset, op_text_get(contents[i]), contents[i]->length);
	if (!err)
		err = write_code(builder);
	return err ? err : write_at(builder->fd, builder->end, builder->headers, builder->nr_headers * sizeof(*builder->headers));
}

static int build(struct builder *builder)
{
	int err = opd_jit_lines_make(&builder->lines, builder->map, builder->dump);

	builder->nr_headers = NR_SECTIONS;
	builder->headers = calloc(NR_SECTIONS + builder->map->nr_late, sizeof(*builder->headers));
	builder->late = calloc(builder->map->nr_late + 1, sizeof(const struct opd_jit_function *));
	if (!builder->headers || !builder->late)
		return -ENOMEM;
	make_symbols(builder);
	lay_out_all(builder);
	if (!err && (builder->symbols.failed || builder->strings.failed || builder->section_names.failed))
		err = -ENOMEM;
	return err;
}

int opd_jit_object_write(int dir_fd, const char *path, const char *tmp_path, const struct opd_jit_map *map,
			 const struct opd_jitdump *dump, uint64_t *ret_dir_bytes, struct op_odb_pending **ret_pending)
{
	struct builder builder = { .map = map, .dump = dump, .fd = -1 };
	int err = build(&builder);

	if (!err) {
		builder.fd = op_file_open_below(dir_fd, tmp_path, O_RDWR | O_CREAT | O_TRUNC, FILE_MODE);
		err = builder.fd < 0 ? builder.fd : write_sections(&builder);
	}
	if (!err)
		err = op_seal_append(builder.fd);
	if (builder.fd >= 0)
		close(builder.fd);
	if (err)
		op_file_unlink_below(dir_fd, tmp_path);
	else
		err = op_odb_publish_sealed(dir_fd, tmp_path, path, ret_dir_bytes, ret_pending);
	free(builder.headers);
	free(builder.late);
	opd_jit_lines_free(&builder.lines);
	op_text_free(&builder.symbols);
	op_text_free(&builder.strings);
	op_text_free(&builder.section_names);
	return err;
}
