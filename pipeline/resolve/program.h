/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The program that a sample is counted under. It is the application of the process, the file that
 * it runs. Separation by name or user (opd_processes.by_name, by_user) divides an application into
 * programs: a row of the table of images for each name and user, which the sample files have as
 * their application (op_image_id.program_of).
 *
 * The name is that of the process at the time of the sample, not of its threads (process.h). The
 * user is the effective one. It is asked for at the first sample after each fork and exec, because
 * the kernel reports no change of it; a process that has ended by then counts as its parent did.
 *
 * Threads of the kernel have no file. Those that do the same work have one name with a number, and
 * count as one: ksoftirqd/0 is [ksoftirqd], kworker/u8:1-events is [kworker].
 *
 * Sync thread only.
 */
#ifndef OPD_PROGRAM_H
#define OPD_PROGRAM_H

#include "libop/base/compiler.h"
#include "libop/session/dcookie.h"
#include "pipeline/resolve/process.h"

#define OPD_KERNEL_THREAD_BYTES (OPD_COMM_BYTES + 2)

/*
 * "[NAME]" without the number: up to the first slash or colon; where there is none, without digits
 * at the end and the separator before them.
 */
void opd_kernel_thread_name(const char *comm, char ret_name[OPD_KERNEL_THREAD_BYTES]) OP_NONNULL;

struct opd_program {
	uint64_t cookie;  /* OP_DCOOKIE_NONE: none, the sample belongs to the kernel */
	uint64_t from_ns; /* since when */
	bool is_newest;   /* no later one of the process is known */
};

/*
 * The program of a process with that address space, at that time. app_cookie: the application, as
 * far as it is known. `is_foreign`: by records of another machine alone.
 */
struct opd_program opd_program_at(const struct opd_processes *processes, struct op_dcookie_table *table,
				  const struct opd_process *process, struct opd_mm *mm, uint64_t app_cookie, uint64_t time_ns,
				  bool is_foreign) OP_NONNULL OP_MUST_CHECK;

#endif
