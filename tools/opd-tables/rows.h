/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows of an image while they are collected. Addresses become positions here. One thread. */
#ifndef OPT_ROWS_H
#define OPT_ROWS_H

#include "libop/base/htable.h"
#include "libop/unwind/row_table.h"

/* A part of the file that is loaded as code. */
struct opt_segment {
	uint64_t address, nr_bytes, position;
};

struct opt_row {
	uint32_t start; /* position */
	uint16_t rule;
};

/* The rows of one function. */
struct opt_range {
	uint64_t start, end; /* positions */
	size_t first_row, nr_rows;
};

struct opt_rule {
	struct op_hlink link;
	struct op_row_rule rule;
	uint16_t number;
};

/* Zeroed at first but for the segments, which stay the caller's; opt_rows_free in any case. */
struct opt_rows {
	const struct opt_segment *segments;
	size_t nr_segments;
	struct opt_row *rows;
	size_t nr_rows, rows_capacity;
	struct opt_range *ranges;
	size_t nr_ranges, ranges_capacity;
	struct op_htable rules;
	size_t nr_rules;
	uint64_t address_bias; /* of the function that is being added: address - position */
	bool is_part;          /* a limit was reached */
};

/* Begins a function. False: it is not in code that is in the file. 0 or -ENOMEM. */
int opt_rows_begin(struct opt_rows *rows, uint64_t start, uint64_t end, bool *ret_is_code) OP_NONNULL OP_MUST_CHECK;

/* Adds a row of the function, which holds from `address`. 0 or -ENOMEM. */
int opt_rows_add(struct opt_rows *rows, uint64_t address, const struct op_row_rule *rule) OP_NONNULL OP_MUST_CHECK;

/* Drops the rows of the function: its program is damaged. */
void opt_rows_drop(struct opt_rows *rows) OP_NONNULL;

/*
 * Sorts the functions. One that begins inside of another cuts it. Between functions, and where no
 * rule is known, the rule is 0. Afterwards the rows are those of the table. 0 or -ENOMEM.
 */
int opt_rows_finish(struct opt_rows *rows) OP_NONNULL OP_MUST_CHECK;

void opt_rows_free(struct opt_rows *rows);

#endif
