/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/capture/plan.h"

#include <unistd.h>

#include "libop/base/sys.h"
#include "libop/perf/chain.h"
#include "libop/perf/record.h"
#include "libop/ring/kernel_pair.h"
#include "pipeline/capture/swappers.h"

/* more threads are planned until the swaps of a turn take no longer */
#define SWAP_TIME_NS 25000000u
#define MARGIN       2u
#define SPARE        16u
#define STACK_SPARE  4u
/* of all side-band rings together, where there are few CPUs */
#define SIDEBAND_TOTAL  (4u * 1024 * 1024)
#define WATERMARK_SHARE 4u /* an explicit watermark is at most this share of the ring */
#define MEASURED_SWAPS  3u
#define STACK_CHAIN_WORDS 64u /* the kernel's part of a stack, on average less */
#define USER_REGISTERS    33u /* the most of all machines */
#define WAIT_BYTES_MIN 65536u /* some 7 records in a second */
#define WAITS_HZ 100u /* of a CPU; the ring has room for WaitBudget= */
#define RATE_MAX_HZ     1000000u /* the largest rate that a kernel accepts */

static uint64_t divide_up(uint64_t value, uint64_t by)
{
	return (value + by - 1) / by;
}

static uint64_t rate_hz(const struct op_event *event)
{
	if (event->role == OP_EVENT_STACKS)
		return op_max_u64(OP_NS_PER_S / event->count, 1);
	if (event->role == OP_EVENT_WAITS)
		return WAITS_HZ;
	if (!op_event_is_clock(event))
		return OPD_PLAN_EVENT_RATE_HZ;
	return event->count ? op_min_u64(divide_up(OP_NS_PER_S, event->count), RATE_MAX_HZ) : RATE_MAX_HZ;
}

static uint64_t record_bytes(const struct op_event *event, uint32_t callgraph)
{
	uint64_t nr_bytes = OP_SAMPLE_RECORD_BYTES;

	if (event->role == OP_EVENT_SAMPLER)
		nr_bytes += sizeof(uint32_t) + OP_IBS_BYTES_MAX;
	/* abi, registers, and the copy between its two sizes */
	if (event->stack_bytes)
		nr_bytes += (STACK_CHAIN_WORDS + 1 + USER_REGISTERS + 2) * sizeof(uint64_t) + event->stack_bytes;
	else if (event->role == OP_EVENT_STACKS)
		nr_bytes += OP_CHAIN_WORDS(OP_CHAIN_DEPTH_MAX) * sizeof(uint64_t);
	if (op_event_has_stack(event))
		return nr_bytes;
	return callgraph && !event->without_chain ? nr_bytes + OP_CHAIN_WORDS(callgraph) * sizeof(uint64_t) : nr_bytes;
}

uint64_t opd_plan_wait_bytes(uint64_t budget, size_t nr_cpus)
{
	return op_min_u64(op_max_u64(2 * budget / op_max_u64(nr_cpus, 1), WAIT_BYTES_MIN), budget);
}

static uint64_t round_up_to_ring(uint64_t nr_bytes)
{
	uint64_t ring_bytes = OPD_PLAN_RING_MIN;

	while (ring_bytes < nr_bytes && ring_bytes < OPD_PLAN_RING_MAX)
		ring_bytes *= 2;
	return ring_bytes;
}

/*
 * There are no more threads than CPUs, because the events of one CPU are swapped one after another.
 */
static unsigned int threads_for(const struct opd_load *load)
{
	uint64_t wanted = divide_up(load->nr_cpus * load->nr_events * load->wait_ns, SWAP_TIME_NS);

	wanted = op_min_u64(op_min_u64(wanted, load->nr_cpus), OPD_SWAPPERS_MAX);
	return (unsigned int)op_max_u64(wanted, 1);
}

/*
 * A burst of new processes takes the same room in all: few CPUs have a large share each.
 * doc/ring.md computes what one ring must hold.
 */
static uint64_t sideband_for(size_t nr_cpus)
{
	uint64_t sideband_bytes = OPD_PLAN_SIDEBAND_MAX;

	while (sideband_bytes > OPD_PLAN_SIDEBAND_MIN && sideband_bytes * nr_cpus > SIDEBAND_TOTAL)
		sideband_bytes /= 2;
	return sideband_bytes;
}

/* What a ring must hold of so many bytes per second, with the plan's turn. */
static uint64_t need_for(const struct opd_load *load, const struct opd_plan *plan, uint64_t bytes_per_second)
{
	/* In microseconds, because the product of bytes and nanoseconds could overflow. */
	return MARGIN * divide_up(bytes_per_second * divide_up(plan->turn_ns + load->visit_ns, 1000), 1000000);
}

/* The largest of rings that may take StackRingMaxUse= more than rings of `ring_bytes`. */
static uint64_t largest_with_stacks(const struct opd_load *load, uint64_t ring_bytes, uint64_t without_bytes)
{
	while (ring_bytes < OPD_PLAN_RING_MAX && 2 * load->nr_cpus * (2 * ring_bytes - without_bytes) <= load->stack_ring_max_use)
		ring_bytes *= 2;
	return ring_bytes;
}

/* A ring so many times as large at most, while the rings of all CPUs take OPD_PLAN_SPARE_MAX. */
static uint64_t with_spare(const struct opd_load *load, uint64_t ring_bytes, unsigned int times)
{
	uint64_t largest = op_min_u64(ring_bytes * times, OPD_PLAN_RING_MAX);

	while (2 * ring_bytes <= largest && 2 * load->nr_cpus * 2 * ring_bytes <= OPD_PLAN_SPARE_MAX)
		ring_bytes *= 2;
	return ring_bytes;
}

