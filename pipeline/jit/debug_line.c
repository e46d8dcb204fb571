/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/jit/debug_line.h"

#include <errno.h>

#include "libop/base/grow.h"
#include "libop/base/htable.h"

/* What is looked at for one object. Most of it may be lines that lie in no function. */
#define LINES_MAX     (256u * 1024)
#define LINES_BYTES   (16u << 20)
#define DWARF_VERSION 4

/* The constants of DWARF 4, sections 7.5, 7.20 and 7.21, that are used. */
enum {
	TAG_COMPILE_UNIT = 0x11,
	AT_NAME = 0x03,
	AT_STMT_LIST = 0x10,
	AT_LOW_PC = 0x11,
	AT_HIGH_PC = 0x12,
	AT_COMP_DIR = 0x1b,
	FORM_ADDR = 0x01,
	FORM_DATA8 = 0x07,
	FORM_STRING = 0x08,
	FORM_SEC_OFFSET = 0x17,
	LNS_COPY = 1,
	LNS_ADVANCE_PC = 2,
	LNS_ADVANCE_LINE = 3,
	LNS_SET_FILE = 4,
	LNE_END_SEQUENCE = 1,
	LNE_SET_ADDRESS = 2,
};

static const uint8_t abbreviations[] = {
	1,         TAG_COMPILE_UNIT, 0,          AT_NAME,      FORM_STRING,     AT_COMP_DIR, FORM_STRING, AT_LOW_PC,
	FORM_ADDR, AT_HIGH_PC,       FORM_DATA8, AT_STMT_LIST, FORM_SEC_OFFSET, 0,           0,           0,
};

/* The numbers of operands of the standard opcodes, as the standard gives them. */
static const uint8_t opcode_lengths[] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };

struct row {
	uint64_t address; /* offset from the start of the function */
	uint32_t line, file, order;
};

struct file {
	struct op_hlink link;
	uint32_t number; /* from 1 */
	char name[];
};

struct builder {
	const struct opd_jit_function *function;
	uint64_t function_at; /* its address in the object */
	struct op_htable files;
	uint32_t nr_files;
	struct row *rows; /* rows of `function` */
	size_t nr_rows, capacity, nr_all_rows;
	uint64_t nr_lines, nr_line_bytes; /* that were looked at */
	struct op_text names, program;
};

static void add_u8(struct op_text *text, unsigned int value)
{
	op_text_add_char(text, (char)value);
}

static void add_u16(struct op_text *text, uint16_t value)
{
	op_text_add_bytes(text, &value, sizeof(value));
}

static void add_u32(struct op_text *text, uint32_t value)
{
	op_text_add_bytes(text, &value, sizeof(value));
}

static void add_u64(struct op_text *text, uint64_t value)
{
	op_text_add_bytes(text, &value, sizeof(value));
}

static void add_uleb(struct op_text *text, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		add_u8(text, (value & 0x7f) | 0x80);
	add_u8(text, (unsigned int)value);
}

static void add_sleb(struct op_text *text, int64_t value)
{
	while (value < -0x40 || value >= 0x40) {
		add_u8(text, ((unsigned int)value & 0x7f) | 0x80);
		value >>= 7;
	}
	add_u8(text, (unsigned int)value & 0x7f);
}

static void add_string(struct op_text *text, const char *string)
{
	op_text_add_bytes(text, string, strlen(string) + 1);
}

/* ---- rows of a function ---- */

/* The number of a file in the line program; 0: no memory. */
static uint32_t file_number(struct builder *builder, const char *name)
{
	size_t bytes = strlen(name) + 1;
	uint64_t hash = op_hash_bytes(0, name, bytes);
	struct file *file;

	for (struct op_hlink *link = op_htable_first(&builder->files, hash); link; link = op_htable_next(link)) {
		file = op_container_of(link, struct file, link);
		if (!strcmp(file->name, name))
			return file->number;
	}
	file = malloc(sizeof(*file) + bytes);
	if (!file)
		return 0;
	memcpy(file->name, name, bytes);
	file->number = builder->nr_files + 1;
	if (op_htable_insert(&builder->files, &file->link, hash) < 0) {
		free(file);
		return 0;
	}
	op_text_add_clean(&builder->names, *name ? name : "?");
	/* end of the name; directory, time and length */
	op_text_add_bytes(&builder->names, "\0\0\0\0", 4);
	return ++builder->nr_files;
}

static int take_row(void *arg, const struct opd_jit_line *line)
{
	struct builder *builder = arg;
	const struct opd_jit_function *function = builder->function;
	uint64_t address = line->address - function->start;
	uint32_t file;

	builder->nr_line_bytes += line->bytes;
	if (builder->nr_lines++ >= LINES_MAX || builder->nr_line_bytes > LINES_BYTES)
		return -E2BIG;
	if (address >= function->bytes)
		return 0;
	file = file_number(builder, line->file);
	if (!file)
		return -ENOMEM;
	if (!op_grow(&builder->rows, &builder->capacity, builder->nr_rows + 1))
		return -ENOMEM;
	builder->rows[builder->nr_rows] = (struct row){ address, line->line, file, (uint32_t)builder->nr_rows };
	builder->nr_rows++;
	builder->nr_all_rows++;
	return 0;
}

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* ---- the line program ---- */

static void add_extended(struct op_text *program, unsigned int opcode, uint64_t nr_bytes)
{
	add_u8(program, 0);
	add_uleb(program, 1 + nr_bytes);
	add_u8(program, opcode);
}

