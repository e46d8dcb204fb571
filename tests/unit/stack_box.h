/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A store of stacks in the directory of a test (test_box.h). */
#ifndef STACK_BOX_H
#define STACK_BOX_H

#include "tests/unit/cmocka_all.h"

#include "libop/session/stack_ends.h"
#include "libop/stacks/read.h"
#include "libop/stacks/store.h"
#include "tests/unit/test_box.h"

#define STACKS     "stacks"
#define STACKS_TMP "stacks.tmp"
#define MAX_BYTES  (1u << 20)

static const char *const stack_events[] = { "STACKS:10101010:0x0", "page-faults:100:0x0" };

static const struct op_stacks_setup stack_setup = {
	.events = stack_events,
	.nr_events = op_array_size(stack_events),
	.max_bytes = MAX_BYTES,
};

static inline struct op_stacks *open_stacks(const struct box *box)
{
	struct op_stacks *stacks;

	assert_int_equal(op_stacks_open(box->fd, STACKS, STACKS_TMP, &stack_setup, &stacks), 0);
	return stacks;
}

static inline struct op_stack_tree read_stacks(const struct box *box)
{
	struct op_stack_tree tree;

	assert_int_equal(op_stacks_read(box->fd, STACKS, &tree), 0);
	return tree;
}

static inline uint64_t sum_of_stacks(const struct op_stack_tree *tree)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < tree->nr_nodes; i++)
		sum += tree->nodes[i].count;
	return sum;
}

/* The i-th of 3000 stacks, which have 1 to 60 frames and share their beginnings. */
static inline int add_ith(struct op_stacks *stacks, uint64_t i)
{
	struct op_stack_path path = {
		.event = i % 2,
		.app = 1 + i % 3,
		.comm = "work",
		.cgroup = i % 5 ? "/a.slice/b.service" : NULL,
		.end = (uint32_t)(i % OP_STACK_END_no_room),
	};
	struct op_stack_frame frames[60];
	size_t nr = 1 + i % op_array_size(frames);

	for (size_t k = 0; k < nr; k++)
		frames[k] = (struct op_stack_frame){
			.image = 1 + k % 4,
			.value = k + 5 < nr ? k : 100 + i / op_array_size(frames) % 50,
			.is_kernel = k + 3 > nr,
		};
	return op_stacks_add(stacks, &path, frames, nr, 1);
}

#endif
