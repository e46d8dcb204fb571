/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Counters of call chains in the status: name (arcs_<name> in every output), whether it is a loss,
 * meaning. They are not in the ledger, because a call is no sample. A chain ends at the last frame
 * whose image is known; the calls up to that frame are kept.
 */
#ifndef OP_ARC_STATS_H
#define OP_ARC_STATS_H

#include "libop/base/compiler.h"

#define OP_ARC_STATS(X) \
	X(stored, false, "calls that are in callgraph files") \
	X(ended_no_mapping, false, "call chains that end where nothing is mapped: code that keeps no frame pointer") \
	X(ended_other, false, "call chains that lead to a guest, to the hypervisor or to an unknown mode") \
	X(of_nowhere, false, "samples with a call chain whose own image is unknown") \
	X(of_another, false, "call chains that begin in another mode than their sample") \
	X(undecodable, true, "call chains that are longer than their record") \
	X(filtered, false, "calls from or to images that --image does not name") \
	X(not_split, true, "calls that are stored, but not by cgroup") \
	X(lost_no_room, true, \
	  "calls between images that have no file, since the session has five eighths of MaxSampleFiles= or " \
	  "SessionMaxUse=, or all of MaxImages=; beyond those of SessionMaxUse=, new calls in existing files, too") \
	X(lost_no_space, true, "calls without space on the file system of the session") \
	X(lost_too_many_files, true, "calls without a descriptor for their file") \
	X(lost_file_limit, true, "calls whose file may not have as many bytes") \
	X(lost_io_error, true, "calls whose file could not be opened or written") \
	X(lost_no_memory, true, "calls without memory")

enum op_arc_stat {
#define X(name, is_loss, meaning) OP_ARC_##name,
	OP_ARC_STATS(X)
#undef X
		OP_NR_ARC_STATS,
};

#endif
