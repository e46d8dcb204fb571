/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target for row tables (opd-table(5)) and for walks over them. Input: the file. */
#include <stdlib.h>

#include "tests/unwind/hostile_walk.h"

#define NAME_BYTES_MAX (1u << 20) /* more would only be slow */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	struct op_row_table table;
	uint64_t seed = 0;
	char *copy = malloc(nr_bytes + 1), *names; /* aligned, and its end is watched */

	if (!copy)
		return 0;
	memcpy(copy, bytes, nr_bytes);
	for (size_t i = 0; i < nr_bytes; i++)
		seed = seed * 31 + bytes[i];
	if (!op_row_table_open(&table, copy, nr_bytes)) {
		hostile_walks(&table, seed);
		if (le32toh(table.header->nr_name_bytes) <= NAME_BYTES_MAX && !op_row_table_names(&table, &names)) {
			for (size_t i = 0; i < table.nr_functions; i++)
				if (le32toh(table.functions[i].name) != OP_ROW_NO_NAME &&
				    strlen(names + le32toh(table.functions[i].name)) > le32toh(table.header->nr_name_bytes))
					abort();
			free(names);
		}
	}
	free(copy);
	return 0;
}
