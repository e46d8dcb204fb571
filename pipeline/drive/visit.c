/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/drive/visit.h"

#include <errno.h>

#include "libop/base/clock.h"
#include "libop/base/log.h"
#include "pipeline/count/jit_objects.h"
#include "pipeline/drive/sources.h"
#include "pipeline/resolve/jit_lookup.h"
#include "pipeline/resolve/sideband.h"

/* visits after the end of sampling: late commits are in the rings by then */
#define QUIET_VISITS       8
#define RESCAN_INTERVAL_NS OP_NS_PER_S
#define WAITS_MAX_NS       (5u * (uint64_t)OP_NS_PER_S)
#define QUIET_SHARE        16u /* of a ring: samples that can wait */

int opd_visits_init(struct opd_visits *visits, struct opd_pipeline *pipeline, unsigned int nr_threads)
{
	size_t nr_cpus = pipeline->capture.nr_cpus;
	struct opd_visits fresh = {
		.pipeline = pipeline,
		.due = calloc(nr_cpus, sizeof(struct opd_cpu *)),
		.swaps = calloc(2 * nr_cpus, sizeof(struct opd_swap)),
	};
	int err = fresh.due && fresh.swaps ? opd_swappers_new(nr_threads, &fresh.swappers) : -ENOMEM;

	if (err) {
		opd_visits_free(&fresh);
		return err;
	}
	*visits = fresh;
	return 0;
}

void opd_visits_write_objects(struct opd_visits *visits)
{
	struct opd_pipeline *pipeline = visits->pipeline;
	uint64_t begin_ns = op_now_ns();

	while (!opd_jit_look_at_waiting(&pipeline->resolver.processes, pipeline->resolver.now_ns, begin_ns))
		opd_visit_all(visits);
	while (!opd_jit_write(pipeline->resolver.jit, &pipeline->count, begin_ns))
		opd_visit_all(visits);
}

void opd_visits_free(struct opd_visits *visits)
{
	opd_swappers_free(visits->swappers);
	opd_rescan_free(&visits->rescan);
	free(visits->due);
	free(visits->swaps);
	*visits = (struct opd_visits){ 0 };
}

/* ---- side band ---- */

/* After the kernel dropped side-band records, /proc is read again, in parts at several visits. */
static void rescan(struct opd_visits *visits, const struct opd_sideband_loss *loss)
{
	static struct op_rate rate, failure_rate;
	struct opd_resolver *resolver = &visits->pipeline->resolver;
	int err;

	if (loss->nr_lost) {
		op_log_failure(&rate, resolver->now_ns,
				"the side-band ring was full, reading /proc again (SidebandSize= makes it larger)", -ENOBUFS);
		opd_rescan_lost(&visits->rescan, resolver, visits->sideband_ns, loss->until_ns);
	}
	err = opd_rescan_go_on(&visits->rescan, resolver);
	if (err)
		op_log_failure(&failure_rate, resolver->now_ns, "reading /proc", err);
}

void opd_visits_missed(struct opd_visits *visits, uint64_t from_ns)
{
	opd_rescan_lost(&visits->rescan, &visits->pipeline->resolver, from_ns, op_now_ns());
}

void opd_visit_sideband(struct opd_visits *visits)
{
	static struct op_rate rate;
	struct opd_pipeline *pipeline = visits->pipeline;
	uint64_t now_ns = op_now_ns();
	struct opd_sideband_loss loss;
	int err;

	pipeline->resolver.now_ns = pipeline->count.now_ns = now_ns;
	err = opd_sideband_drain(&pipeline->capture, &pipeline->resolver, now_ns, &loss);
	if (err)
		op_log_failure(&rate, now_ns, "side band", err);
	rescan(visits, &loss);
	opd_resolve_check(&pipeline->resolver);
	visits->sideband_ns = now_ns;
}

/* ---- CPUs ---- */

void opd_visits_add(struct opd_visits *visits, struct opd_cpu *cpu)
{
	if (!cpu->online || cpu->due)
		return;
	if (!cpu->source->pending(cpu))
		return;
	cpu->due = true;
	visits->due[visits->nr_due++] = cpu;
}

void opd_visits_add_woken(struct opd_visits *visits, struct opd_cpu *cpu)
{
	const struct opd_capture *capture = &visits->pipeline->capture;

	if (cpu->online && (!capture->may_leave_woken || cpu->source->pending(cpu) >= capture->watermark_bytes))
		opd_visits_add(visits, cpu);
}

/*
 * The rings fill while opd waits for answers of lookers. In a visit it waits until half of a ring
 * is full, and no longer than clients like. Files that are found later are known by their records.
 */
static void limit_waits(const struct opd_visits *visits)
{
	const struct opd_capture *capture = &visits->pipeline->capture;
	const struct opd_plan *plan = &capture->plan;
	struct opd_lookers *lookers = visits->pipeline->resolver.processes.mount_views.lookers;

	uint64_t half_ns;

	if (!lookers || !plan->need_bytes)
		return;
	half_ns = capture->ring_bytes / 2 * plan->fill_ns / plan->need_bytes;
	opd_lookers_wait_until(lookers, op_now_ns() + op_min_u64(half_ns, WAITS_MAX_NS));
}

/* Before the side band is read: it has no mappings of later samples. */
static void freeze(struct opd_cpu *cpu)
{
	cpu->frozen = cpu->source->read_ring(cpu);
	cpu->frozen_stacks = cpu->source->stack_ring ? cpu->source->stack_ring(cpu) : NULL;
}

