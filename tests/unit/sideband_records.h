/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Side-band records as the kernel would write them, into a ring in memory. */
#ifndef SIDEBAND_RECORDS_H
#define SIDEBAND_RECORDS_H

#include <endian.h>

#include "tests/unit/memory_ring.h"

static inline void sideband_fork(struct op_ring *ring, uint32_t parent, uint32_t child, uint64_t time_ns)
{
	uint64_t words[] = { PAIR(child, parent), PAIR(child, parent), time_ns, 0, time_ns, 0 };

	memory_ring_record(ring, PERF_RECORD_FORK, 0, words, 6);
}

static inline void sideband_exec(struct op_ring *ring, uint32_t pid, uint64_t time_ns)
{
	/* 0x78: the name "x" */
	uint64_t words[] = { PAIR(pid, pid), htole64(0x78), PAIR(pid, pid), time_ns, 0 };

	memory_ring_record(ring, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, words, 5);
}

/* `name` has at most 55 bytes. */
static inline void sideband_mmap(struct op_ring *ring, uint32_t pid, uint64_t start, uint64_t bytes, uint64_t offset,
				 const char *name, uint64_t time_ns)
{
	uint64_t words[18] = { PAIR(pid, pid), start, bytes, offset, 1, 99, 1, 5 };
	size_t name_words = strlen(name) / 8 + 1;

	memcpy(words + 8, name, strlen(name) + 1);
	words[8 + name_words] = PAIR(pid, pid);
	words[9 + name_words] = time_ns;
	words[10 + name_words] = 0;
	memory_ring_record(ring, PERF_RECORD_MMAP2, 0, words, 11 + name_words);
}

#endif
