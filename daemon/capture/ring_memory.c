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

bool opd_ring_memory_shrink(size_t *ring_bytes, size_t *sideband_bytes)
{
	size_t *larger = *sideband_bytes > *ring_bytes ? sideband_bytes : ring_bytes;

	if (*larger / 2 < op_max_u64(RING_BYTES_MIN, (uint64_t)sysconf(_SC_PAGESIZE)))
		return false;
	*larger /= 2;
	return true;
}

char *opd_ring_memory_explain(size_t nr_cpus)
{
	uint64_t kib = 0;
	int err = op_file_read_u64(MLOCK_PATH, 0, UINT32_MAX, &kib);
	char *why;

	if (asprintf(&why,
		     "cannot lock memory for the rings of %zu CPUs: all perf events of a user may lock %" PRIu64
		     " KiB for each CPU: end another profiler, or raise kernel.perf_event_mlock_kb or ulimit -l",
		     nr_cpus, err ? 0 : kib) < 0)
		return NULL;
	return why;
}
