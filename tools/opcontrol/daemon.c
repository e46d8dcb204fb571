/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finding, asking and ending the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/lock.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/session/walk.h"
#include "tools/common/log.h"
#include "tools/opcontrol/opcontrol.h"

#define DAEMON_COMM "opd"
#define SHUTDOWN_MS 120000
#define ASKED_MS    30000
#define TERM_MS     60000
#define KILL_MS     10000

/* ---- is it there ---- */

static void lock_path(const struct opcontrol *ctl, struct op_text *path)
{
	op_text_printf(path, "%s/" OP_SESSION_LOCK, ctl->session_dir);
}

/* A pid may have been given to another process since; a zombie has ended. */
static bool is_daemon(pid_t pid)
{
	char path[64], *stat, *comm, *end;
	bool alive;

	if (pid <= 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (op_file_read(AT_FDCWD, path, 4096, &stat) < 0)
		return false;
	comm = strchr(stat, '(');
	end = strrchr(stat, ')');
	alive = comm && end && end[1] == ' ' && end[2] != 'Z' && end[2] != 'X';
	if (alive)
		*end = '\0';
	alive = alive && !strcmp(comm + 1, DAEMON_COMM);
	free(stat);
	return alive;
}

static bool is_denied(int err)
{
	return err == -EACCES || err == -EPERM;
}

struct open_file {
	const char *fd_dir; /* of the process */
	struct stat st;     /* of the file */
	bool found;
};

static int compare_file(const char *name, void *arg)
{
	struct open_file *file = arg;
	struct op_text path = { 0 };
	struct stat st;
	int err;

	op_text_printf(&path, "%s/%s", file->fd_dir, name);
	err = stat(op_text_get(&path), &st) < 0 ? -errno : 0;
	file->found |= !err && st.st_dev == file->st.st_dev && st.st_ino == file->st.st_ino;
	op_text_free(&path);
	return is_denied(err) ? err : 0;
}

/* Whose descriptors are not to be seen is believed: only a daemon writes its pid into a lock that it holds. */
static bool has_open(pid_t pid, const char *path)
{
	char fd_dir[64];
	struct open_file file = { .fd_dir = fd_dir };
	int err;

	if (stat(path, &file.st) < 0)
		return false;
	snprintf(fd_dir, sizeof(fd_dir), "/proc/%d/fd", (int)pid);
	err = op_session_visit_dir(AT_FDCWD, fd_dir, compare_file, &file);
	return file.found || is_denied(err);
}

/* The daemon that holds the lock of a session directory; 0: none that can be told. A lock that nobody holds may have any pid in it. */
static pid_t find_holder(const char *session_dir)
{
	struct op_text path = { 0 };
	pid_t pid = 0;

	op_text_printf(&path, "%s/" OP_SESSION_LOCK, session_dir);
	if (op_session_is_locked(session_dir))
		pid = op_lock_owner(AT_FDCWD, op_text_get(&path));
	if (!is_daemon(pid) || !has_open(pid, op_text_get(&path)))
		pid = 0;
	op_text_free(&path);
	return pid;
}

/* What the lock of a daemon that was killed says to the next one. */
static int leave_unclean(const struct opcontrol *ctl)
{
	int fd = open(ctl->session_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;

	if (fd < 0)
		return -1;
	err = op_session_leave_unclean(fd);
	close(fd);
	return err;
}

/* The daemon holds its lock with flock(2): what can be locked here is nobody's. */
static void remove_stale_lock(const struct opcontrol *ctl, const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB)) {
		puts("Detected stale lock file. Removing.");
		if (leave_unclean(ctl) < 0 || unlink(path) < 0)
			opr_error(1, "cannot remove %s: %s", path, strerror(errno));
	}
	close(fd);
}

/* Nobody answers at the socket: what does the lock say? unit_pid: the daemon that systemd has, wherever its session directory is; 0: none. */
static void look_at_lock(const struct opcontrol *ctl, pid_t unit_pid, struct ctl_daemon *daemon)
{
	struct op_text path = { 0 };

	daemon->pid = find_holder(ctl->session_dir);
	if (!daemon->pid)
		daemon->pid = unit_pid;
	if (daemon->pid) {
		daemon->presence = CTL_MUTE;
		return;
	}
	lock_path(ctl, &path);
	if (geteuid() == 0 && !ctl->json)
		remove_stale_lock(ctl, op_text_get(&path));
	op_text_free(&path);
}

/* The lock is its owner's to read: others know of the daemon by what the socket says. */
static bool is_hidden(const struct opcontrol *ctl)
{
	struct op_text path = { 0 };
	bool hidden;

	lock_path(ctl, &path);
	hidden = access(op_text_get(&path), R_OK) < 0 && errno == EACCES;
	op_text_free(&path);
	return hidden;
}

