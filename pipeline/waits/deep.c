/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/waits/deep.h"

#include <errno.h>
#include <stdlib.h>

#include "libop/base/clock.h"
#include "libop/base/log.h"
#include "pipeline/drive/notes.h"
#include "pipeline/stacks/state.h"

#define TURN_NS    (500ull * OP_NS_PER_MS) /* twice the usual one */
#define RING_SHARE 2u /* of a ring; waits take a quarter, samples the rest */

struct opd_deep {
	struct opd_pipeline *pipeline;
	struct opd_wait_program *program;
	uint64_t *directed; /* for each CPU of the capture, the id of its event of notes */
};

/* CPUs come and go. */
static void direct(struct opd_deep *deep)
{
	const struct opd_capture *capture = &deep->pipeline->capture;
	static struct op_rate rate;

	for (size_t c = 0; c < capture->nr_cpus; c++) {
		const struct opd_cpu *cpu = &capture->cpus[c];
		int err;

		if (!cpu->online || !cpu->notes_id || deep->directed[c] == cpu->notes_id)
			continue;
		err = opd_wait_program_direct_notes(deep->program, cpu->cpu, cpu->notes_fd);
		if (err)
			op_log_failure(&rate, op_now_ns(), "directing deep stacks to the ring of a CPU", err);
		else
			deep->directed[c] = cpu->notes_id;
	}
}

static bool is_of(const struct op_event *event OP_UNUSED)
{
	return false; /* notes are of no event of the list */
}

static void take(void *host OP_UNUSED, const struct opd_record *record OP_UNUSED)
{
}

static void turn(void *host)
{
	struct opd_deep *deep = host;

	direct(deep);
	opd_wait_program_control(deep->program)->deep_round++;
}

void opd_deep_sum(const struct opd_deep *deep, uint64_t ret_stats[OP_NR_DEEP_STATS])
{
	const struct opd_stacks_counts *stacks = &deep->pipeline->stacks->counts;
	const struct opd_notes_counts *notes = &deep->pipeline->notes->counts;
	uint64_t sums[OP_NR_DEEP_STATS] = {
		[OP_DEEP_joined] = notes->nr_joined,
		[OP_DEEP_dropped] = notes->nr_dropped,
		[OP_DEEP_cut] = stacks->nr_cut,
		[OP_DEEP_cut_bytes] = stacks->cut_bytes,
		[OP_DEEP_cut_most_bytes] = stacks->cut_most_bytes,
	};
	const struct opd_deep_cpu *cpu;

	for (uint32_t i = 0; (cpu = opd_wait_program_deep_cpu(deep->program, i)); i++) {
		sums[OP_DEEP_samples] += cpu->samples;
		sums[OP_DEEP_stacks] += cpu->deep;
		sums[OP_DEEP_copied] += cpu->copied;
		sums[OP_DEEP_passed] += cpu->passed;
		sums[OP_DEEP_denied] += cpu->denied;
		sums[OP_DEEP_unread] += cpu->unread;
		sums[OP_DEEP_lost] += cpu->lost;
		sums[OP_DEEP_bytes] += cpu->bytes;
	}
	memcpy(ret_stats, sums, sizeof(sums));
}

/* As many bytes in a turn as the budget has for one CPU, and no more than half of a ring. */
static void set_limits(const struct opd_capture *capture, uint64_t budget, struct opd_wait_control *control)
{
	uint64_t ring_bytes = capture->stack_ring_bytes ? capture->stack_ring_bytes : capture->ring_bytes;
	uint64_t nr_bytes = opd_plan_wait_bytes(budget, capture->nr_online) * TURN_NS / OP_NS_PER_S;

	control->deep_grant = (uint32_t)op_min_u64(nr_bytes, ring_bytes / RING_SHARE);
	for (size_t i = 0; i < capture->nr_opened; i++)
		if (budget && capture->events[i].role == OP_EVENT_STACKS)
			control->stack_bytes = capture->events[i].stack_bytes;
}

int opd_deep_new(struct opd_pipeline *pipeline, struct opd_wait_program *program, uint64_t budget, struct opd_deep **ret_deep)
{
	struct opd_deep *deep = calloc(1, sizeof(*deep));
	const struct opd_record_source source = { .name = "deep stacks", .is_of = is_of, .take = take, .turn = turn, .host = deep };
	int err = -ENOMEM;

	if (!deep)
		return err;
	*deep = (struct opd_deep){ .pipeline = pipeline, .program = program };
	deep->directed = calloc(pipeline->capture.nr_cpus, sizeof(*deep->directed));
	if (deep->directed)
		err = opd_notes_new(&pipeline->notes);
	if (err) {
		opd_deep_free(deep);
		return err;
	}
	direct(deep);
	set_limits(&pipeline->capture, budget, opd_wait_program_control(program));
	opd_record_source_add(&pipeline->sources, &source);
	*ret_deep = deep;
	return 0;
}

void opd_deep_free(struct opd_deep *deep)
{
	if (!deep)
		return;
	opd_notes_free(deep->pipeline->notes);
	deep->pipeline->notes = NULL;
	free(deep->directed);
	free(deep);
}
