/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Counters of deep stacks in the status, since opd was started: name (deep_<name> in every output)
 * and meaning. A stack is deep when it is larger than StackBytes=, or has a page that is not
 * present: there the copy of the kernel ends, too.
 *
 *   stacks = copied + passed + denied + unread + lost
 */
#ifndef OP_DEEP_STATS_H
#define OP_DEEP_STATS_H

#include "libop/base/compiler.h"

#define OP_DEEP_STATS(X) \
	X(samples, "samples of programs that the kernel looked at") \
	X(stacks, "samples whose stack is larger than what the kernel could copy") \
	X(copied, "their stack was copied, up to 60 KiB") \
	X(passed, "stacks larger than 60 KiB that were left out: one of 8 is copied") \
	X(denied, "copies beyond DeepStackBudget=") \
	X(unread, "stacks whose memory was not present") \
	X(lost, "copies without room in the ring") \
	X(bytes, "bytes of stacks that were copied beyond StackBytes=") \
	X(joined, "copies that came to their sample") \
	X(dropped, "parts of copies whose sample did not come") \
	X(cut, "stacks that ended beyond the copy, and whose size is known") \
	X(cut_bytes, "bytes by which the copies of those were too short") \
	X(cut_most_bytes, "the most of them in one stack")

enum op_deep_stat {
#define X(name, meaning) OP_DEEP_##name,
	OP_DEEP_STATS(X)
#undef X
		OP_NR_DEEP_STATS,
};

#endif