static int take_status(struct ctl_daemon *daemon, void *payload, size_t nr_bytes)
{
	if (op_control_status_parts(payload, nr_bytes, &daemon->status, &daemon->events, &daemon->cpus) < 0) {
		free(payload);
		return opr_error(1, "opd is of another version than this opcontrol: its status has a form of its own");
	}
	daemon->presence = CTL_PRESENT;
	daemon->pid = (pid_t)daemon->status->pid;
	daemon->payload = payload;
	return 0;
}

/* The daemon says that it is ending, or it has gone. */
static bool is_ending(int err)
{
	static const int errors[] = { -ESHUTDOWN, -ENOENT, -ECONNREFUSED, -ECONNRESET, -EPIPE };

	for (size_t i = 0; i < op_array_size(errors); i++)
		if (errors[i] == err)
			return true;
	return false;
}

/* It can be ended, by signals. */
static void become_other_version(struct ctl_daemon *daemon, char **message)
{
	daemon->presence = CTL_MUTE;
	daemon->other_version = *message;
	*message = NULL;
}

int ctl_find_daemon(const struct opcontrol *ctl, struct ctl_daemon *ret_daemon)
{
	struct ctl_daemon daemon = { .presence = CTL_ABSENT };
	char *message = NULL;
	void *payload = NULL;
	size_t nr_bytes;
	pid_t unit_pid;
	enum ctl_unit unit = ctl_unit_state(ctl, &unit_pid);
	int rc = 0, err;

	if (unit == CTL_UNIT_ENDS)
		daemon = (struct ctl_daemon){ .presence = CTL_MUTE, .pid = unit_pid, .ending = true };
	if (unit == CTL_UNIT_ENDS || unit == CTL_UNIT_SLEEPS) {
		*ret_daemon = daemon;
		return 0;
	}
	err = op_control_call_within(ctl->config.control_socket, OP_CONTROL_STATUS, CTL_PROBE_MS, &payload, &nr_bytes, &message);
	if (!err)
		rc = take_status(&daemon, payload, nr_bytes);
	else if ((err == -ETIMEDOUT || err == -ESHUTDOWN) && is_hidden(ctl))
		rc = opr_error(1, "opd %s", err == -ESHUTDOWN ? "is shutting down" : "does not answer");
	else if (err == -ETIMEDOUT || is_ending(err))
		look_at_lock(ctl, unit_pid, &daemon);
	else if (err == -EPROTONOSUPPORT && (daemon.pid = unit_pid ? unit_pid : find_holder(ctl->session_dir)))
		become_other_version(&daemon, &message);
	else
		rc = opr_error(1, "%s", message ? message : strerror(-err));
	free(message);
	daemon.ending = err == -ESHUTDOWN;
	if (!rc)
		*ret_daemon = daemon;
	return rc;
}

void ctl_daemon_free(struct ctl_daemon *daemon)
{
	free(daemon->payload);
	daemon->payload = NULL;
	free(daemon->other_version);
	daemon->other_version = NULL;
}

int ctl_fail_mute(const struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	if (daemon->other_version)
		return opr_error(1, "%s", daemon->other_version);
	if (daemon->ending)
		return opr_error(1, "opd (pid %d) is shutting down", (int)daemon->pid);
	if (find_holder(ctl->session_dir) != daemon->pid)
		return opr_error(1, "opd (pid %d) runs, but does not answer at %s", (int)daemon->pid, ctl->config.control_socket);
	return opr_error(1, "opd (pid %d) holds %s/" OP_SESSION_LOCK ", but does not answer at %s", (int)daemon->pid, ctl->session_dir,
			ctl->config.control_socket);
}

/* The options that the commands stand for. */
static const char *const request_names[] = {
	[OP_CONTROL_STATUS] = "status", [OP_CONTROL_START] = "start", [OP_CONTROL_STOP] = "stop",
	[OP_CONTROL_DUMP] = "dump",     [OP_CONTROL_RESET] = "reset", [OP_CONTROL_SHUTDOWN] = "shutdown",
};

/* The request has come to the daemon, whatever it says to it: errors of the call itself have numbers of their own. */
static bool was_taken(int err)
{
	static const int errors[] = { -ETIMEDOUT, -EPROTO, -EPROTOTYPE, -EPROTONOSUPPORT, -EAGAIN, -ENAMETOOLONG, -EACCES, -EPERM, -ENOMEM };

	for (size_t i = 0; i < op_array_size(errors); i++)
		if (errors[i] == err)
			return false;
	return true;
}

/* 0 or -errno, after a message. */
static int send_request(const struct opcontrol *ctl, enum op_control_command command, int timeout_ms, bool may_be_ending)
{
	char *message = NULL;
	void *payload = NULL;
	size_t nr_bytes;
	int err = op_control_call_within(ctl->config.control_socket, command, timeout_ms, &payload, &nr_bytes, &message);

	if (may_be_ending && is_ending(err))
		err = 0;
	if (err < 0)
		opr_error(1, "--%s: %s", request_names[command], message ? message : strerror(-err));
	free(payload);
	free(message);
	return err;
}

