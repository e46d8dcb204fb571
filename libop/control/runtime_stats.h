/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Counters of each runtime in the status, since opd was started: name (<runtime>_<name> in every
 * output) and meaning. Samples are those of STACKS and of WAIT whose thread runs in the runtime.
 */
#ifndef OP_RUNTIME_STATS_H
#define OP_RUNTIME_STATS_H

#include "libop/base/compiler.h"
#include "libop/stacks/runtime_name.h"

#define OP_RUNTIME_STATS(X) \
	X(processes, "processes with the runtime that had samples") \
	X(refused, "files, or processes of Node and Java, that opd cannot read: the log says why") \
	X(samples, "samples of its threads") \
	X(complete, "all functions of the runtime have names, to the outermost one") \
	X(none, "no function of the runtime was running, or none was found") \
	X(fault, "memory of the process could not be read, or was not as expected") \
	X(deep, "more frames than opd reads") \
	X(moved, "the code was replaced before its name was read") \
	X(unnamed, "some function has no name")

enum op_runtime_stat {
#define X(name, meaning) OP_RUNTIME_STAT_##name,
	OP_RUNTIME_STATS(X)
#undef X
		OP_NR_RUNTIME_STATS,
};

#endif
