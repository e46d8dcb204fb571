/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/count/sink.h"

#include "pipeline/stacks/stack.h"

void opd_sinks_stack(const struct opd_sinks *sinks, struct opd_stack *stack)
{
	stack->error = 0;
	for (size_t i = 0; i < sinks->nr && !stack->error; i++)
		if (sinks->rows[i].stack)
			sinks->rows[i].stack(sinks->rows[i].host, stack);
}

void opd_sinks_close(const struct opd_sinks *sinks)
{
	for (size_t i = sinks->nr; i--;)
		if (sinks->rows[i].close)
			sinks->rows[i].close(sinks->rows[i].host);
}
