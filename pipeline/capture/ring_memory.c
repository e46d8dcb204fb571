/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/capture/ring_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"

#define RING_BYTES_MIN (16u * 1024)
#define MLOCK_PATH     "/proc/sys/kernel/perf_event_mlock_kb"

void opd_ring_memory_raise(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_MEMLOCK, &limit);
	}
}

/* Among equal ones, the first is halved. */
bool opd_ring_memory_shrink(const struct opd_ring_sizes *sizes)
{
	const struct {
		size_t *bytes;
		size_t weight;
	} kinds[] = { { sizes->stacks, 2 }, { sizes->sideband, 1 }, { sizes->flat, 1 } };
	size_t smallest = op_max_u64(RING_BYTES_MIN, (uint64_t)sysconf(_SC_PAGESIZE)), most = 0;
	size_t *chosen = NULL;

	for (size_t i = 0; i < op_array_size(kinds); i++) {
		if (!kinds[i].bytes || *kinds[i].bytes / 2 < smallest || *kinds[i].bytes * kinds[i].weight <= most)
			continue;
		most = *kinds[i].bytes * kinds[i].weight;
		chosen = kinds[i].bytes;
	}
	if (chosen)
		*chosen /= 2;
	return chosen;
}

char *opd_ring_memory_explain(void)
{
	struct rlimit limit = { 0 };
	uint64_t kib = 0;
	char *why;

	if (op_file_read_u64(MLOCK_PATH, 0, UINT32_MAX, &kib) < 0)
		kib = 0;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (asprintf(&why,
		     "cannot lock memory for the rings: a user may lock %" PRIu64
		     " KiB for each CPU, and a process %llu KiB more; end another profiler, raise kernel.perf_event_mlock_kb or "
		     "ulimit -l (LimitMEMLOCK= of a unit), or add CAP_IPC_LOCK",
		     kib, (unsigned long long)limit.rlim_cur / 1024) < 0)
		return NULL;
	return why;
}
