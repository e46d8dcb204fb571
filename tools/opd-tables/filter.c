/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "tools/opd-tables/filter.h"

/*
 * What reading, writing, malloc, libelf, zstd, xz and qsort need. No memory becomes code. Nor may
 * another process of this user take the descriptor of the image, as a debugger could. The last line
 * of the list is for machines of 32 bits; a call that an architecture does not have is ignored.
 *
 * Where seccomp(2) is refused, as by the SystemCallFilter= of a unit, libseccomp uses prctl(2), and
 * can kill the thread only. This program has one.
 */
int opt_filter_apply(void)
{
	static const int allowed[] = {
		SCMP_SYS(read),  SCMP_SYS(pread64), SCMP_SYS(write),  SCMP_SYS(fstat),      SCMP_SYS(newfstatat),
		SCMP_SYS(lseek), SCMP_SYS(munmap),  SCMP_SYS(mremap), SCMP_SYS(madvise),    SCMP_SYS(brk),
		SCMP_SYS(futex), SCMP_SYS(sysinfo), SCMP_SYS(exit),   SCMP_SYS(exit_group),
		SCMP_SYS(statx), SCMP_SYS(fstat64), SCMP_SYS(_llseek), SCMP_SYS(futex_time64),
	};
	static const int mapping[] = { SCMP_SYS(mmap), SCMP_SYS(mmap2), SCMP_SYS(mprotect) };
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int err;

	if (!filter)
		filter = seccomp_init(SCMP_ACT_KILL_THREAD);
	err = filter ? 0 : -ENOMEM;
	if (!err && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		err = -errno;
	for (size_t i = 0; i < op_array_size(allowed) && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; i < op_array_size(mapping) && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, mapping[i], 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err;
}
