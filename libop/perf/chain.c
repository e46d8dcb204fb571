/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/perf/chain.h"

#include <errno.h>

#include "libop/base/file.h"

#define MAX_STACK_PATH    "/proc/sys/kernel/perf_event_max_stack"
#define MAX_STACK_DEFAULT 127u

int op_chain_begin(const struct perf_event_header *header, enum op_cpumode mode, struct op_chain *ret_chain)
{
	const uint64_t *words = (const void *)((const uint8_t *)header + OP_SAMPLE_RECORD_BYTES);
	size_t nr_bytes;

	if (header->size < OP_SAMPLE_RECORD_BYTES + sizeof(*words))
		return -EBADMSG;
	nr_bytes = header->size - OP_SAMPLE_RECORD_BYTES - sizeof(*words);
	if (words[0] > nr_bytes / sizeof(*words))
		return -EBADMSG;
	*ret_chain = (struct op_chain){ .words = words + 1, .nr_words = (size_t)words[0], .mode = mode };
	return 0;
}

static enum op_cpumode mode_of(uint64_t marker)
{
	static const struct {
		uint64_t marker;
		enum op_cpumode mode;
	} modes[] = {
		{ PERF_CONTEXT_USER, OP_CPUMODE_USER },
		{ PERF_CONTEXT_KERNEL, OP_CPUMODE_KERNEL },
		{ PERF_CONTEXT_HV, OP_CPUMODE_HYPERVISOR },
		{ PERF_CONTEXT_GUEST_KERNEL, OP_CPUMODE_GUEST_KERNEL },
		{ PERF_CONTEXT_GUEST_USER, OP_CPUMODE_GUEST_USER },
	};

	for (size_t i = 0; i < op_array_size(modes); i++)
		if (modes[i].marker == marker)
			return modes[i].mode;
	return OP_CPUMODE_UNKNOWN;
}

bool op_chain_next(struct op_chain *chain, struct op_chain_frame *ret_frame)
{
	while (chain->nr_words && *chain->words >= PERF_CONTEXT_MAX) {
		uint64_t marker = *chain->words++;

		chain->nr_words--;
		chain->mode = mode_of(marker);
		if (marker == OP_CONTEXT_USER_DEFERRED && chain->nr_words) {
			chain->deferred = *chain->words++;
			chain->nr_words--;
		}
	}
	if (!chain->nr_words)
		return false;
	*ret_frame = (struct op_chain_frame){ .ip = *chain->words++, .mode = chain->mode };
	chain->nr_words--;
	return true;
}

uint32_t op_chain_max_stack(void)
{
	uint64_t max_stack;

	return op_file_read_u64(MAX_STACK_PATH, 0, UINT16_MAX, &max_stack) < 0 ? MAX_STACK_DEFAULT : (uint32_t)max_stack;
}
