/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/ledger/event_sums.h"

#include <stdio.h>

#include "libop/base/clock.h"
#include "libop/events/event_list.h"

/* The time in throttling, up to now when it has not ended. */
static uint64_t throttled_ns(const struct opd_event *event, uint64_t now_ns)
{
	uint64_t open_ns = event->throttled_since_ns && now_ns > event->throttled_since_ns ? now_ns - event->throttled_since_ns : 0;

	return event->throttled_ns + open_ns;
}

static void add_event(const struct opd_capture *capture, const struct opd_event *event, struct op_ledger_event *sum)
{
	struct opd_counts counts;

	opd_capture_counts(capture, event, &counts);
	sum->taken += counts.taken;
	/* The time of a lost record of WAIT is in the next one, until the thread ends. */
	sum->lost_kernel += op_event_is_time(sum->role) ? event->lost_samples : counts.lost;
	/* The event of a task is enabled on all CPUs while the task runs on one. */
	if (!capture->has_tasks) {
		sum->enabled_ns += counts.enabled_ns;
		sum->counted_ns += counts.counted_ns;
	}
	sum->received += event->received;
	sum->stored += event->stored;
	sum->unattributed += event->unattributed;
	sum->filtered += event->filtered;
	sum->throttled_ns += throttled_ns(event, op_now_ns());
	sum->nr_throttles += event->nr_throttles;
	for (size_t i = 0; i < OP_NR_LOSS; i++)
		sum->lost[i] += event->lost[i];
	for (size_t i = 0; i < OP_NR_STACK_ENDS; i++)
		sum->ends[i] += event->ends[i];
}

void opd_sum_event(const struct opd_capture *capture, size_t index, struct op_ledger_event *ret_event)
{
	const struct op_event *event = &capture->events[index];
	struct op_ledger_event sum = {
		.count = event->count,
		.unit_mask = event->unit_mask,
		.every_event = event->every_event,
		.role = event->role,
	};

	snprintf(sum.name, sizeof(sum.name), "%s", event->name);
	for (size_t c = 0; c < capture->nr_cpus; c++)
		add_event(capture, &capture->cpus[c].events[index], &sum);
	/* The kernel's count is the number of samples only when each event is a sample. */
	if (!event->every_event)
		sum.taken = sum.received + sum.lost_kernel;
	if (sum.taken > sum.received + sum.lost_kernel)
		sum.outstanding = sum.taken - sum.received - sum.lost_kernel;
	*ret_event = sum;
}

void opd_sum_losses(const struct opd_capture *capture, struct opd_losses *ret_losses)
{
	struct opd_losses losses = { 0 };

	for (size_t e = 0; e < capture->nr_events; e++) {
		struct op_ledger_event sum;

		opd_sum_event(capture, e, &sum);
		if (op_event_is_time(sum.role))
			continue; /* its numbers are no samples */
		*(sum.role == OP_EVENT_STACKS ? &losses.stacks : &losses.kernel) += sum.lost_kernel;
		for (size_t i = 0; i < OP_NR_LOSS; i++)
			losses.lost[i] += sum.lost[i];
	}
	*ret_losses = losses;
}

static uint64_t damaged(const struct opd_cpu *cpu)
{
	return cpu->pair.rings[0].damaged + cpu->pair.rings[1].damaged + cpu->stack_pair.rings[0].damaged +
	       cpu->stack_pair.rings[1].damaged + cpu->memory.reader.rings[0].damaged + cpu->memory.reader.rings[1].damaged +
	       cpu->sideband.damaged;
}

void opd_sum_cpu(const struct opd_capture *capture, const struct opd_cpu *cpu, struct op_ledger_cpu *ret_sums)
{
	struct op_swap_counts counts = cpu->counts_before;

	op_swap_counts_add(&counts, &cpu->stack_pair.counts);
	op_swap_counts_add(&counts, &cpu->pair.counts);
	*ret_sums = (struct op_ledger_cpu){
		.cpu = cpu->cpu,
		.online = cpu->online,
		.swaps = counts.swaps,
		.swap_wait_ns = counts.wait_ns,
		.swap_longest_ns = counts.longest_wait_ns,
		.bytes_read = counts.bytes,
		.records_read = counts.records,
		.turn_bytes = counts.last_bytes,
		.turn_records = counts.last_records,
		.turn_most_bytes = counts.most_bytes,
		.turn_most_records = counts.most_records,
		.sideband_bytes = cpu->sideband_bytes,
		.sideband_lost = cpu->sideband_lost,
		.late = counts.late,
		.damaged = damaged(cpu),
	};
	for (size_t e = 0; e < capture->nr_events; e++) {
		struct op_ledger_event event = { 0 };

		if (!op_event_is_taken(capture->events[e].role) || op_event_is_time(capture->events[e].role))
			continue;
		add_event(capture, &cpu->events[e], &event);
		ret_sums->received += event.received;
		ret_sums->lost_kernel += event.lost_kernel;
		ret_sums->throttled_ns += event.throttled_ns;
		for (size_t i = 0; i < OP_NR_LOSS; i++)
			ret_sums->lost[i] += event.lost[i];
	}
}
