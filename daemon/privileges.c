/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/privileges.h"

#include <errno.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/call_filter.h"
#include "libop/base/log.h"
#include "libop/base/sys.h"
#include "libop/process/helper.h"
#include "pipeline/stacks/tabler.h"

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

#define NOBODY 65534u

/* HIDDEN: opd, where /proc shows it no processes of others */
enum user { OPD = 1, LOOKER = 2, TABLER = 4, HIDDEN = 8 };

/* CAP_SYS_ADMIN includes CAP_PERFMON, as in the kernel (capabilities(7)). */
static const struct {
	cap_value_t capability, instead;
	bool (*is_needed)(void); /* NULL: always */
	const char *name, *without;
	unsigned int users;
} used[] = {
	{ CAP_PERFMON, CAP_SYS_ADMIN, NULL, "CAP_PERFMON",
	  "all processes can be sampled only where kernel.perf_event_paranoid is 0 or less", OPD },
	{ CAP_IPC_LOCK, CAP_IPC_LOCK, memory_is_limited, "CAP_IPC_LOCK",
	  "ring memory is limited to kernel.perf_event_mlock_kb", OPD },
	{ CAP_SYS_PTRACE, CAP_SYS_PTRACE, NULL, "CAP_SYS_PTRACE",
	  "on older kernels opd cannot resolve processes of other users that ran before it, and it does not find files of "
	  "containers", LOOKER | HIDDEN },
	{ CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN, NULL, "CAP_CHECKPOINT_RESTORE",
	  "files that were removed or replaced while they ran, and files of containers, are known by their names only", LOOKER },
	{ CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE, NULL, "CAP_DAC_READ_SEARCH",
	  "opd cannot look at files in closed directories, nor read lists of JIT code that only their owner may read",
	  OPD | LOOKER },
	{ CAP_SYSLOG, CAP_SYSLOG, NULL, "CAP_SYSLOG", "kernel addresses may be hidden and kernel samples have no symbols", OPD },
	/* only where opd has them: opd-tables gets another user, and keeps none */
	{ CAP_SETUID, CAP_SETUID, NULL, "CAP_SETUID", NULL, TABLER },
	{ CAP_SETGID, CAP_SETGID, NULL, "CAP_SETGID", NULL, TABLER },
};

/* Those of the table that opd did not get. */
static bool is_missing[op_array_size(used)];

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
static bool is_wanted(size_t row, cap_t present, unsigned int users)
{
	return used[row].users & users || (users & LOOKER && used[row].capability == CAP_PERFMON &&
					   !has(present, CAP_SYS_PTRACE, CAP_PERMITTED));
}

/* The capabilities to be kept, all effective. */
static cap_t wanted_of(cap_t present, unsigned int users)
{
	cap_t wanted = cap_init();

	for (size_t i = 0; i < op_array_size(used) && wanted; i++) {
		cap_value_t capability = used[i].capability;

		if (!is_used(capability) || !has(present, capability, CAP_PERMITTED) || !is_wanted(i, present, users))
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

static void note_missing(void)
{
	cap_t present = cap_get_proc();

	for (size_t i = 0; i < op_array_size(used) && present; i++)
		is_missing[i] = used[i].without && is_used(used[i].capability) &&
				!has(present, used[i].capability, CAP_EFFECTIVE) &&
				!has(present, used[i].instead, CAP_EFFECTIVE);
	cap_free(present);
}

int opd_privileges_drop(int dir_fd)
{
	cap_t present = cap_get_proc(), wanted = present ? wanted_of(present, OPD | LOOKER | TABLER) : NULL;
	bool became = false;
	int err = -ENOMEM;

	if (!wanted)
		goto out;
	shrink_bounds();
	err = become_owner(dir_fd, &became);
	if (err)
		goto out;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0);
	/* A sandbox may refuse the call, which does no harm without capabilities. */
	if ((became || is_more(present, wanted)) && cap_set_proc(wanted) < 0)
		err = -errno;
	else if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		err = -errno;
out:
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* the stacks of others are in no core dump */
	note_missing();
	cap_free(wanted);
	cap_free(present);
	return err;
}

/* A sandbox may refuse the call; then the process has the rights of opd. */
static int keep_for(unsigned int users)
{
	cap_t present = cap_get_proc(), wanted = present ? wanted_of(present, users) : NULL;
	int err = wanted ? 0 : -ENOMEM;

	if (!err && cap_set_proc(wanted) < 0 && errno != EPERM)
		err = -errno;
	cap_free(wanted);
	cap_free(present);
	return err;
}

/* no_new_privs and the bounding set are inherited. */
int opd_privileges_of_looker(void)
{
	int err = keep_for(LOOKER);

	return err ? err : opd_call_filter_apply(OP_HELPER_SOCKET_FD);
}

/* The user matters less than the filter of opd-tables, which leaves it nothing to ask for. */
int opd_privileges_of_tabler(void)
{
	cap_t present, none;
	int err = opd_tabler_begin();

	if (err)
		return err;
	present = cap_get_proc();
	if (present && has(present, CAP_SETUID, CAP_EFFECTIVE) && has(present, CAP_SETGID, CAP_EFFECTIVE) &&
	    (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0))
		/* a container without this user refuses it */
		err = errno == EINVAL || errno == EPERM ? 0 : -errno;
	cap_free(present);
	none = cap_init();
	if (!none)
		return -ENOMEM;
	if (!err && cap_set_proc(none) < 0 && errno != EPERM)
		err = -errno;
	cap_free(none);
	return err;
}

/* Whether /proc shows processes of others: process 1 is there. */
static bool sees_others(void)
{
	struct stat st;

	return !stat("/proc/1", &st);
}

static int set_effective(cap_value_t capability, cap_flag_value_t value)
{
	cap_t present = cap_get_proc();
	int err = !present || cap_set_flag(present, CAP_EFFECTIVE, 1, &capability, value) < 0 ? -ENOMEM : 0;

	if (!err && cap_set_proc(present) < 0)
		err = -errno;
	cap_free(present);
	return err;
}

int opd_privileges_leave_to_lookers(void)
{
	/* With hidepid= in the options of /proc, this capability shows the processes. */
	int err = set_effective(CAP_SYS_PTRACE, CAP_CLEAR);

	if (!err)
		err = keep_for(sees_others() ? OPD : OPD | HIDDEN);
	return err == -EPERM ? 0 : err;
}

/* What fails is missing there. */
void opd_privileges_pass_on(void)
{
	cap_t present = cap_get_proc();

	for (size_t i = 0; i < op_array_size(used) && present; i++)
		if (has(present, used[i].capability, CAP_PERMITTED))
			(void)cap_set_flag(present, CAP_INHERITABLE, 1, &used[i].capability, CAP_SET);
	if (present)
		(void)cap_set_proc(present);
	for (size_t i = 0; i < op_array_size(used); i++)
		prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, used[i].capability, 0, 0);
	cap_free(present);
}

void opd_privileges_report(void)
{
	for (size_t i = 0; i < op_array_size(used); i++)
		if (is_missing[i])
			op_log(OP_LOG_WARNING, "without %s %s", used[i].name, used[i].without);
}
