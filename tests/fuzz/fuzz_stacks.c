/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fuzz target for files of stacks. Input: the file. The reader and the writer take the same files,
 * and the same nodes of them. What the writer has opened is whole, and counts what is added.
 */
#include "tests/fuzz/fuzz_dir.h"

#include <errno.h>

#include "libop/session/stack_part.h"
#include "libop/stacks/read.h"
#include "libop/stacks/store.h"

#define FILE_NAME "stacks"
#define TMP_NAME  "tmp/stacks"

static uint64_t sum_of(const struct op_stack_tree *tree)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < tree->nr_nodes; i++)
		sum += tree->nodes[i].count;
	return sum;
}

static void use(const struct op_stack_tree *tree)
{
	struct op_session_ledger ledger = { 0 };

	for (uint32_t i = 1; i < tree->nr_nodes; i++) {
		fuzz_check(tree->nodes[i].parent < i);
		if (tree->nodes[i].kind == OP_STACK_EVENT || (tree->nodes[i].kind == OP_STACK_CGROUP && tree->nodes[i].value))
			free(op_stack_text(tree, tree->nodes[i].value));
	}
	fuzz_check(!op_session_ledger_add_stacks(&ledger, tree));
	op_session_ledger_free(&ledger);
}

static void add(struct op_stacks *stacks)
{
	struct op_stack_path path = { .app = 1, .comm = "a", .cgroup = "/b", .tgid = 1, .tid = 2, .end = 1 };

	for (uint64_t i = 0; i < 200; i++) {
		const struct op_stack_frame frames[] = {
			{ .image = i % 7, .value = i }, { .image = 1, .value = i % 3, .is_kernel = true }
		};

		path.state = (uint32_t)(i % OP_STACK_NR_STATES);
		fuzz_check(!op_stacks_add(stacks, &path, frames, op_array_size(frames), 1));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	static const char *const events[] = { "STACKS:10101010:0x0" };
	const struct op_stacks_setup setup = { .events = events, .nr_events = 1, .max_bytes = 1u << 20 };
	struct op_stack_tree tree, after;
	struct op_stacks *stacks;
	int err;

	fuzz_check(fuzz_dir_write(FILE_NAME, bytes, nr_bytes));
	err = op_stacks_read(fuzz_dir_open(), FILE_NAME, &tree);
	fuzz_check(!err || err == -EBADMSG);
	fuzz_check(op_stacks_open(fuzz_dir_open(), FILE_NAME, TMP_NAME, &setup, &stacks) == err);
	if (err)
		return 0;
	use(&tree);
	fuzz_check(op_stacks_total(stacks) == sum_of(&tree) && op_stacks_nr_nodes(stacks) >= tree.nr_nodes);
	add(stacks);
	op_stacks_close(stacks);
	fuzz_check(!op_stacks_read(fuzz_dir_open(), FILE_NAME, &after));
	fuzz_check(!after.nr_damaged && sum_of(&after) == sum_of(&tree) + 200);
	op_stack_tree_free(&after);
	op_stack_tree_free(&tree);
	return 0;
}