int ctl_request(const struct opcontrol *ctl, enum op_control_command command)
{
	return send_request(ctl, command, -1, false) < 0;
}

/* ---- the end ---- */

static int open_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static bool gone_within(int pidfd, int timeout_ms)
{
	struct pollfd pollfd = { .fd = pidfd, .events = POLLIN };

	return poll(&pollfd, 1, timeout_ms) > 0;
}

static bool send_signal(int pidfd, int number)
{
	return !syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0);
}

/* A process that is to go: it is only signalled while it holds the lock of the session directory. */
struct ending {
	pid_t pid;
	int pidfd;
	const char *session_dir;
	bool asked;
};

/* What follows each other until the process is gone; 0: only wait, it was asked. A process that was stopped ends when it goes on. */
static const struct {
	int signal;
	int wait_ms;
} insisting[] = { { 0, ASKED_MS }, { SIGTERM, TERM_MS }, { SIGKILL, KILL_MS } };

/* The daemon that systemd has may have another session directory. */
static bool holds_lock(const struct opcontrol *ctl, const struct ending *ending)
{
	pid_t unit_pid;

	if (find_holder(ending->session_dir) == ending->pid)
		return true;
	ctl_unit_state(ctl, &unit_pid);
	return unit_pid == ending->pid && is_daemon(unit_pid);
}

/* *ret_killed: nothing else helped. */
static int await_end(const struct opcontrol *ctl, const struct ending *ending, bool *ret_killed)
{
	for (size_t i = ending->asked ? 0 : 1; i < op_array_size(insisting); i++) {
		if (insisting[i].signal) {
			if (!holds_lock(ctl, ending))
				break; /* it was let go of, which is the last that a daemon does */
			if (ctl->verbose)
				printf("Sending signal %d to process %d.\n", insisting[i].signal, (int)ending->pid);
			if (!send_signal(ending->pidfd, insisting[i].signal) && errno == ESRCH)
				return 0;
			send_signal(ending->pidfd, SIGCONT);
			*ret_killed = insisting[i].signal == SIGKILL;
		}
		if (gone_within(ending->pidfd, insisting[i].wait_ms))
			return 0;
	}
	return gone_within(ending->pidfd, TERM_MS) ? 0 : opr_error(1, "opd (pid %d) does not end", (int)ending->pid);
}

/* The pid may have been given to another process between the question and here: looked at once more, held by the pidfd. */
static bool is_there_still(const struct opcontrol *ctl, const struct ctl_daemon *daemon, const struct ending *ending)
{
	return daemon->presence == CTL_PRESENT ? is_daemon(ending->pid) : holds_lock(ctl, ending);
}

static int end_process(const struct opcontrol *ctl, const struct ctl_daemon *daemon, bool *ret_ended)
{
	bool present = daemon->presence == CTL_PRESENT;
	struct ending ending = { .pid = daemon->pid,
				 .pidfd = open_pidfd(daemon->pid),
				 .session_dir = present ? daemon->status->session_dir : ctl->session_dir,
				 .asked = daemon->ending };
	bool killed = false;
	int rc = 0;

	*ret_ended = ending.pidfd < 0 && errno == ESRCH;
	if (*ret_ended)
		return 0;
	if (ending.pidfd < 0)
		return opr_error(1, "cannot watch opd (pid %d): %s", (int)daemon->pid, strerror(errno));
	*ret_ended = true;
	if (is_there_still(ctl, daemon, &ending)) {
		if (present) {
			rc = send_request(ctl, OP_CONTROL_SHUTDOWN, SHUTDOWN_MS, true);
			ending.asked = was_taken(rc);
		}
		*ret_ended = !await_end(ctl, &ending, &killed);
	}
	close(ending.pidfd);
	if (*ret_ended && killed)
		return opr_error(1, "opd (pid %d) had to be killed: samples that it had not written are lost", (int)daemon->pid);
	return !*ret_ended || rc < 0;
}

int ctl_end_daemon(const struct opcontrol *ctl, const struct ctl_daemon *daemon, bool *ret_ended)
{
	bool present = daemon->presence == CTL_PRESENT;
	struct op_text path = { 0 };
	int rc;

	if (present && daemon->status->state == OP_DAEMON_RUNNING)
		puts("Stopping profiling."); /* a part of SHUTDOWN: a request STOP would keep the next daemon from profiling */
	rc = end_process(ctl, daemon, ret_ended);
	if (*ret_ended)
		puts("Daemon stopped.");
	lock_path(ctl, &path);
	if (*ret_ended && op_lock_owner(AT_FDCWD, op_text_get(&path)) == daemon->pid)
		remove_stale_lock(ctl, op_text_get(&path));
	op_text_free(&path);
	return rc;
}
