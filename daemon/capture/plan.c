/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/capture/plan.h"

#include <unistd.h>

#include "daemon/capture/swappers.h"
#include "libop/perf/chain.h"
#include "libop/perf/record.h"
#include "libop/ring/kernel_pair.h"
#include "libop/base/sys.h"

/* more threads are planned until the swaps of a turn take no longer */
#define SWAP_TIME_NS 25000000u
#define MARGIN       2u
/* of all side-band rings together, where there are few CPUs */
#define SIDEBAND_TOTAL  (4u * 1024 * 1024)
#define WATERMARK_SHARE 4u /* an explicit watermark is at most this share of the ring */
#define MEASURED_SWAPS  3u
#define RATE_MAX_HZ     1000000u /* the largest rate that a kernel accepts */

static uint64_t divide_up(uint64_t value, uint64_t by)
{
	return (value + by - 1) / by;
}

static uint64_t rate_hz(const struct op_event *event)
{
	if (!op_event_is_clock(event))
		return OPD_PLAN_EVENT_RATE_HZ;
	return event->count ? op_min_u64(divide_up(OP_NS_PER_S, event->count), RATE_MAX_HZ) : RATE_MAX_HZ;
}

static uint64_t record_bytes(const struct op_event *event, uint32_t callgraph)
{
	uint64_t nr_bytes = OP_SAMPLE_RECORD_BYTES;

	if (event->role == OP_EVENT_SAMPLER)
		nr_bytes += sizeof(uint32_t) + OP_IBS_BYTES_MAX;
	return callgraph ? nr_bytes + OP_CHAIN_WORDS(callgraph) * sizeof(uint64_t) : nr_bytes;
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

void opd_plan_make(const struct opd_load *load, struct opd_plan *ret_plan)
{
	struct opd_plan plan = { .nr_threads = threads_for(load), .wait_ns = load->wait_ns };
	uint64_t bytes_per_second = 0;

	plan.turn_ns = divide_up(load->nr_cpus, plan.nr_threads) * load->nr_events * load->wait_ns;
	for (size_t i = 0; i < load->nr_events; i++) {
		plan.samples_per_second += rate_hz(&load->events[i]);
		bytes_per_second += rate_hz(&load->events[i]) * record_bytes(&load->events[i], load->callgraph);
	}
	/* In microseconds, because the product of bytes and nanoseconds could overflow. */
	plan.need_bytes = MARGIN * divide_up(bytes_per_second * divide_up(plan.turn_ns + load->visit_ns, 1000), 1000000);
	plan.need_bytes = op_max_u64(plan.need_bytes, WATERMARK_SHARE * load->watermark_bytes);
	plan.ring_bytes = round_up_to_ring(plan.need_bytes);
	plan.sideband_bytes = sideband_for(load->nr_cpus);
	*ret_plan = plan;
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