/* Bytes per second in the rings of flat samples, by the events with stacks or by the others. */
static uint64_t bytes_per_second(const struct opd_load *load, bool with_stacks)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < load->nr_events; i++)
		if (!op_event_is_stacks(load->events[i].role) && op_event_has_stack(&load->events[i]) == with_stacks)
			sum += rate_hz(&load->events[i]) * record_bytes(&load->events[i], load->callgraph);
	return sum;
}

static bool has_stack_ring(const struct opd_load *load)
{
	for (size_t i = 0; i < load->nr_events; i++)
		if (load->events[i].role == OP_EVENT_STACKS)
			return true;
	return false;
}

static void plan_ring(const struct opd_load *load, struct opd_plan *plan)
{
	uint64_t stack_bytes = bytes_per_second(load, true) + (has_stack_ring(load) ? 0 : load->wait_bytes);
	uint64_t watermark_bytes = WATERMARK_SHARE * load->watermark_bytes;
	uint64_t flat_bytes = op_max_u64(need_for(load, plan, bytes_per_second(load, false)), watermark_bytes);
	uint64_t flat_ring = round_up_to_ring(flat_bytes), largest = largest_with_stacks(load, flat_ring, flat_ring);

	plan->need_bytes = flat_bytes + need_for(load, plan, stack_bytes);
	plan->fill_ns = MARGIN * (plan->turn_ns + load->visit_ns);
	plan->ring_bytes = op_min_u64(round_up_to_ring(plan->need_bytes), stack_bytes ? largest : flat_ring);
	plan->spare_ring_bytes = with_spare(load, plan->ring_bytes, SPARE);
	if (load->ring_bytes)
		plan->ring_bytes = plan->spare_ring_bytes = load->ring_bytes;
}

/* The ring of STACKS and WAIT. Lowers the rate of STACKS until the ring holds its samples. */
static void plan_stack_ring(const struct opd_load *load, const struct op_event *event, struct opd_plan *plan)
{
	uint64_t nr_bytes = record_bytes(event, load->callgraph), hz = rate_hz(event);
	uint64_t wait_bytes = need_for(load, plan, load->wait_bytes);
	uint64_t largest = largest_with_stacks(load, OPD_PLAN_RING_MIN, 0);

	plan->stack_ring_bytes = op_min_u64(round_up_to_ring(need_for(load, plan, hz * nr_bytes) + wait_bytes), largest);
	plan->spare_stack_ring_bytes = op_min_u64(with_spare(load, plan->stack_ring_bytes, STACK_SPARE), largest);
	if (load->stack_ring_bytes)
		plan->stack_ring_bytes = plan->spare_stack_ring_bytes = load->stack_ring_bytes;
	plan->stack_wanted_hz = (uint32_t)hz;
	wait_bytes = op_min_u64(wait_bytes, plan->stack_ring_bytes / 2);
	if (need_for(load, plan, hz * nr_bytes) > plan->stack_ring_bytes - wait_bytes)
		hz = op_min_u64((plan->stack_ring_bytes - wait_bytes) / op_max_u64(need_for(load, plan, nr_bytes), 1), hz);
	plan->stack_rate_hz = (uint32_t)op_max_u64(hz, 1);
}

static uint64_t samples_per_second(const struct opd_load *load, const struct opd_plan *plan)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < load->nr_events; i++)
		sum += load->events[i].role == OP_EVENT_STACKS ? plan->stack_rate_hz : rate_hz(&load->events[i]);
	return sum;
}

void opd_plan_make(const struct opd_load *load, struct opd_plan *ret_plan)
{
	struct opd_plan plan = { .nr_threads = threads_for(load), .wait_ns = load->wait_ns };

	plan.turn_ns = divide_up(load->nr_cpus, plan.nr_threads) * load->nr_events * load->wait_ns;
	plan_ring(load, &plan);
	for (size_t i = 0; i < load->nr_events; i++)
		if (load->events[i].role == OP_EVENT_STACKS)
			plan_stack_ring(load, &load->events[i], &plan);
	plan.samples_per_second = samples_per_second(load, &plan);
	plan.sideband_bytes = sideband_for(load->nr_cpus);
	*ret_plan = plan;
}

void opd_plan_apply(const struct opd_plan *plan, struct op_event *events, size_t nr_events)
{
	for (size_t i = 0; i < nr_events; i++)
		if (events[i].role == OP_EVENT_STACKS)
			op_event_set_stack_rate(&events[i], plan->stack_rate_hz);
}

/* ---- measuring ---- */

static int swap_some(struct op_ring_pair *pair, uint64_t *ret_wait_ns)
{
	for (size_t i = 0; i < MEASURED_SWAPS; i++) {
		int err = op_ring_pair_swap(pair);

		if (err)
			return err;
	}
	*ret_wait_ns = pair->counts.wait_ns / MEASURED_SWAPS;
	return 0;
}

/* A swap costs the same for an event that takes no samples. */
static int open_idle_event(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
		.sample_type = OP_SAMPLE_TYPE,
		.disabled = 1,
		.use_clockid = 1,
		.clockid = OP_CLOCK,
	};

	return op_sys_perf_event_open(&attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

int opd_plan_measure_wait(int cpu, uint64_t *ret_wait_ns)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct op_ring_pair pair;
	int event_fd, err = op_ring_pair_open(cpu, page_bytes, page_bytes, &pair);

	if (err)
		return err;
	event_fd = open_idle_event(cpu);
	err = event_fd < 0 ? event_fd : op_ring_pair_attach(&pair, event_fd);
	if (!err)
		err = swap_some(&pair, ret_wait_ns);
	op_ring_pair_close(&pair);
	if (event_fd >= 0)
		close(event_fd);
	return err;
}
