/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The table that the runtime of Go keeps of its functions (.gopclntab). It is in every Go program,
 * also in one without symbols, because the runtime needs it for its own stacks: names, lines, and
 * by how much each instruction has lowered the stack pointer. Sources: "Go 1.2 Runtime Symbol
 * Information", and runtime/symtab.go and internal/abi/symtab.go of each version of Go.
 *
 * The layouts are those of Go 1.2, 1.16, 1.18 and 1.20. Only programs of 64 bits, little-endian.
 * The file is hostile: every read is bounded, and no loop is longer than the file. Any thread.
 */
#ifndef OPR_ELF_GO_TABLE_H
#define OPR_ELF_GO_TABLE_H

#include "tools/elf/bytes.h"

struct opr_go_table {
	const uint8_t *bytes; /* in the file that was searched */
	uint64_t nr_bytes;    /* the table ends earlier */
	uint32_t magic;
	uint8_t quantum;  /* what instructions are aligned to */
	bool is_wide;     /* entries have addresses, not distances from `text` */
	uint64_t text;    /* what addresses are relative to */
	uint64_t nr_functions;
	uint64_t functions, names, values, units, files; /* offsets of the parts */
};

struct opr_go_function {
	uint64_t start, end; /* addresses; start < end */
	const char *name;    /* in the file */
	uint32_t depths, files, lines; /* of the tables of values */
	uint32_t unit;
	bool is_start;    /* nothing calls it: where a goroutine, a thread or the program begins */
	bool moves_stack; /* it goes to another stack: the table of depths does not hold */
};

/* The ranges of code that have one value. */
struct opr_go_values {
	struct opr_bytes bytes;
	uint64_t start, end; /* of the range */
	int64_t value;
	uint64_t first, last; /* of the function: its start and its end */
	uint8_t quantum;
};

/* Finds the table in the bytes of an ELF file; no section is needed. False: there is none. */
bool opr_go_find(const uint8_t *file, uint64_t nr_bytes, struct opr_go_table *ret_table) OP_NONNULL OP_MUST_CHECK;

/* The function of an index below nr_functions. False: the entry is damaged. */
bool opr_go_function(const struct opr_go_table *table, uint64_t index, struct opr_go_function *ret_function) OP_NONNULL;

/* Begins with the ranges of one of the tables of values of a function. */
struct opr_go_values opr_go_values(const struct opr_go_table *table, const struct opr_go_function *function,
				   uint32_t values) OP_NONNULL;

/* The next range. False: there is none. */
bool opr_go_next(struct opr_go_values *values) OP_NONNULL;

/*
 * Source file and line of an address. False: not known. *steps is how many more ranges all lookups
 * together may read: a hostile function has as many as the file has bytes.
 */
bool opr_go_line(const struct opr_go_table *table, uint64_t address, uint64_t *steps, const char **ret_file,
		 unsigned int *ret_line) OP_NONNULL;

#define OPR_GO_STEPS_MAX 200000000u

#endif
