/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/wait_states.h"

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

	before = before ? before : &none;
	waits->switches += since(more->switches, before->switches);
	waits->idle += since(more->idle, before->idle);
	waits->kernel += since(more->kernel, before->kernel);
	waits->emitted += since(more->emitted, before->emitted);
	waits->skipped += since(more->skipped, before->skipped);
	waits->lost += since(more->lost, before->lost);
	waits->records += since(more->records, before->records);
	for (size_t i = 0; i < OP_NR_WAIT_STATES; i++)
		waits->total_us[i] += since(more->total_us[i], before->total_us[i]);
}
