/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/runtimes/python.h"

#include <string.h>

#include "libop/unwind/runtime_words.h"

#define NO_LINE  (-128) /* a step of lines of 3.10 */

#define STRING_HEAD_BYTES 40u /* before its characters, at least */
#define STRING_BYTES_MAX  128u
#define FRAME_BYTES_MAX   120u /* as far as interpreters.bpf.h reads one */

/* Codes of an entry of the table of locations; smaller ones have no step of lines. */
enum { ONE_LINE_0 = 10, ONE_LINE_2 = 12, NO_COLUMNS, LONG, NO_LOCATION };

/*
 * The offsets, by minor version. Those of 3.9, 3.11, 3.13 and 3.14 are of Debian's headers
 * (pycore_runtime.h, pycore_interp.h, pycore_frame.h or pycore_interpframe_structs.h, code.h,
 * unicodeobject.h), those of 3.10 and 3.12 of the same headers of Python's own releases.
 * tests/unit/test_script_layouts.py compares those whose headers are installed.
 */
static const struct {
	uint32_t minor;
	enum opd_python_lines lines;
	struct opd_python_layout layout;
} versions[] = {
	{ 9,
	  OPD_PYTHON_LNOTAB,
	  { .key = 588, .interpreters = 32, .threads = 8, .next = 8, .thread_id = 176, .frame = 24, .frame_bytes = 112,
	    .code = 32, .previous = 24, .instruction = 104, .owner_how = OPD_PYTHON_OWNER_NONE, .instruction_how = 1,
	    .first_line = 40, .file = 104, .name = 112, .table = 120, .ascii = 48, .compact = 72 } },
	{ 10,
	  OPD_PYTHON_PEP_626,
	  { .key = 588, .interpreters = 32, .threads = 8, .next = 8, .thread_id = 176, .frame = 24, .frame_bytes = 104,
	    .code = 32, .previous = 24, .instruction = 96, .owner_how = OPD_PYTHON_OWNER_NONE, .instruction_how = 2,
	    .first_line = 40, .file = 104, .name = 112, .table = 120, .ascii = 48, .compact = 72 } },
	{ 11,
	  OPD_PYTHON_LOCATIONS,
	  { .key = 596, .interpreters = 40, .threads = 16, .next = 8, .thread_id = 152, .frame = 56, .has_cframe = 1, .cframe = 8,
	    .frame_bytes = 72, .code = 32, .previous = 48, .instruction = 56, .owner = 68, .owner_how = OPD_PYTHON_OWNER_ENTRY,
	    .first_line = 72, .file = 112, .name = 128, .table = 136, .first_instruction = 184, .ascii = 48, .compact = 72 } },
	{ 12,
	  OPD_PYTHON_LOCATIONS,
	  { .key = 1548, .interpreters = 40, .threads = 72, .next = 8, .thread_id = 136, .frame = 56, .has_cframe = 1, .cframe = 0,
	    .frame_bytes = 72, .code = 0, .previous = 8, .instruction = 56, .owner = 70, .owner_how = OPD_PYTHON_OWNER_SHIM,
	    .first_line = 68, .file = 112, .name = 128, .table = 136, .first_instruction = 192, .ascii = 40, .compact = 56 } },
	{ 13,
	  OPD_PYTHON_LOCATIONS,
	  { .key = 2164, .interpreters = 632, .threads = 7344, .next = 8, .thread_id = 152, .frame = 72, .frame_bytes = 72,
	    .code = 0, .previous = 8, .instruction = 56, .owner = 70, .owner_how = OPD_PYTHON_OWNER_SHIM, .first_line = 68,
	    .file = 112, .name = 128, .table = 136, .first_instruction = 200, .ascii = 40, .compact = 56 } },
	{ 14,
	  OPD_PYTHON_LOCATIONS,
	  { .key = 2340, .interpreters = 808, .threads = 7344, .next = 8, .thread_id = 152, .frame = 72, .frame_bytes = 80,
	    .code = 0, .previous = 8, .instruction = 56, .owner = 74, .owner_how = OPD_PYTHON_OWNER_SHIM, .first_line = 68,
	    .file = 112, .name = 128, .table = 136, .first_instruction = 208, .ascii = 40, .compact = 56 } },
};

/* The structures of Python that have what is read, and how large each may be. */
enum python_struct { RUNTIME, INTERPRETER, STATE, FRAME, CODE, NR_STRUCTS };

static const uint32_t most_bytes[NR_STRUCTS] = {
	[RUNTIME] = 4u << 20, [INTERPRETER] = 4u << 20, [STATE] = 65536, [FRAME] = 4096, [CODE] = 4096,
};

/*
 * Where the offsets and the sizes stand in Python's own table of them (_Py_DebugOffsets): which
 * word, in 3.13 and in 3.14. pycore_runtime.h of 3.13 and pycore_debug_offsets.h of 3.14.
 */
