/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/stack_part.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "libop/base/parse.h"
#include "libop/session/wait_states.h"
#include "libop/stacks/store.h"

static_assert(OP_STACK_NR_ENDS == OP_NR_STACK_ENDS && OP_STACK_NR_STATES == OP_NR_WAIT_STATES, "opd-stacks(5)");

/* "STACKS:COUNT:UNIT-MASK", or WAIT; false: another event. Takes `text` apart. */
static bool parse_event(char *text, struct op_ledger_event *ret_event)
{
	struct op_ledger_event event = { 0 };
	char *count = strchr(text, ':'), *mask = count ? strchr(count + 1, ':') : NULL;
	uint64_t unit_mask;

	if (!mask)
		return false;
	*count++ = *mask++ = '\0';
	if (!strcmp(text, OP_STACKS_NAME))
		event.role = OP_EVENT_STACKS;
	else if (!strcmp(text, OP_WAITS_NAME))
		event.role = OP_EVENT_WAITS;
	else
		return false;
	memcpy(event.name, text, strlen(text) + 1);
	if (op_parse_u64(count, 0, UINT64_MAX, &event.count) ||
	    op_parse_u64(mask, 0, UINT32_MAX, &unit_mask))
		return false;
	event.unit_mask = (uint32_t)unit_mask;
	*ret_event = event;
	return true;
}

static int add_tree(struct op_session_ledger *ledger, const struct op_stack_tree *tree, const uint64_t ends[OP_NR_STACK_ENDS],
		    const struct op_stack_node *node)
{
	char *text = op_stack_text(tree, node->value);
	struct op_ledger_event event, *row;
	bool is_ours = text && parse_event(text, &event);
	uint64_t no_room;

	free(text);
	if (!is_ours)
		return text ? 0 : -ENOMEM;
	row = op_session_ledger_row(ledger, &event);
	if (!row)
		return -ENOMEM;
	no_room = op_event_is_time(event.role) ? tree->no_room_us : tree->no_room;
	no_room = op_min_u64(no_room, ends[OP_STACK_END_complete]);
	for (size_t i = 0; i < OP_NR_STACK_ENDS; i++) {
		row->ends[i] += ends[i];
		row->stored += ends[i];
	}
	row->ends[OP_STACK_END_complete] -= no_room;
	row->ends[OP_STACK_END_no_room] += no_room;
	return 0;
}

int op_session_ledger_add_stacks(struct op_session_ledger *ledger, const struct op_stack_tree *tree)
{
	struct place {
		uint32_t event, end;
	} *places = calloc(tree->nr_nodes, sizeof(*places)); /* of the nodes; parents come first */
	uint64_t(*sums)[OP_NR_STACK_ENDS] = NULL;
	uint32_t nr_events = 0;
	int err = 0;

	if (!places)
		return -ENOMEM;
	for (uint32_t i = 1; i < tree->nr_nodes; i++) {
		const struct op_stack_node *node = &tree->nodes[i];

		places[i] = places[node->parent];
		if (node->kind == OP_STACK_EVENT)
			places[i].event = ++nr_events;
		else if (node->kind == OP_STACK_END)
			places[i].end = (uint32_t)node->value;
	}
	sums = calloc(nr_events + 1, sizeof(*sums));
	for (uint32_t i = 0; sums && i < tree->nr_nodes; i++)
		sums[places[i].event][places[i].end] += tree->nodes[i].count;
	err = sums ? 0 : -ENOMEM;
	for (uint32_t i = 0; !err && i < tree->nr_nodes; i++)
		if (tree->nodes[i].kind == OP_STACK_EVENT)
			err = add_tree(ledger, tree, sums[places[i].event], &tree->nodes[i]);
	free(sums);
	free(places);
	return err;
}

int op_stack_part_read(int dir_fd, const char *path, struct op_part_reading *reading)
{
	struct op_stack_tree tree;
	int err = op_stacks_read(dir_fd, path, &tree);

	if (err)
		return err;
	reading->nr_whole = tree.nr_nodes;
	reading->nr_damaged = tree.nr_damaged;
	reading->damaged_offset = op_stacks_file_bytes(tree.nr_nodes);
	for (uint32_t i = 0; reading->see_image && i < tree.nr_nodes; i++)
		if (op_stack_has_image(&tree.nodes[i]))
			reading->see_image(tree.nodes[i].image, reading->arg);
	err = reading->sums ? op_session_ledger_add_stacks(reading->sums, &tree) : 0;
	op_stack_tree_free(&tree);
	return err;
}

/* The writer drops what is damaged when it opens the file. It makes a missing file, too. */
int op_stack_part_recover(int dir_fd, const char *path, const char *tmp_path, uint64_t *ret_nr_dropped)
{
	const struct op_stacks_setup setup = { .max_bytes = 0 };
	struct op_stacks *stacks;
	struct stat st;
	int err = fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;

	if (!err)
		err = op_stacks_open(dir_fd, path, tmp_path, &setup, &stacks);
	if (err)
		return err;
	*ret_nr_dropped = op_stacks_nr_cut(stacks);
	op_stacks_close(stacks);
	return 0;
}
