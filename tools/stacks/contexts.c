/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/contexts.h"

#include <stdlib.h>

void opr_stack_context_free(struct opr_stack_context *row)
{
	free(row->event);
	free(row->app);
	free(row->comm);
	free(row->cgroup);
	free(row->user);
	free(row->thread);
	free(row->cpu);
}

void opr_stack_contexts_free(struct opr_stack_contexts *contexts)
{
	for (size_t i = 0; i < contexts->nr_rows; i++)
		opr_stack_context_free(&contexts->rows[i]);
	free(contexts->rows);
	free(contexts->spans);
	free(contexts->times);
	*contexts = (struct opr_stack_contexts){ 0 };
}