static void add_sequence(struct builder *builder)
{
	struct op_text *program = &builder->program;
	uint64_t address = 0, line = 1;
	uint32_t file = 1;

	qsort(builder->rows, builder->nr_rows, sizeof(*builder->rows), compare_rows);
	add_extended(program, LNE_SET_ADDRESS, sizeof(uint64_t));
	add_u64(program, builder->function_at);
	for (size_t i = 0; i < builder->nr_rows; i++) {
		const struct row *row = &builder->rows[i];

		if (row->address != address) {
			add_u8(program, LNS_ADVANCE_PC);
			add_uleb(program, row->address - address);
		}
		if (row->file != file) {
			add_u8(program, LNS_SET_FILE);
			add_uleb(program, row->file);
		}
		add_u8(program, LNS_ADVANCE_LINE);
		add_sleb(program, (int64_t)row->line - (int64_t)line);
		add_u8(program, LNS_COPY);
		address = row->address;
		line = row->line;
		file = row->file;
	}
	add_u8(program, LNS_ADVANCE_PC);
	add_uleb(program, builder->function->bytes - address);
	add_extended(program, LNE_END_SEQUENCE, 0);
}

static void add_line_section(const struct builder *builder, struct op_text *line)
{
	struct op_text header = { 0 };

	add_u8(&header, 1); /* bytes in the shortest instruction */
	add_u8(&header, 1); /* operations in an instruction */
	add_u8(&header, 1); /* rows begin statements */
	add_u8(&header, 1); /* no special opcodes: line base, line range */
	add_u8(&header, 1);
	add_u8(&header, sizeof(opcode_lengths) + 1);
	op_text_add_bytes(&header, opcode_lengths, sizeof(opcode_lengths));
	add_u8(&header, 0); /* no directories */
	op_text_add_bytes(&header, op_text_get(&builder->names), builder->names.length);
	add_u8(&header, 0);
	add_u32(line, (uint32_t)(2 + 4 + header.length + builder->program.length));
	add_u16(line, DWARF_VERSION);
	add_u32(line, (uint32_t)header.length);
	op_text_add_bytes(line, op_text_get(&header), header.length);
	op_text_add_bytes(line, op_text_get(&builder->program), builder->program.length);
	line->failed |= header.failed;
	op_text_free(&header);
}

static void add_info_section(struct op_text *info)
{
	struct op_text unit = { 0 };

	add_u16(&unit, DWARF_VERSION);
	add_u32(&unit, 0); /* offset of the abbreviations */
	add_u8(&unit, sizeof(uint64_t));
	add_uleb(&unit, 1);
	add_string(&unit, "jit");
	add_string(&unit, "/");
	add_u64(&unit, 0); /* late functions are at addresses of the process */
	add_u64(&unit, OPD_JIT_RANGE_START + OPD_JIT_RANGE_BYTES);
	add_u32(&unit, 0); /* offset of the line program */
	add_u32(info, (uint32_t)unit.length);
	op_text_add_bytes(info, op_text_get(&unit), unit.length);
	info->failed |= unit.failed;
	op_text_free(&unit);
}

static int add_function(struct builder *builder, const struct opd_jit_function *function, uint64_t at,
			const struct opd_jitdump *dump)
{
	int err;

	if (!function->lines_at)
		return 0;
	builder->function = function;
	builder->function_at = at;
	builder->nr_rows = 0;
	err = opd_jitdump_lines(dump, builder->function->lines_at, take_row, builder);
	if (err == -ENOMEM)
		return err;
	if (builder->nr_rows)
		add_sequence(builder);
	return err == -E2BIG ? err : 0;
}

struct late_functions {
	struct builder *builder;
	const struct opd_jit_map *map;
	const struct opd_jitdump *dump;
	int err;
};

static void add_late(const struct opd_jit_piece *piece, void *arg)
{
	struct late_functions *late = arg;

	if (!late->err)
		late->err = add_function(late->builder, &late->map->functions.rows[piece->function], piece->start, late->dump);
}

static void free_file(struct op_hlink *link, void *arg OP_UNUSED)
{
	free(op_container_of(link, struct file, link));
}

static void free_builder(struct builder *builder)
{
	op_htable_visit(&builder->files, free_file, NULL);
	op_htable_free(&builder->files);
	free(builder->rows);
	op_text_free(&builder->names);
	op_text_free(&builder->program);
}

int opd_jit_lines_make(struct opd_jit_lines *lines, const struct opd_jit_map *map, const struct opd_jitdump *dump)
{
	struct builder builder = { 0 };
	struct late_functions late = { .builder = &builder, .map = map, .dump = dump };
	int err = 0;

	for (size_t i = 0; i < map->functions.nr_rows && !err; i++) {
		const struct opd_jit_function *function = &map->functions.rows[i];

		if (function->offset != OPD_JIT_NO_OFFSET)
			err = add_function(&builder, function, OPD_JIT_RANGE_START + function->offset, dump);
	}
	late.err = err;
	opd_jit_pieces_visit(&map->late, add_late, &late);
	err = late.err;
	if (err == -E2BIG) {
		map->counters[OP_JIT_refused_size]++;
		err = 0;
	}
	if (!err && builder.nr_all_rows) {
		op_text_add_bytes(&lines->abbrev, abbreviations, sizeof(abbreviations));
		add_info_section(&lines->info);
		add_line_section(&builder, &lines->line);
	}
	if (builder.names.failed || builder.program.failed || lines->abbrev.failed || lines->info.failed || lines->line.failed)
		err = -ENOMEM;
	free_builder(&builder);
	return err;
}

void opd_jit_lines_free(struct opd_jit_lines *lines)
{
	op_text_free(&lines->abbrev);
	op_text_free(&lines->info);
	op_text_free(&lines->line);
}
