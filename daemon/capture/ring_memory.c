/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/capture/ring_memory.h"

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

bool opd_ring_memory_shrink(size_t *const *sizes, size_t nr_sizes)
{
	size_t *largest = NULL;

	for (size_t i = 0; i < nr_sizes; i++)
		if (sizes[i] && (!largest || *sizes[i] > *largest))
			largest = sizes[i];
	if (!largest || *largest / 2 < op_max_u64(RING_BYTES_MIN, (uint64_t)sysconf(_SC_PAGESIZE)))
		return false;
	*largest /= 2;
	return true;
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
