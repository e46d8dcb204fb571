/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/capture/stack_event.h"

#include <elf.h>
#include <errno.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "libop/perf/chain.h"
#include "libop/perf/stack_record.h"
#include "pipeline/capture/cpus.h"
#include "pipeline/capture/kernel_source.h"

/*
 * With more hardware events than this, a further one may not find a counter, and the kernel would
 * let all of them take turns.
 */
#define HARDWARE_EVENTS_MAX 2u

/* A machine that the walk does not know has no use for copies: there the kernel follows stacks. */
static uint32_t copied_bytes(const struct op_stack_setup *setup, const struct op_config *config)
{
	uint64_t nr_bytes = op_min_u64(setup->has_bytes ? setup->bytes : config->stack_bytes, OP_STACK_BYTES_MAX);

	return op_stack_machine() == EM_NONE ? 0 : (uint32_t)((nr_bytes + 7) / 8 * 8);
}

static bool has_counter_left(const struct op_event *events, size_t nr_events)
{
	size_t nr_hardware = 0;

	for (size_t i = 0; i < nr_events; i++)
		nr_hardware += events[i].type == PERF_TYPE_HARDWARE || events[i].type == PERF_TYPE_RAW;
	return nr_hardware <= HARDWARE_EVENTS_MAX;
}

/* Opens the event on the first CPU for a moment. 0 or -errno. */
static int open_once(const struct op_event *event)
{
	struct opd_capture capture = { .max_stack = op_chain_max_stack(), .defers_chains = true };
	uint32_t *online;
	size_t nr_online;
	int fd, err = opd_cpus_read(OPD_CPUS_ONLINE, &online, &nr_online);

	if (err)
		return err;
	fd = opd_capture_open_sampling(&capture, event, (int)online[0]);
	if (fd >= 0)
		close(fd);
	free(online);
	return fd < 0 ? fd : 0;
}

bool opd_stack_event_knows_cgroups(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_CGROUP,
		.exclude_kernel = 1,
	};
	int fd = op_sys_perf_event_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int carry_stacks(uint32_t nr_bytes, struct op_event *events, size_t nr_events, char **ret_why)
{
	if (!nr_bytes) {
		*ret_why = strdup(op_stack_machine() == EM_NONE ?
					  "--stacks=event needs walks of stacks, which opd has on x86-64 and arm64 only" :
					  "--stacks=event needs a copy of the stack, and StackBytes is 0");
		return -EINVAL;
	}
	for (size_t i = 0; i < nr_events; i++) {
		if (events[i].role != OP_EVENT_PLAIN)
			continue;
		events[i].stack_bytes = nr_bytes;
		events[i].with_cgroup = opd_stack_event_knows_cgroups();
	}
	return 0;
}

int opd_stack_event_add(const struct op_stack_setup *setup, const struct op_config *config, bool has_pmu, struct op_event *events,
			size_t *nr_events, char **ret_why)
{
	enum op_stack_mode mode = setup->mode;
	uint32_t nr_bytes = copied_bytes(setup, config);
	struct op_event event;
	bool kernel = false;
	int err = -ENOENT;

	*ret_why = NULL;
	if (mode == OP_STACKS_CONFIGURED)
		mode = config->stacks ? OP_STACKS_ON : OP_STACKS_OFF;
	if (mode == OP_STACKS_OFF)
		return 0;
	if (mode == OP_STACKS_EVENT)
		return carry_stacks(nr_bytes, events, *nr_events, ret_why);
	for (size_t i = 0; i < *nr_events; i++)
		kernel |= events[i].kernel;
	for (int with_cycles = has_pmu && has_counter_left(events, *nr_events); err && with_cycles >= 0; with_cycles--) {
		op_event_make_stacks(with_cycles, (uint32_t)(setup->rate_hz ? setup->rate_hz : config->stack_rate_hz), nr_bytes,
				     &event);
		event.kernel = kernel;
		event.with_cgroup = opd_stack_event_knows_cgroups();
		err = open_once(&event);
	}
	if (err)
		*ret_why = op_event_explain(&event, err);
	else
		events[(*nr_events)++] = event;
	return err;
}
