/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counters of JIT code in the status: what opd knows, and what it refused. */
#ifndef OP_JIT_STATS_H
#define OP_JIT_STATS_H

#include "libop/base/compiler.h"

/* name, is it a refusal, meaning */
#define OP_JIT_COUNTERS(X) \
	X(processes, false, "processes with JIT code that were looked at") \
	X(functions, false, "functions read from perf maps and jitdumps") \
	X(sampled, false, "functions that had samples") \
	X(objects, false, "objects (.jo) written") \
	X(bytes, false, "bytes of memory used") \
	X(code_bytes, false, "bytes of code in the objects of known processes") \
	X(refused_files, true, "maps and dumps of another owner, not regular, or of another machine") \
	X(refused_records, true, "lines and records that make no sense") \
	X(refused_size, true, "functions, maps and dumps that are larger than their limit") \
	X(refused_memory, true, "functions for which a process, or all together, had no memory left") \
	X(functions_forgotten, false, "functions without samples whose code is gone, forgotten") \
	X(put_off, true, "readings of maps and dumps that were put off to a later visit: the user, or all, had no time left") \
	X(cpu_ns, false, "nanoseconds of CPU time for reading maps and dumps") \
	X(cpu_longest_ns, false, "the same in one visit, at most") \
	X(refused_processes, true, "processes with possible JIT code above the limit of 1024, or without a free descriptor") \
	X(waiting, false, "lines of 64 bytes of code whose samples wait for a name") \
	X(named_late, false, "samples that had waited for their name") \
	X(unnamed_samples, false, "samples that waited until their process ended, without a name") \
	X(refused_waiting, true, "samples without a name that do not wait for one: too much code waits") \
	X(failed_objects, true, "objects (.jo) that could not be written")

enum op_jit_counter {
#define X(name, refusal, meaning) OP_JIT_##name,
	OP_JIT_COUNTERS(X)
#undef X
		OP_NR_JIT,
};

#endif
