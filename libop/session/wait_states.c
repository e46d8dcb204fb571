/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/wait_states.h"

#include <stdio.h>

static const struct {
	const char *name, *meaning;
} states[OP_NR_WAIT_STATES] = {
	[OP_WAIT_NONE] = { "running", "it has a CPU" },
#define X(state, number, text) [number] = { #state, text },
	OP_WAIT_STATES(X)
#undef X
};

const char *op_wait_state_name(enum op_wait_state state)
{
	return states[state].name;
}

const char *op_wait_state_meaning(enum op_wait_state state)
{
	return states[state].meaning;
}

uint64_t *op_wait_ledger_number(struct op_wait_ledger *waits, size_t index, char name[OP_WAIT_NUMBER_BYTES])
{
	const struct {
		const char *name;
		uint64_t *number;
	} numbers[] = {
		{ "switches", &waits->switches }, { "idle", &waits->idle },	    { "kernel", &waits->kernel },
		{ "emitted", &waits->emitted },	  { "skipped", &waits->skipped }, { "lost", &waits->lost },
		{ "records", &waits->records },
	};
	size_t state = index + 1 - op_min_u64(index, op_array_size(numbers));

	if (index < op_array_size(numbers)) {
		snprintf(name, OP_WAIT_NUMBER_BYTES, "%s", numbers[index].name);
		return numbers[index].number;
	}
	if (state >= OP_NR_WAIT_STATES)
		return NULL;
	snprintf(name, OP_WAIT_NUMBER_BYTES, "%s_us", states[state].name);
	return &waits->total_us[state];
}

uint64_t op_wait_ledger_total_us(const struct op_wait_ledger *waits)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < OP_NR_WAIT_STATES; i++)
		sum += waits->total_us[i];
	return sum;
}

static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

void op_wait_ledger_add(struct op_wait_ledger *waits, const struct op_wait_ledger *more, const struct op_wait_ledger *before)
{
	static const struct op_wait_ledger none;

	struct op_wait_ledger add = *more, subtract = before ? *before : none;
	char name[OP_WAIT_NUMBER_BYTES];
	uint64_t *number;

	for (size_t i = 0; (number = op_wait_ledger_number(waits, i, name)); i++)
		*number += since(*op_wait_ledger_number(&add, i, name), *op_wait_ledger_number(&subtract, i, name));
}
