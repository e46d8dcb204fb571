/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/runtimes/host.h"

#include "libop/base/clock.h"
#include "libop/base/htable.h"

/*
 * Of each owner and runtime: what can be saved up, and what is added in a second. A Java compiler
 * that runs for three seconds asks for 120 ms and 80 MB of it.
 */
#define SPEND_NS             (500 * OP_NS_PER_MS)
#define SPEND_NS_A_SECOND    (20 * OP_NS_PER_MS)
#define SPEND_BYTES          (256ull << 20)
#define SPEND_BYTES_A_SECOND (16ull << 20)

static struct opd_runtime_budget *budget_of(struct opd_runtime_host *host, uint64_t owner, enum op_runtime runtime)
{
	return &host->budgets[op_hash_add(op_hash_u64(owner), runtime) % OPD_RUNTIME_BUDGETS];
}

bool opd_runtime_may_spend(struct opd_runtime_host *host, uint64_t owner, enum op_runtime runtime, uint64_t now_ns)
{
	struct opd_runtime_budget *budget = budget_of(host, owner, runtime);
	uint64_t passed_ns = now_ns - budget->at_ns;

	if (!budget->at_ns || passed_ns > 3600 * (uint64_t)OP_NS_PER_S) {
		*budget = (struct opd_runtime_budget){ SPEND_NS, SPEND_BYTES, now_ns };
	} else if (passed_ns > OP_NS_PER_MS) {
		int64_t ns = budget->ns + (int64_t)(passed_ns * SPEND_NS_A_SECOND / OP_NS_PER_S);
		int64_t bytes = budget->bytes + (int64_t)(passed_ns / OP_NS_PER_MS * SPEND_BYTES_A_SECOND / 1000);

		budget->ns = ns < SPEND_NS ? ns : SPEND_NS;
		budget->bytes = bytes < (int64_t)SPEND_BYTES ? bytes : (int64_t)SPEND_BYTES;
		budget->at_ns = now_ns;
	}
	host->is_spent |= budget->ns <= 0 || budget->bytes <= 0;
	return budget->ns > 0 && budget->bytes > 0;
}

void opd_runtime_spend(struct opd_runtime_host *host, uint64_t owner, enum op_runtime runtime, uint64_t ns, uint64_t bytes)
{
	struct opd_runtime_budget *budget = budget_of(host, owner, runtime);

	budget->ns -= (int64_t)op_min_u64(ns, OP_NS_PER_S);
	budget->bytes -= (int64_t)op_min_u64(bytes, 2 * SPEND_BYTES);
}
