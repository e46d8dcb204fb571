/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Machine code as assembler text, through libopcodes in this process. Lines are those of `objdump -d --no-show-raw-insn`, since that is what users and scripts
 * know: section, label, instructions, a run of zero bytes as "...".
 */
#ifndef OPR_CODE_H
#define OPR_CODE_H

#include <limits.h>

#include "libop/base/text.h"
#include "tools/code/windows.h"
#include "tools/symbols/symbols.h"

/* A gap is what is left out of code that is too large; its text says how much. */
enum opr_code_kind { OPR_CODE_SECTION, OPR_CODE_LABEL, OPR_CODE_INSTRUCTION, OPR_CODE_ZEROS, OPR_CODE_GAP };

struct opr_code_line {
	enum opr_code_kind kind;
	uint64_t vma;
	size_t text; /* in `strings`: name of the section or label, or the instruction */
	size_t file; /* in `strings`: source file of an instruction; SIZE_MAX: not known, or not asked for */
	unsigned int line; /* of a section: columns that its addresses are shown in */
};

struct opr_code {
	struct opr_code_line *lines; /* in order of address */
	size_t nr_lines, capacity;
	struct op_text strings;
};

struct opr_code_section {
	uint64_t position, vma, nr_bytes;
};

struct opr_code_reader;

/* What objdump's options of these names do. */
struct opr_code_style {
	const char *disassembler_options; /* -M, "intel"; NULL: none */
	bool demangle;			  /* -C */
	bool disassemble_zeroes;	  /* -z */
	bool show_raw_insn;
};

/*
 * Opens an object file. `lines` gives its source lines and must stay open as long as the reader; NULL: they
 * are not asked for. `style` NULL: as opannotate shows code by default. 0; -ENOEXEC: no object file, or a
 * machine that libopcodes does not know; another -errno. Prints nothing.
 */
struct opr_lines;
int opr_code_open(const char *path, struct opr_lines *lines, const struct opr_code_style *style,
		  struct opr_code_reader **ret_reader) OP_NONNULL_ARGS(1, 4) OP_MUST_CHECK;

/* The same for the memory of the running kernel: a core file such as /proc/kcore, and the symbols of /proc/kallsyms for names. */
int opr_code_open_core(const char *path, const struct opr_symbols *symbols, const struct opr_code_style *style,
		       struct opr_code_reader **ret_reader) OP_NONNULL_ARGS(1, 2, 4) OP_MUST_CHECK;

/* Hexadecimal digits of an address in full. */
unsigned int opr_code_digits(const struct opr_code_reader *reader) OP_NONNULL;

/* The name of the object's format, as objdump shows it ("elf64-x86-64"). Valid as long as the reader. */
const char *opr_code_format(const struct opr_code_reader *reader) OP_NONNULL;

/*
 * Adds the lines of the code from `start` up to `end`, which may be beyond the last section. Of a relocatable object, a module of the kernel, many sections begin at 0: those of
 * the one with this index are added, or all (OPR_CODE_ALL_SECTIONS). Of a section, or memory, of which more than OPR_CODE_BYTES_MAX bytes are asked for, only what is around the points is listed, as
 * opr_code_windows chooses it, with gaps between; they are sorted by address, and may be NULL when there are none. Windows of all sections are not more than OPR_CODE_BYTES_MAX. 0 or -errno.
 */
#define OPR_CODE_BYTES_MAX    (16u << 20)
#define OPR_CODE_ALL_SECTIONS UINT_MAX
int opr_code_list(struct opr_code_reader *reader, unsigned int section, uint64_t start, uint64_t end, const struct opr_code_point *points,
		  size_t nr_points, struct opr_code *code) OP_NONNULL_ARGS(1, 7) OP_MUST_CHECK;

/* The sections with code: where they are in the file and in memory; freed by the caller. 0 or -ENOMEM. */
int opr_code_sections(const struct opr_code_reader *reader, struct opr_code_section **ret_sections,
		      size_t *ret_nr_sections) OP_NONNULL OP_MUST_CHECK;

void opr_code_close(struct opr_code_reader *reader);

static inline const char *opr_code_text(const struct opr_code *code, const struct opr_code_line *line)
{
	return op_text_get(&code->strings) + line->text;
}

/* NULL: not known. */
static inline const char *opr_code_file(const struct opr_code *code, const struct opr_code_line *line)
{
	return line->file == SIZE_MAX ? NULL : op_text_get(&code->strings) + line->file;
}

/* Empties the list; its memory is kept. */
void opr_code_clear(struct opr_code *code) OP_NONNULL;
void opr_code_free(struct opr_code *code);

#endif
