/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opimport/stacks.h"

#include <elf.h>
#include <errno.h>

#include "pipeline/stacks/state.h"
#include "pipeline/stacks/tables.h"

/* kernel.perf_event_max_stack where nobody has changed it; the file does not say it. */
#define MAX_STACK      127u
#define ARM64_PC       (1ull << 32) /* enum perf_event_arm_regs: x86-64 has no such register */
#define X86_64_NUMBERED (0xffull << 16) /* r8 to r15 */

bool opi_stacks_are_in(const struct op_perf_events *events)
{
	for (size_t i = 0; i < events->nr_events; i++)
		if (op_perf_has_stack(&events->events[i]))
			return true;
	return false;
}

/* A file that perf could not finish does not name its machine. The registers are different. */
static uint16_t machine_of_registers(const struct op_perf_events *events)
{
	for (size_t i = 0; i < events->nr_events; i++) {
		uint64_t registers = events->events[i].attr.sample_regs_user;

		if (registers & ARM64_PC)
			return EM_AARCH64;
		if (registers & X86_64_NUMBERED)
			return EM_X86_64;
	}
	return EM_NONE;
}

static uint16_t machine_of(const struct op_perf_features *features, const struct op_perf_events *events)
{
	static const struct {
		const char *arch;
		uint16_t machine;
	} machines[] = { { "x86_64", EM_X86_64 }, { "aarch64", EM_AARCH64 }, { "arm64", EM_AARCH64 } };

	if (!features->arch)
		return machine_of_registers(events);
	for (size_t i = 0; i < op_array_size(machines); i++)
		if (!strcmp(features->arch, machines[i].arch))
			return machines[i].machine;
	return EM_NONE;
}

/* Of all events, as the limit is one for all. */
static uint32_t max_stack_of(const struct op_perf_events *events)
{
	uint32_t max_stack = 0;

	for (size_t i = 0; i < events->nr_events; i++) {
		const struct perf_event_attr *attr = &events->events[i].attr;

		max_stack = (uint32_t)op_max_u64(max_stack, attr->sample_max_stack ? attr->sample_max_stack : MAX_STACK);
	}
	return max_stack;
}

int opi_stacks_open(struct opd_pipeline *pipeline, const struct op_perf_events *events, const struct op_perf_features *features,
		    const struct opi_stacks_config *config, struct opd_tables **ret_tables)
{
	const struct opd_tables_config tables_config = {
		.nursery = config->nursery,
		.is_recording = true,
		.machine = machine_of(features, events),
		.has_vdso = config->is_own_kernel,
		.recorded_ns = config->witness ? opi_witness_recorded_ns(config->witness) : 0,
	};
	struct opd_tables *tables;
	int err;

	if (!opi_stacks_are_in(events)) {
		*ret_tables = NULL;
		return 0;
	}
	err = opd_tables_new(&tables_config, &tables);
	if (err)
		return err;
	opd_tables_set_images(tables, pipeline->cookie_file.table);
	err = opd_stacks_new(tables, &pipeline->stacks);
	if (err) {
		opd_tables_free(tables);
		return err;
	}
	pipeline->stacks->machine = tables_config.machine;
	pipeline->stacks->block_ns = config->wait_ns ? config->wait_ns : OPI_STACKS_WAIT_NS;
	pipeline->stacks->stop = config->stop;
	pipeline->capture.max_stack = max_stack_of(events);
	pipeline->resolver.processes.keeps_names = true;
	*ret_tables = tables;
	return 0;
}
