/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/stacks/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int opd_stacks_new(struct opd_tables *tables, struct opd_stacks **ret_stacks)
{
	struct opd_stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return -ENOMEM;
	stacks->tables = tables;
	stacks->machine = op_stack_machine();
	stacks->registers = op_stack_registers(stacks->machine);
	*ret_stacks = stacks;
	return 0;
}

void opd_stacks_free(struct opd_stacks *stacks)
{
	if (!stacks)
		return;
	opd_stack_queue_free(&stacks->queue);
	opd_runtimes_free(stacks->runtimes);
	free(stacks);
}

int opd_stacks_fd(const struct opd_stacks *stacks)
{
	return stacks->tables ? opd_tables_fd(stacks->tables) : -1;
}

void opd_stacks_begin_session(struct opd_stacks *stacks)
{
	memset(stacks->stops, 0, sizeof(stacks->stops));
	stacks->counts = (struct opd_stacks_counts){ 0 };
}

void opd_stacks_reset(struct opd_stacks *stacks)
{
	opd_stack_queue_free(&stacks->queue);
	opd_stacks_begin_session(stacks);
}

