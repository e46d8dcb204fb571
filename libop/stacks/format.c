/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/stacks/format.h"

#include <endian.h>
#include <string.h>

#define OF(kind)  (1u << OP_STACK_##kind)
#define OF_FRAMES (OF(THREAD) | OF(END) | OF(STATE) | OF(FRAME) | OF(KERNEL_FRAME) | OF(RUNTIME_FRAME))

/* The kinds that the parent of a node may have. */
static const uint16_t parents[OP_NR_STACK_KINDS] = {
	[OP_STACK_EVENT] = OF(ROOT),
	[OP_STACK_APP] = OF(EVENT),
	[OP_STACK_COMM] = OF(APP),
	[OP_STACK_CGROUP] = OF(COMM),
	[OP_STACK_THREAD] = OF(CGROUP),
	[OP_STACK_END] = OF(THREAD),
	[OP_STACK_FRAME] = OF_FRAMES,
	[OP_STACK_KERNEL_FRAME] = OF_FRAMES,
	[OP_STACK_TEXT] = OF(ROOT) | OF(TEXT),
	[OP_STACK_STATE] = OF(THREAD) | OF(END),
	[OP_STACK_RUNTIME_FRAME] = OF_FRAMES,
	[OP_STACK_WAKER] = OF(STATE) | OF(FRAME) | OF(KERNEL_FRAME) | OF(RUNTIME_FRAME),
};

bool op_stacks_is_header(const struct op_stacks_header *header)
{
	uint32_t nr_nodes = le32toh(header->nr_nodes);

	return !memcmp(header->magic, OP_STACKS_MAGIC, sizeof(header->magic)) &&
	       le32toh(header->node_bytes) == sizeof(struct op_stack_node) && nr_nodes && nr_nodes <= OP_STACKS_NODES_MAX;
}

static bool is_text(const struct op_stack_node *nodes, uint32_t index, uint64_t text)
{
	return text < index && le16toh(nodes[text].kind) == OP_STACK_TEXT;
}

bool op_stack_is_sound(const struct op_stack_node *nodes, uint32_t index)
{
	const struct op_stack_node *node = &nodes[index];
	uint32_t parent = le32toh(node->parent), kind = le16toh(node->kind);
	uint64_t value = le64toh(node->value);

	if (!index)
		return kind == OP_STACK_ROOT && !parent;
	if (kind >= OP_NR_STACK_KINDS || parent >= index || !(parents[kind] & 1u << le16toh(nodes[parent].kind)))
		return false;
	switch ((enum op_stack_kind)kind) {
	case OP_STACK_EVENT:
		return is_text(nodes, index, value);
	case OP_STACK_CGROUP:
	case OP_STACK_WAKER:
		return !value || is_text(nodes, index, value);
	case OP_STACK_END:
		return value && value < OP_STACK_NR_ENDS;
	case OP_STACK_STATE:
		return value && value < OP_STACK_NR_STATES;
	case OP_STACK_RUNTIME_FRAME:
		return is_text(nodes, index, value & UINT32_MAX);
	case OP_STACK_ROOT:
	case OP_STACK_APP:
	case OP_STACK_COMM:
	case OP_STACK_THREAD:
	case OP_STACK_FRAME:
	case OP_STACK_KERNEL_FRAME:
	case OP_STACK_TEXT:
	case OP_NR_STACK_KINDS:
		break;
	}
	return true;
}
