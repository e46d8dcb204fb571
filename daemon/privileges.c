/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/privileges.h"

#include <errno.h>
#include <grp.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libop/base/log.h"
#include "libop/base/sys.h"

#ifndef PR_SET_MDWE /* Linux 6.3 */
#define PR_SET_MDWE		   65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

/* Ring memory counts as locked memory, unless that is unlimited or CAP_IPC_LOCK is there. */
static bool memory_is_limited(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur != RLIM_INFINITY;
}

/* CAP_SYS_ADMIN includes CAP_PERFMON, as in the kernel (capabilities(7)). */
static const struct {
	cap_value_t capability, instead;
	bool (*is_needed)(void); /* NULL: always */
	const char *name, *without;
	bool for_looker;
} used[] = {
	{ CAP_PERFMON, CAP_SYS_ADMIN, NULL, "CAP_PERFMON",
	  "all processes can be sampled only where kernel.perf_event_paranoid is 0 or less", false },
	{ CAP_IPC_LOCK, CAP_IPC_LOCK, memory_is_limited, "CAP_IPC_LOCK",
	  "ring memory is limited to kernel.perf_event_mlock_kb", false },
	{ CAP_SYS_PTRACE, CAP_SYS_PTRACE, NULL, "CAP_SYS_PTRACE",
	  "on older kernels opd cannot resolve processes of other users that ran before it, and it does not find files of "
	  "containers", true },
	{ CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN, NULL, "CAP_CHECKPOINT_RESTORE",
	  "files that were removed or replaced while they ran, and files of containers, are known by their names only", true },
	{ CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE, NULL, "CAP_DAC_READ_SEARCH",
	  "opd cannot look at files in closed directories, nor read lists of JIT code that only their owner may read", true },
	{ CAP_SYSLOG, CAP_SYSLOG, NULL, "CAP_SYSLOG", "kernel addresses may be hidden and kernel samples have no symbols", false },
};

static bool has(cap_t capabilities, cap_value_t capability, cap_flag_t flag)
{
	cap_flag_value_t value = CAP_CLEAR;

	return !cap_get_flag(capabilities, capability, flag, &value) && value == CAP_SET;
}

static bool is_used(cap_value_t capability)
{
	for (size_t i = 0; i < op_array_size(used); i++)
		if (used[i].capability == capability)
			return !used[i].is_needed || used[i].is_needed();
	return false;
}

/* With CAP_PERFMON alone, newer kernels open the maps of other users' processes. */
static bool is_for_looker(size_t row, cap_t present)
{
	return used[row].for_looker || (used[row].capability == CAP_PERFMON && !has(present, CAP_SYS_PTRACE, CAP_PERMITTED));
}

/* The capabilities to be kept, all effective. */
static cap_t wanted_of(cap_t present, bool by_looker)
{
	cap_t wanted = cap_init();

	for (size_t i = 0; i < op_array_size(used) && wanted; i++) {
		cap_value_t capability = used[i].capability;

		if (!is_used(capability) || !has(present, capability, CAP_PERMITTED) ||
		    (by_looker && !is_for_looker(i, present)))
			continue;
		if (cap_set_flag(wanted, CAP_PERMITTED, 1, &capability, CAP_SET) < 0 ||
		    cap_set_flag(wanted, CAP_EFFECTIVE, 1, &capability, CAP_SET) < 0) {
			cap_free(wanted);
			return NULL;
		}
	}
	return wanted;
}

/* This needs CAP_SETPCAP. Without it, the permitted set and no_new_privs have the same effect. */
static void shrink_bounds(void)
{
	for (cap_value_t capability = 0; cap_get_bound(capability) >= 0; capability++)
		if (!is_used(capability) && cap_get_bound(capability) > 0 && cap_drop_bound(capability) < 0)
			return;
}

/* A failure does no harm: opd executes no program that could inherit a capability. */
static bool is_more(cap_t present, cap_t wanted)
{
	int differs = cap_compare(present, wanted);

	return CAP_DIFFERS(differs, CAP_PERMITTED) || CAP_DIFFERS(differs, CAP_EFFECTIVE);
}

/* A user other than root, but with root's capabilities, becomes root. The group may be another. */
static int become_owner(int dir_fd, bool *ret_became)
{
	struct stat st;
	int err = op_sys_fstat(dir_fd, &st);

	if (err || geteuid() || (!st.st_uid && !st.st_gid))
		return err;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 || setresgid(st.st_gid, st.st_gid, st.st_gid) < 0 ||
	    setresuid(st.st_uid, st.st_uid, st.st_uid) < 0)
		return -errno;
	*ret_became = true;
	return 0;
}

int opd_privileges_drop(int dir_fd)
{
	cap_t present = cap_get_proc(), wanted = present ? wanted_of(present, false) : NULL;
	int err = wanted ? 0 : -ENOMEM;
	bool became = false;

	if (!err) {
		shrink_bounds();
		err = become_owner(dir_fd, &became);
	}
	if (!err) {
		prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
		prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0);
		/* A sandbox may refuse the call, which does no harm without capabilities. */
		if ((became || is_more(present, wanted)) && cap_set_proc(wanted) < 0)
			err = -errno;
		if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
			err = -errno;
	}
	cap_free(wanted);
	cap_free(present);
	return err;
}

/*
 * no_new_privs and the bounding set are inherited. A sandbox may refuse the call; then the looker
 * has the rights of opd.
 */
int opd_privileges_of_looker(void)
{
	cap_t present = cap_get_proc(), wanted = present ? wanted_of(present, true) : NULL;
	int err = wanted ? 0 : -ENOMEM;

	if (!err && cap_set_proc(wanted) < 0 && errno != EPERM)
		err = -errno;
	cap_free(wanted);
	cap_free(present);
	return err;
}

void opd_privileges_report(void)
{
	cap_t capabilities = cap_get_proc();

	if (!capabilities)
		return;
	for (size_t i = 0; i < op_array_size(used); i++)
		if (is_used(used[i].capability) && !has(capabilities, used[i].capability, CAP_EFFECTIVE) &&
		    !has(capabilities, used[i].instead, CAP_EFFECTIVE))
			op_log(OP_LOG_WARNING, "without %s %s", used[i].name, used[i].without);
	cap_free(capabilities);
}
