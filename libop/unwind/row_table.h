/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The row table of an image: what the caller's registers are, for each range of code. It says the
 * same as .eh_frame, as far as a walk of call stacks needs it, and it can be searched. opd-tables
 * writes it, opd walks with it. opd-table(5) describes the file; doc/opd-table.5.
 *
 * All numbers in the file are little-endian. Positions are offsets in the ELF file, as in samples.
 * One thread opens a table; then any thread reads it.
 *
 * The file: header; starts of the rows; rules; functions; numbers of the rules of the rows, two
 * bytes each; packed names; words. Nothing lies between them.
 */
#ifndef OP_ROW_TABLE_H
#define OP_ROW_TABLE_H

#include <endian.h>

#include "libop/base/build_id.h"
#include "libop/base/compiler.h"

#define OP_ROW_TABLE_MAGIC       "opdrows1"
#define OP_ROW_TABLE_MAGIC_BYTES 8
#define OP_ROW_TABLE_BYTES_MAX   (256u << 20)
#define OP_ROW_NAME_BYTES_MAX    (64u << 20) /* of all names of an image, unpacked */
#define OP_ROW_RULES_MAX         UINT16_MAX
#define OP_ROW_SLICES            512u

#define OP_ROW_TABLE_NO_SANDBOX 126 /* exit code of opd-tables: it read nothing */

/* DWARF numbers of registers are below this on x86-64 and on arm64. */
#define OP_UNWIND_REGISTERS 33u

/* How the canonical frame address (CFA) is computed. `reg` is a DWARF number. */
enum op_cfa_how {
	OP_CFA_NONE,  /* it is not known: the walk ends */
	OP_CFA_REG,   /* reg + offset */
	OP_CFA_DEREF, /* the word at reg + offset, plus `more` */
	OP_CFA_PLT,   /* x86-64: rsp + offset, and 8 more when (pc & 15) >= more */
	OP_NR_CFA,
};

/* Where the caller's value of a register is. */
enum op_value_how {
	OP_VALUE_SAME,      /* in the register */
	OP_VALUE_AT_CFA,    /* in the word at CFA + offset */
	OP_VALUE_AT_REG,    /* in the word at reg + offset */
	OP_VALUE_IS_CFA,    /* it is CFA + offset */
	OP_VALUE_IN_REG,    /* in another register */
	OP_VALUE_UNDEFINED, /* for the return address: there is no caller */
	OP_VALUE_UNKNOWN,
	OP_NR_VALUES,
};

#define OP_ROW_IS_SIGNAL 1u /* of a signal frame: the caller was interrupted, it did not call */

/*
 * In the file as here, little-endian too. Only little-endian machines walk, so no walk swaps it.
 * The dynamic linker of x86-64 computes its CFA from rbx, which the functions that it calls save.
 */
struct op_row_rule {
	uint8_t cfa_how, cfa_reg;
	uint8_t ra_how, ra_reg; /* of the return address */
	uint8_t fp_how, fp_reg; /* of the frame pointer */
	uint8_t flags;
	uint8_t bx_how; /* of rbx: OP_VALUE_SAME, OP_VALUE_AT_CFA, else OP_VALUE_UNKNOWN */
	int32_t cfa_offset, cfa_more, ra_offset, fp_offset, bx_offset;
};

/* A function: its range, and where its name begins. In the file as here. */
struct op_row_function {
	uint32_t start, nr_bytes;
	uint32_t name; /* offset in the unpacked names; OP_ROW_NO_NAME */
};

#define OP_ROW_NO_NAME UINT32_MAX

/* In the file as here, at its start. */
struct op_row_table_header {
	char magic[OP_ROW_TABLE_MAGIC_BYTES];
	uint32_t nr_bytes; /* of the whole file */
	uint16_t machine;  /* e_machine of elf(5) */
	uint8_t build_id_bytes;
	uint8_t flags; /* OP_ROW_TABLE_IS_PART, and the maker in the upper bits */
	uint8_t build_id[OP_BUILD_ID_BYTES_MAX];
	uint32_t nr_rows, nr_rules, nr_functions;
	uint32_t nr_packed_bytes, nr_name_bytes; /* of the names, packed by zstd and unpacked */
};

