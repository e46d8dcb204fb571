/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Apart from row_table.c, because only the tools need names and zstd. */
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "libop/unwind/row_table.h"

int op_row_table_names(const struct op_row_table *table, char **ret_names)
{
	size_t nr_packed = le32toh(table->header->nr_packed_bytes), nr_bytes = le32toh(table->header->nr_name_bytes);
	char *names;

	if (!nr_packed || !nr_bytes)
		return -ENODATA;
	names = malloc(nr_bytes + 1);
	if (!names)
		return -ENOMEM;
	if (ZSTD_decompress(names, nr_bytes, table->packed_names, nr_packed) != nr_bytes) {
		free(names);
		return -EBADMSG;
	}
	names[nr_bytes] = '\0';
	*ret_names = names;
	return 0;
}
