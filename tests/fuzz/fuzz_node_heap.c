/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fuzz target for functions of JavaScript in the memory of a process. Input: an even first byte
 * (Node 18) or an odd one (Node 20); from the 8th byte on what is asked for; then the memory.
 */
#include <stdlib.h>

#include "tests/unit/node_memory.h"

#define READS_MAX 40000u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	static struct node_memory memory;
	struct opd_node_wanted wanted[2];
	struct opd_node_layout layout;
	struct opd_node_found found;
	struct op_text answer = { 0 };
	const char *name, *file, *lines;
	size_t at = 0;

	if (nr_bytes < 8 + sizeof(wanted))
		return 0;
	node_layout(&layout, bytes[0] & 1 ? 11 : 10);
	memcpy(wanted, bytes + 8, sizeof(wanted));
	nr_bytes -= 8 + sizeof(wanted);
	memset(&memory, 0, sizeof(memory));
	memcpy(memory.words, bytes + 8 + sizeof(wanted), op_min_u64(nr_bytes, sizeof(memory.words)));
	opd_node_read(&layout, wanted, op_array_size(wanted), node_read, &memory, &answer);
	if (memory.nr_reads > READS_MAX)
		abort();
	while (opd_node_next(&answer, &at, &found, &name, &file, &lines))
		continue;
	if (at != answer.length)
		abort();
	op_text_free(&answer);
	return 0;
}
