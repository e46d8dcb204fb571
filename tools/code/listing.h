/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Machine code as assembler text, through libopcodes. Lines are those of `objdump -d
 * --no-show-raw-insn`, which users and scripts know: section, label, instructions, "..." for a run
 * of zero bytes. Call it in a child process (tools/common/child.h): libopcodes may crash on hostile
 * code.
 */
#ifndef OPR_CODE_H
#define OPR_CODE_H

#include <limits.h>

#include "libop/base/text.h"
#include "tools/code/windows.h"
#include "tools/symbols/symbols.h"

/* A gap stands for code that is left out because there is too much; its text says how much. */
enum opr_code_kind { OPR_CODE_SECTION, OPR_CODE_LABEL, OPR_CODE_INSTRUCTION, OPR_CODE_ZEROS, OPR_CODE_GAP };

struct opr_code_line {
	enum opr_code_kind kind;
	uint64_t vma;
	size_t text; /* offset in `strings`: name of the section or label, or the instruction */
	size_t file; /* offset in `strings`: source file of an instruction; SIZE_MAX: not known */
	/*
	 * offset in `strings`: the inlined function that an instruction is in, and what it was
	 * inlined into, "g, inlined by f at a.h:12, main at b.c:3"; SIZE_MAX: none
	 */
	size_t inlined;
	unsigned int line; /* in that file; of a section the width of its addresses, in columns */
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

/* Options of objdump. */
struct opr_code_style {
	const char *disassembler_options; /* -M, "intel"; NULL: none */
	bool demangle;			  /* -C */
	bool inlined;                     /* lines have their inlined functions */
	enum opr_demangle inlined_names;  /* the names of these */
	bool disassemble_zeroes;	  /* -z */
	bool show_raw_insn;
};

/*
 * Opens an object file. `file`: the one that its symbols are of. `lines` gives its source lines and
 * must stay open as long as the reader; NULL: they are not asked for. `style` NULL: as opannotate
 * shows code by default. 0; -ENOEXEC: no object file, or a machine that libopcodes does not know;
 * -ESTALE: another file is at the path by now; another -errno. Prints nothing.
 */
struct opr_lines;
int opr_code_open(const char *path, const struct opr_file_read *file, struct opr_lines *lines,
		  const struct opr_code_style *style,
		  struct opr_code_reader **ret_reader) OP_NONNULL_ARGS(1, 2, 5) OP_MUST_CHECK;

/*
 * The same for the memory of the running kernel: a core file such as /proc/kcore, and the symbols
 * of /proc/kallsyms for names.
 */
int opr_code_open_core(const char *path, const struct opr_symbols *symbols, const struct opr_code_style *style,
		       struct opr_code_reader **ret_reader) OP_NONNULL_ARGS(1, 2, 4) OP_MUST_CHECK;

/* How many hexadecimal digits a full address has. */
unsigned int opr_code_digits(const struct opr_code_reader *reader) OP_NONNULL;

/* The format of the object ("elf64-x86-64"). Valid as long as the reader. */
const char *opr_code_format(const struct opr_code_reader *reader) OP_NONNULL;

/*
 * Adds the lines of the code from `start` to `end`, exclusive; `end` may be beyond the last
 * section. In a relocatable object many sections begin at 0, so only the one with the index
 * `section` is listed; OPR_CODE_ALL_SECTIONS lists all. Of a section with more than
 * OPR_CODE_BYTES_MAX bytes in the range, only the windows around the points (windows.h) are listed,
 * with gaps between them. Points are sorted by address; NULL: there are none. Windows have at most
 * OPR_CODE_BYTES_MAX together. 0 or -errno.
 */
#define OPR_CODE_BYTES_MAX    (16u << 20)
#define OPR_CODE_ALL_SECTIONS UINT_MAX
int opr_code_list(struct opr_code_reader *reader, unsigned int section, uint64_t start, uint64_t end,
		  const struct opr_code_point *points, size_t nr_points, struct opr_code *code) OP_NONNULL_ARGS(1, 7) OP_MUST_CHECK;

/* The sections with code, in the file and in memory; freed by the caller. 0 or -ENOMEM. */
int opr_code_sections(const struct opr_code_reader *reader, struct opr_code_section **ret_sections,
		      size_t *ret_nr_sections) OP_NONNULL OP_MUST_CHECK;

void opr_code_close(struct opr_code_reader *reader);

/* NULL: the instruction is in no inlined function. */
static inline const char *opr_code_inlined(const struct opr_code *code, const struct opr_code_line *line)
{
	return line->inlined == SIZE_MAX ? NULL : op_text_get(&code->strings) + line->inlined;
}

static inline const char *opr_code_text(const struct opr_code *code, const struct opr_code_line *line)
{
	return op_text_get(&code->strings) + line->text;
}

/* NULL: not known. */
static inline const char *opr_code_file(const struct opr_code *code, const struct opr_code_line *line)
{
	return line->file == SIZE_MAX ? NULL : op_text_get(&code->strings) + line->file;
}

/* Empties the list and keeps its memory. */
void opr_code_clear(struct opr_code *code) OP_NONNULL;
void opr_code_free(struct opr_code *code);

#endif
