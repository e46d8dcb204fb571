/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/call_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <sys/mman.h>

#include "pipeline/files/pass_file.h"

/* Calls of lookers and of their C library. Calls missing on this architecture are left out. */
static const int allowed[] = {
	/* looking */
	SCMP_SYS(access),
	SCMP_SYS(close),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(fcntl),
	SCMP_SYS(fcntl64),
	SCMP_SYS(fstat),
	SCMP_SYS(fstat64),
	SCMP_SYS(fstatat64),
	SCMP_SYS(fstatfs),
	SCMP_SYS(fstatfs64),
	SCMP_SYS(getdents64),
	SCMP_SYS(getpgid),
	SCMP_SYS(getrusage),
	SCMP_SYS(ioctl),
	SCMP_SYS(lseek),
	SCMP_SYS(lstat),
	SCMP_SYS(name_to_handle_at),
	SCMP_SYS(newfstatat),
	SCMP_SYS(openat2), /* its flags lie in memory, where a filter does not see them */
	SCMP_SYS(pread64),
	SCMP_SYS(read),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(recvmsg),
	SCMP_SYS(stat),
	SCMP_SYS(statx),
	/* the C library */
	SCMP_SYS(brk),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_gettime64),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(futex),
	SCMP_SYS(getpid),
	SCMP_SYS(getrandom),
	SCMP_SYS(gettid),
	SCMP_SYS(madvise),
	SCMP_SYS(mremap),
	SCMP_SYS(munmap),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
};

#define WRITES (O_ACCMODE | O_CREAT | O_TRUNC)

/* A call with a condition on one of its arguments. */
static const struct {
	int call;
	struct scmp_arg_cmp argument;
} conditional[] = {
	{ SCMP_SYS(open), { .arg = 1, .op = SCMP_CMP_MASKED_EQ, .datum_a = WRITES, .datum_b = O_RDONLY } },
	{ SCMP_SYS(openat), { .arg = 2, .op = SCMP_CMP_MASKED_EQ, .datum_a = WRITES, .datum_b = O_RDONLY } },
	{ SCMP_SYS(mmap), { .arg = 2, .op = SCMP_CMP_MASKED_EQ, .datum_a = PROT_EXEC, .datum_b = 0 } },
	{ SCMP_SYS(mmap2), { .arg = 2, .op = SCMP_CMP_MASKED_EQ, .datum_a = PROT_EXEC, .datum_b = 0 } },
	{ SCMP_SYS(mprotect), { .arg = 2, .op = SCMP_CMP_MASKED_EQ, .datum_a = PROT_EXEC, .datum_b = 0 } },
};

/* Rules for lookers: their first argument is the socket. */
static const int writing[] = { SCMP_SYS(sendmsg), SCMP_SYS(write) };

static int add_rules(scmp_filter_ctx filter, int socket_fd)
{
	int err = 0;

	for (size_t i = 0; i < op_array_size(allowed) && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; i < op_array_size(conditional) && !err; i++)
		err = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, conditional[i].call, 1, &conditional[i].argument);
	for (size_t i = 0; i < op_array_size(writing) && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, writing[i], 1,
				       SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)(unsigned int)socket_fd, 0));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(sendmsg), 1, SCMP_A0(SCMP_CMP_EQ, OPD_PASS_FD, 0));
	return err;
}

int opd_call_filter_apply(int socket_fd)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int err;

	if (!filter)
		return -ENOMEM;
	/* no_new_privs is there; a sandbox need not allow to set it again */
	err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
	if (err)
		goto out;
	err = add_rules(filter, socket_fd);
	if (err)
		goto out;
	err = seccomp_load(filter);
out:
	seccomp_release(filter);
	return err == -EINVAL || err == -ENOSYS || err == -ECANCELED ? 0 : err;
}