#define OP_ROW_TABLE_IS_PART   1u /* rows are missing: a limit was reached, or damage */
#define OP_ROW_TABLE_HAS_WORDS 2u /* the image has a runtime */

/* In the file as here, at its end; not aligned. */
struct op_row_word {
	uint32_t word;     /* enum op_runtime_word (runtime_words.h); others are skipped */
	uint32_t nr_bytes; /* of the symbol */
	uint64_t value;
};

#define OP_ROW_WORDS_MAX 256u

/*
 * Which rows and functions the maker of a table knows. It goes up, to 15 at most, when opd-tables
 * finds more of them in the same image: opd makes tables of an older maker again. 1: Go programs
 * without .eh_frame, entries of programs, signal handlers. 2: words of Python. 3: of
 * Perl, PHP and Ruby. 4: Python's own table of offsets, and musl.
 */
#define OP_ROW_TABLE_MAKER       4u
#define OP_ROW_TABLE_MAKER_SHIFT 4

struct op_row_table {
	const struct op_row_table_header *header; /* the file; the rest points into it */
	const uint32_t *starts;                   /* of the rows, ascending */
	const uint16_t *rules_of;                 /* the rule of each row; 0: none is known */
	const struct op_row_rule *rules;
	const struct op_row_function *functions; /* ascending, and disjoint */
	const void *packed_names;
	const void *words; /* struct op_row_word, not aligned */
	size_t nr_rows, nr_functions, nr_words;
	/* The number of rows before each slice of positions: half of a search is done once. */
	uint32_t slices[OP_ROW_SLICES + 1];
	uint8_t slice_shift; /* position >> slice_shift is the slice */
};

/*
 * Checks the file in memory, all of it, once: every offset, count and rule. The table points into
 * it. `bytes` is aligned to 8. 0; -EBADMSG: damaged, or of another version.
 */
int op_row_table_open(struct op_row_table *table, const void *bytes, size_t nr_bytes) OP_NONNULL OP_MUST_CHECK;

/* The number of rows that begin at a position or before it. */
static inline size_t op_row_table_rows(const struct op_row_table *table, uint64_t position)
{
	size_t slice = (size_t)op_min_u64(position >> table->slice_shift, OP_ROW_SLICES - 1), first = table->slices[slice];

	return first + op_nr_leading(table->starts + first, table->slices[slice + 1] - first, row, le32toh(*row) <= position);
}

/* The rule of the last of so many rows; NULL: there is none. */
static inline const struct op_row_rule *op_row_table_rule(const struct op_row_table *table, size_t nr)
{
	uint16_t rule = nr ? le16toh(table->rules_of[nr - 1]) : 0;

	return rule ? &table->rules[rule] : NULL;
}

/* The rule for a position; NULL: there is none. */
static inline const struct op_row_rule *op_row_table_find(const struct op_row_table *table, uint64_t position)
{
	return op_row_table_rule(table, op_row_table_rows(table, position));
}

/*
 * The rule for a caller. *position is the byte before the return address, which the call ends with.
 * But no call precedes the code that a signal handler returns to: there *position becomes the
 * return address itself.
 */
static inline const struct op_row_rule *op_row_table_caller(const struct op_row_table *table, uint64_t *position)
{
	size_t nr = op_row_table_rows(table, *position);
	bool begins_behind = nr < table->nr_rows && le32toh(table->starts[nr]) == *position + 1;
	const struct op_row_rule *rule = op_row_table_rule(table, nr);
	const struct op_row_rule *behind = begins_behind ? op_row_table_rule(table, nr + 1) : rule;

	if (!behind || !(behind->flags & OP_ROW_IS_SIGNAL))
		return rule;
	++*position;
	return behind;
}

/* Finds a word of the image's runtime. */
bool op_row_table_word(const struct op_row_table *table, uint32_t word, uint64_t *ret_value) OP_NONNULL;

/* The function at a position; NULL: none. */
const struct op_row_function *op_row_table_function(const struct op_row_table *table, uint64_t position) OP_NONNULL;

/*
 * Unpacks the names: strings with NULs at the offsets of the functions. The caller frees them. 0;
 * -ENODATA: the table has none; -EBADMSG: damaged; -ENOMEM.
 */
int op_row_table_names(const struct op_row_table *table, char **ret_names) OP_NONNULL OP_MUST_CHECK;

#endif
