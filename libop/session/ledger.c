/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/ledger.h"

static const struct {
	const char *name, *meaning;
} reasons[OP_NR_LOSS] = {
#define X(reason, text) [OP_LOSS_##reason] = { #reason, text },
	OP_LOSS_REASONS(X)
#undef X
};

const char *op_loss_name(enum op_loss reason)
{
	return reasons[reason].name;
}

const char *op_loss_meaning(enum op_loss reason)
{
	return reasons[reason].meaning;
}

static const struct {
	const char *name, *meaning;
} bounds[OP_NR_BOUNDS] = {
#define X(bound, text) [OP_BOUND_##bound] = { #bound, text },
	OP_BOUNDS(X)
#undef X
};

const char *op_bound_name(enum op_bound bound)
{
	return bounds[bound].name;
}

const char *op_bound_meaning(enum op_bound bound)
{
	return bounds[bound].meaning;
}

double op_ledger_counted_share(const struct op_ledger_event *event)
{
	return event->enabled_ns ? (double)event->counted_ns / (double)event->enabled_ns : 1;
}

uint64_t op_ledger_lost(const struct op_ledger_event *event)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < OP_NR_LOSS; i++)
		sum += event->lost[i];
	return sum;
}

uint64_t op_ledger_stacks(const struct op_ledger_event *event, uint64_t *ret_nr_complete)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < OP_NR_STACK_ENDS; i++)
		sum += event->ends[i];
	*ret_nr_complete = event->ends[OP_STACK_END_complete];
	return sum;
}

double op_ledger_loss_share(uint64_t received, uint64_t filtered, uint64_t lost_kernel, uint64_t lost)
{
	double wanted = (double)(received - op_min_u64(received, filtered)), all_lost = (double)lost;

	all_lost += received ? (double)lost_kernel * wanted / (double)received : (double)lost_kernel;
	wanted += all_lost - (double)lost;
	return wanted > 0 ? all_lost / wanted : lost > 0;
}

bool op_ledger_adds_up(const struct op_ledger_event *event)
{
	return event->received == event->stored + event->filtered + op_ledger_lost(event);
}