enum { OFFSETS_3_13, OFFSETS_3_14, NR_OFFSETS_TABLES };

static const uint8_t size_words[NR_STRUCTS][NR_OFFSETS_TABLES] = {
	[RUNTIME] = { 3, 3 }, [INTERPRETER] = { 6, 6 }, [STATE] = { 19, 22 }, [FRAME] = { 28, 31 }, [CODE] = { 34, 39 },
};

static const struct python_offset {
	size_t to; /* in struct opd_python_layout */
	enum python_struct of;
	uint32_t nr_bytes;
	uint8_t words[NR_OFFSETS_TABLES];
} offsets[] = {
	{ offsetof(struct opd_python_layout, interpreters), RUNTIME, 8, { 5, 5 } },
	{ offsetof(struct opd_python_layout, threads), INTERPRETER, 8, { 9, 9 } },
	{ offsetof(struct opd_python_layout, next), STATE, 8, { 21, 24 } },
	{ offsetof(struct opd_python_layout, frame), STATE, 8, { 23, 26 } },
	{ offsetof(struct opd_python_layout, thread_id), STATE, 8, { 24, 27 } },
	{ offsetof(struct opd_python_layout, previous), FRAME, 8, { 29, 32 } },
	{ offsetof(struct opd_python_layout, code), FRAME, 8, { 30, 33 } },
	{ offsetof(struct opd_python_layout, instruction), FRAME, 8, { 31, 34 } },
	{ offsetof(struct opd_python_layout, owner), FRAME, 1, { 33, 36 } },
	{ offsetof(struct opd_python_layout, file), CODE, 8, { 35, 40 } },
	{ offsetof(struct opd_python_layout, name), CODE, 8, { 37, 42 } },
	{ offsetof(struct opd_python_layout, table), CODE, 8, { 38, 43 } },
	{ offsetof(struct opd_python_layout, first_line), CODE, 4, { 39, 44 } },
	{ offsetof(struct opd_python_layout, first_instruction), CODE, 2, { 43, 48 } },
};

/* What interpreters.bpf.h takes as it is, and the characters of a string. */
static const struct {
	uint32_t value;
	uint8_t words[NR_OFFSETS_TABLES];
} fixed_offsets[] = { { 16, { 65, 75 } }, { 32, { 66, 76 } }, { 32, { 68, 78 } }, { 16, { 69, 79 } } };

static const uint8_t ascii_words[NR_OFFSETS_TABLES] = { 70, 80 };

#define VERSION_WORD       1
#define FREE_THREADED_WORD 2

static bool offset_word(const struct op_row_table *table, uint32_t word, uint64_t *ret_value)
{
	return op_row_table_word(table, OP_WORD_PYTHON_OFFSETS + word, ret_value);
}

static bool take_offset(const struct op_row_table *table, const struct python_offset *offset, int which,
			struct opd_python_layout *layout)
{
	uint64_t size, value;
	uint32_t short_value;

	if (!offset_word(table, size_words[offset->of][which], &size) || !offset_word(table, offset->words[which], &value) ||
	    size > most_bytes[offset->of] || value > size || size - value < offset->nr_bytes || value % offset->nr_bytes)
		return false;
	short_value = (uint32_t)value;
	memcpy((char *)layout + offset->to, &short_value, sizeof(short_value));
	return true;
}

/*
 * Python's own offsets are right also where it was built with other options than Debian's. They
 * come from a file that may be anybody's: with one that cannot be, the table above holds. The key
 * is not among them.
 */
static void take_own_offsets(const struct op_row_table *table, uint32_t minor, struct opd_python_layout *layout)
{
	int which = minor == 13 ? OFFSETS_3_13 : OFFSETS_3_14;
	struct opd_python_layout own = *layout;
	uint64_t value;

	if (minor < 13 || !offset_word(table, VERSION_WORD, &value) || value >> 16 != (0x0300u | minor))
		return;
	for (size_t i = 0; i < op_array_size(offsets); i++)
		if (!take_offset(table, &offsets[i], which, &own))
			return;
	for (size_t i = 0; i < op_array_size(fixed_offsets); i++)
		if (!offset_word(table, fixed_offsets[i].words[which], &value) || value != fixed_offsets[i].value)
			return;
	if (!offset_word(table, ascii_words[which], &value) || value < STRING_HEAD_BYTES || value > STRING_BYTES_MAX || value % 8)
		return;
	own.compact = (uint32_t)value + layout->compact - layout->ascii;
	own.ascii = (uint32_t)value;
	value = op_max_u64(op_max_u64(own.code, own.previous), op_max_u64(own.instruction, own.owner & ~7u)) + 8;
	own.frame_bytes = (uint32_t)value;
	if (value <= FRAME_BYTES_MAX)
		*layout = own;
}