/* Of a CPU with stacks alone, the other ring is empty. */
static void drain_frozen(struct opd_visits *visits, struct opd_cpu *cpu)
{
	if (cpu->frozen && cpu->frozen_stacks && visits->pipeline->capture.callgraph) {
		opd_drain_in_order(visits->pipeline, cpu, cpu->frozen, cpu->frozen_stacks);
		return;
	}
	if (cpu->frozen)
		opd_drain_ring(visits->pipeline, cpu, cpu->frozen);
	if (cpu->frozen_stacks)
		opd_drain_ring(visits->pipeline, cpu, cpu->frozen_stacks);
}

/* -EBUSY: a late writer has left data in the ring to be written next. It is read first. */
static void swap_at_once(struct opd_visits *visits, struct opd_cpu *cpu)
{
	if (cpu->source->swap(cpu) != -EBUSY)
		return;
	freeze(cpu);
	opd_visit_sideband(visits);
	drain_frozen(visits, cpu);
	cpu->source->swap(cpu); /* when the writer is inside again, the next visit reads the ring */
}

/* A swap waits for a grace period: an idle pair is left alone. */
static size_t add_swaps(struct opd_visits *visits, struct opd_cpu *cpu, size_t nr_swaps)
{
	if (op_ring_pending(&cpu->pair.rings[0]) || op_ring_pending(&cpu->pair.rings[1]))
		visits->swaps[nr_swaps++] = (struct opd_swap){ .pair = &cpu->pair };
	if (opd_cpu_stacks_pending(cpu))
		visits->swaps[nr_swaps++] = (struct opd_swap){ .pair = &cpu->stack_pair };
	return nr_swaps;
}

static void swap_due(struct opd_visits *visits)
{
	static struct op_rate rate;
	size_t nr_swaps = 0;

	for (size_t i = 0; i < visits->nr_due; i++)
		if (!visits->due[i]->source->swap)
			nr_swaps = add_swaps(visits, visits->due[i], nr_swaps);
	if (nr_swaps)
		opd_swappers_swap(visits->swappers, visits->swaps, nr_swaps);
	for (size_t i = 0; i < visits->nr_due; i++)
		if (visits->due[i]->source->swap)
			swap_at_once(visits, visits->due[i]);
	for (size_t i = 0; i < nr_swaps; i++)
		if (visits->swaps[i].err)
			op_log_failure(&rate, op_now_ns(), "swapping rings", visits->swaps[i].err);
}

void opd_visits_run(struct opd_visits *visits)
{
	uint64_t begin_ns = op_now_ns();

	if (!visits->nr_due)
		return;
	swap_due(visits);
	visits->counts.swapping_ns += op_now_ns() - begin_ns;
	for (size_t i = 0; i < visits->nr_due; i++)
		freeze(visits->due[i]);
	limit_waits(visits);
	opd_visit_sideband(visits);
	for (size_t i = 0; i < visits->nr_due; i++) {
		struct opd_cpu *cpu = visits->due[i];

		drain_frozen(visits, cpu);
		cpu->due = false;
	}
	visits->nr_due = 0;
	visits->counts.nr_visits++;
	visits->counts.visits_ns += op_now_ns() - begin_ns;
}

static void count_turn(struct opd_visit_counts *counts, uint64_t turn_ns)
{
	counts->nr_turns++;
	counts->last_turn_ns = turn_ns;
	counts->longest_turn_ns = op_max_u64(counts->longest_turn_ns, turn_ns);
}

void opd_visit_all(struct opd_visits *visits)
{
	struct opd_capture *capture = &visits->pipeline->capture;
	uint64_t before_ns = visits->counts.visits_ns;

	for (size_t i = 0; i < capture->nr_cpus; i++)
		opd_visits_add(visits, &capture->cpus[i]);
	if (!visits->nr_due) {
		limit_waits(visits);
		opd_visit_sideband(visits);
		return;
	}
	opd_visits_run(visits);
	count_turn(&visits->counts, visits->counts.visits_ns - before_ns);
}

bool opd_visits_can_wait(const struct opd_visits *visits)
{
	const struct opd_capture *capture = &visits->pipeline->capture;

	if (opd_rescan_left(&visits->rescan) || opd_sources_oldest_ns(visits->pipeline) != UINT64_MAX)
		return false;
	for (size_t i = 0; i < capture->nr_cpus; i++) {
		const struct opd_cpu *cpu = &capture->cpus[i];

		if (!cpu->online)
			continue;
		if (op_ring_pending(&cpu->sideband) || cpu->source->pending(cpu) > capture->ring_bytes / QUIET_SHARE)
			return false;
	}
	return true;
}

void opd_visit_until_quiet(struct opd_visits *visits)
{
	for (size_t i = 0; i < QUIET_VISITS; i++)
		opd_visit_all(visits);
}

void opd_visit_offline_cpu(struct opd_visits *visits, struct opd_cpu *cpu)
{
	opd_visit_sideband(visits);
	opd_drain_ring(visits->pipeline, cpu, op_ring_pair_read_ring(&cpu->pair));
	opd_drain_ring(visits->pipeline, cpu, op_ring_pair_write_ring(&cpu->pair));
	if (!opd_cpu_has_stack_pair(cpu))
		return;
	opd_drain_ring(visits->pipeline, cpu, op_ring_pair_read_ring(&cpu->stack_pair));
	opd_drain_ring(visits->pipeline, cpu, op_ring_pair_write_ring(&cpu->stack_pair));
}
