/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target for the table of functions of Go programs. Input: an ELF file. */
#include <stdlib.h>

#include "tools/elf/go_table.h"

#define ADDRESSES 8u /* of each function */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes);

static void look(const struct opr_go_table *table, const struct opr_go_function *function, uint64_t *steps)
{
	struct opr_go_values values = opr_go_values(table, function, function->depths);
	uint64_t end = function->start;
	unsigned int line;
	const char *file;

	while (*steps && opr_go_next(&values)) {
		--*steps;
		if (values.start != end || values.end <= values.start || values.end > function->end)
			abort();
		end = values.end;
	}
	for (uint64_t i = 0; i < ADDRESSES; i++)
		if (opr_go_line(table, function->start + i, steps, &file, &line) && !*file)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	uint8_t *copy = malloc(nr_bytes + 1); /* its end is watched */
	struct opr_go_function function;
	struct opr_go_table table;
	uint64_t steps = 1u << 20;

	if (!copy)
		return 0;
	memcpy(copy, bytes, nr_bytes);
	if (opr_go_find(copy, nr_bytes, &table))
		for (uint64_t i = 0; i < table.nr_functions; i++)
			if (opr_go_function(&table, i, &function)) {
				if (!*function.name || function.end <= function.start)
					abort();
				look(&table, &function, &steps);
			}
	free(copy);
	return 0;
}