/* Before 3.11 nothing says the version, but each has functions that the one before has not. */
static uint32_t minor_of(const struct op_row_table *table)
{
	uint64_t value;

	if (op_row_table_word(table, OP_WORD_PYTHON_VERSION, &value))
		return value >> 24 == 3 ? value >> 16 & 0xff : 0;
	if (op_row_table_word(table, OP_WORD_PYTHON_3_10, &value))
		return 10;
	return op_row_table_word(table, OP_WORD_PYTHON_3_9, &value) ? 9 : 0;
}

bool opd_python_layout(const struct op_row_table *table, struct opd_python_layout *ret_layout, enum opd_python_lines *ret_lines,
		       const char **ret_why)
{
	uint32_t minor = minor_of(table);
	uint64_t value;

	*ret_why = "its C library is musl";
	if (op_row_table_word(table, OP_WORD_MUSL, &value))
		return false;
	*ret_why = "it is a free-threaded build";
	if (offset_word(table, FREE_THREADED_WORD, &value) && value)
		return false;
	for (size_t i = 0; i < op_array_size(versions); i++) {
		if (versions[i].minor != minor)
			continue;
		*ret_layout = versions[i].layout;
		*ret_lines = versions[i].lines;
		take_own_offsets(table, minor, ret_layout);
		return true;
	}
	*ret_why = minor > 14 ? "it is newer than Python 3.14" : "it is older than Python 3.9";
	return false;
}

/* ---- lines ---- */

static uint32_t line_by_steps(bool has_gaps, const uint8_t *table, size_t nr_bytes, uint32_t first_line, uint32_t position)
{
	uint32_t address = 0;
	int64_t line = first_line;

	for (size_t i = 0; i + 1 < nr_bytes; i += 2) {
		int step = (int8_t)table[i + 1];

		address += table[i];
		if (!has_gaps && address > position)
			break;
		line += has_gaps && step == NO_LINE ? 0 : step;
		if (has_gaps && position < address)
			return step == NO_LINE ? 0 : (uint32_t)line;
	}
	return has_gaps || line < 0 ? 0 : (uint32_t)line;
}

struct bytes {
	const uint8_t *at, *end;
};

/* Six bits a byte, the lowest first. */
static uint32_t take_number(struct bytes *bytes)
{
	uint32_t value = 0, shift = 0;

	while (bytes->at < bytes->end) {
		uint8_t byte = *bytes->at++;

		if (shift < 30)
			value |= (uint32_t)(byte & 63) << shift;
		shift += 6;
		if (!(byte & 64))
			break;
	}
	return value;
}

static int32_t take_signed(struct bytes *bytes)
{
	uint32_t value = take_number(bytes);

	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

static uint32_t line_by_locations(const uint8_t *table, size_t nr_bytes, uint32_t first_line, uint32_t position)
{
	struct bytes bytes = { table, table + nr_bytes };
	uint64_t address = 0;
	int64_t line = first_line;

	while (bytes.at < bytes.end) {
		uint8_t head = *bytes.at++, code = head >> 3 & 15;

		if (!(head & 0x80))
			return 0;
		if (code >= ONE_LINE_0 && code <= ONE_LINE_2)
			line += code - ONE_LINE_0;
		else if (code == NO_COLUMNS || code == LONG)
			line += take_signed(&bytes);
		address += ((head & 7u) + 1) * 2;
		if (position < address)
			return code == NO_LOCATION || line < 0 ? 0 : (uint32_t)line;
		/* the columns: no byte of them has the top bit */
		while (bytes.at < bytes.end && !(*bytes.at & 0x80))
			bytes.at++;
	}
	return 0;
}

uint32_t opd_python_line(enum opd_python_lines lines, const uint8_t *table, size_t nr_bytes, uint32_t first_line, uint32_t position)
{
	if (lines == OPD_PYTHON_LOCATIONS)
		return line_by_locations(table, nr_bytes, first_line, position);
	return line_by_steps(lines == OPD_PYTHON_PEP_626, table, nr_bytes, first_line, position);
}

/* ---- strings ---- */

static void add_character(struct op_text *to, uint32_t c)
{
	char bytes[4];
	size_t nr = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = nr; i-- > 1; c >>= 6)
		bytes[i] = (char)(0x80 | (c & 0x3f));
	bytes[0] = (char)(nr == 1 ? c : (0xf00u >> nr & 0xf0u) | c);
	op_text_add_bytes(to, bytes, nr);
}

void opd_python_add_string(struct op_text *to, const uint8_t *bytes, size_t nr_bytes, uint32_t width)
{
	uint32_t step = width ? width : 1;

	for (size_t i = 0; i + step <= nr_bytes; i += step) {
		uint32_t c = 0;

		memcpy(&c, bytes + i, step);
		add_character(to, c && c < 0x110000 ? c : '?');
	}
}
