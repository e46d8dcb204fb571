/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds, asks and ends the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/process/lock.h"
#include "libop/base/sys.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "tools/common/log.h"
#include "tools/opcontrol/opcontrol.h"

#define SHUTDOWN_MS 120000
#define ASKED_MS    30000
#define TERM_MS     60000
#define KILL_MS     10000

/* ---- is there a daemon ---- */

static struct op_text lock_path(const char *session_dir)
{
	struct op_text path = { 0 };

	op_text_printf(&path, "%s/" OP_SESSION_LOCK, session_dir);
	return path;
}

static struct op_text socket_lock_path(const struct opcontrol *ctl)
{
	struct op_text path = { 0 };

	op_text_printf(&path, "%s.lock", ctl->config.control_socket);
	return path;
}

static pid_t holder_of(struct op_text path)
{
	pid_t pid = path.failed ? 0 : ctl_lock_holder(op_text_get(&path));

	op_text_free(&path);
	return pid;
}

/* The daemon that holds the lock; 0: none. */
static pid_t find_holder(const char *session_dir)
{
	return holder_of(lock_path(session_dir));
}

/*
 * A daemon holds its lock with flock(2). If we get the lock, no daemon has it. Without the lock
 * file, a mark tells the next daemon that the last one was killed.
 */
static void remove_stale_lock(const struct opcontrol *ctl)
{
	int dir_fd = open(ctl->session_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	int fd = dir_fd < 0 ? -errno : op_lock_take_stale(dir_fd, OP_SESSION_LOCK);

	if (fd >= 0) {
		puts("Detected stale lock file. Removing.");
		err = op_session_leave_unclean(dir_fd);
		if (!err)
			err = op_sys_unlinkat(dir_fd, OP_SESSION_LOCK, 0);
		if (err)
			opr_error(1, "cannot remove %s/" OP_SESSION_LOCK ": %s", ctl->session_dir, strerror(-err));
		close(fd);
	}
	if (dir_fd >= 0)
		close(dir_fd);
}

/*
 * Finds a daemon that does not answer. unit_pid: the daemon of systemd; 0: none. A daemon that has
 * lost its session directory, or uses another one, still holds the lock of the socket.
 */
static void find_mute(const struct opcontrol *ctl, pid_t unit_pid, bool has_listener, struct ctl_daemon *daemon)
{
	daemon->pid = find_holder(ctl->session_dir);
	if (!daemon->pid)
		daemon->pid = unit_pid;
	if (!daemon->pid && has_listener)
		daemon->pid = holder_of(socket_lock_path(ctl));
	if (daemon->pid) {
		daemon->presence = CTL_NO_ANSWER;
		return;
	}
	if (geteuid() == 0 && ctl->format == CTL_TEXT)
		remove_stale_lock(ctl);
}

/* Only its owner may read the lock. For other users the reply at the socket must be enough. */
static bool is_hidden(const struct opcontrol *ctl)
{
	struct op_text path = lock_path(ctl->session_dir);
	bool hidden = access(op_text_get(&path), R_OK) < 0 && errno == EACCES;

	op_text_free(&path);
	return hidden;
}

static int take_status(struct ctl_daemon *daemon, void *payload, size_t nr_bytes)
{
	if (op_control_status_parts(payload, nr_bytes, &daemon->status, &daemon->events, &daemon->cpus) < 0) {
		free(payload);
		return opr_error(1, "opd and this opcontrol have different versions, and the status of opd has another form: "
				    "restart opd");
	}
	daemon->presence = CTL_PRESENT;
	daemon->pid = (pid_t)daemon->status->pid;
	daemon->payload = payload;
	return 0;
}

/* The daemon says that it is ending, or it is gone. */
static bool is_ending(int err)
{
	static const int errors[] = { -ESHUTDOWN, -ENOENT, -ECONNREFUSED, -ECONNRESET, -EPIPE };

	for (size_t i = 0; i < op_array_size(errors); i++)
		if (errors[i] == err)
			return true;
	return false;
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
		daemon = (struct ctl_daemon){ .presence = CTL_NO_ANSWER, .pid = unit_pid, .ending = true };
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
		find_mute(ctl, unit_pid, err == -ETIMEDOUT, &daemon);
	else if (err == -EPROTONOSUPPORT && (daemon.pid = unit_pid ? unit_pid : find_holder(ctl->session_dir)))
		daemon = (struct ctl_daemon){ .presence = CTL_NO_ANSWER, .pid = daemon.pid, .other_version = message };
	else
		rc = opr_error(1, "%s", message ? message : strerror(-err));
	if (message != daemon.other_version)
		free(message);
	daemon.ending = err == -ESHUTDOWN;
	if (!rc)
		*ret_daemon = daemon;
	return rc;
}

void ctl_daemon_free(struct ctl_daemon *daemon)
{
	free(daemon->payload);
	free(daemon->other_version);
	*daemon = (struct ctl_daemon){ 0 };
}

int ctl_with_daemon(struct opcontrol *ctl, ctl_act_fn *act)
{
	struct ctl_daemon daemon;
	int rc = ctl_find_daemon(ctl, &daemon);

	if (rc)
		return rc;
	rc = act(ctl, &daemon);
	ctl_daemon_free(&daemon);
	return rc;
}

int ctl_fail_no_answer(const struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	if (daemon->other_version)
		return opr_error(1, "%s", daemon->other_version);
	if (daemon->ending)
		return opr_error(1, "opd (pid %d) is shutting down", (int)daemon->pid);
	if (find_holder(ctl->session_dir) != daemon->pid)
		return opr_error(1, "opd (pid %d) runs, but does not answer at %s", (int)daemon->pid, ctl->config.control_socket);
	return opr_error(1, "opd (pid %d) holds %s/" OP_SESSION_LOCK ", but does not answer at %s", (int)daemon->pid,
			 ctl->session_dir, ctl->config.control_socket);
}

/* The options of opcontrol that send the commands. */
static const char *const request_names[] = {
	[OP_CONTROL_STATUS] = "status", [OP_CONTROL_START] = "start", [OP_CONTROL_STOP] = "stop",
	[OP_CONTROL_DUMP] = "dump",     [OP_CONTROL_RESET] = "reset", [OP_CONTROL_SHUTDOWN] = "shutdown",
};

/* True when the daemon got the request: the errors below come from the call itself. */
static bool was_received(int err)
{
	static const int errors[] = { -ETIMEDOUT,    -EPROTO, -EPROTOTYPE, -EPROTONOSUPPORT, -EAGAIN,
				      -ENAMETOOLONG, -EACCES, -EPERM,      -ENOMEM };

	for (size_t i = 0; i < op_array_size(errors); i++)
		if (errors[i] == err)
			return false;
	return true;
}

/* 0, or -errno after a message. */
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

static bool ends_within(int pidfd, int timeout_ms)
{
	struct pollfd pollfd = { .fd = pidfd, .events = POLLIN };

	return poll(&pollfd, 1, timeout_ms) > 0;
}

static bool send_signal(int pidfd, int number)
{
	return !syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0);
}

/* A daemon that is to end. It gets signals only while it holds a lock. */
struct ending {
	pid_t pid;
	int pidfd;
	const char *session_dir;
	bool asked; /* it was told to end */
};

/* The steps until the process is gone. The first one only waits, if it was told to end. */
static const struct {
	int signal;
	int wait_ms;
} steps[] = { { 0, ASKED_MS }, { SIGTERM, TERM_MS }, { SIGKILL, KILL_MS } };

/*
 * The daemon of systemd may have another session directory, and any daemon may have lost its own:
 * then the lock of the socket tells.
 */
static bool holds_lock(const struct opcontrol *ctl, const struct ending *ending)
{
	pid_t unit_pid;

	if (find_holder(ending->session_dir) == ending->pid || holder_of(socket_lock_path(ctl)) == ending->pid)
		return true;
	ctl_unit_state(ctl, &unit_pid);
	return unit_pid == ending->pid;
}

/* *ret_killed: only SIGKILL helped. */
static int await_end(const struct opcontrol *ctl, const struct ending *ending, bool *ret_killed)
{
	for (size_t i = ending->asked ? 0 : 1; i < op_array_size(steps); i++) {
		if (steps[i].signal) {
			if (!holds_lock(ctl, ending))
				break; /* a daemon releases the lock as its last action */
			if (ctl->verbose)
				printf("Sending signal %d to process %d.\n", steps[i].signal, (int)ending->pid);
			if (!send_signal(ending->pidfd, steps[i].signal) && errno == ESRCH)
				return 0;
			/* a stopped process takes signals when it continues */
			send_signal(ending->pidfd, SIGCONT);
			*ret_killed = steps[i].signal == SIGKILL;
		}
		if (ends_within(ending->pidfd, steps[i].wait_ms))
			return 0;
	}
	return ends_within(ending->pidfd, TERM_MS) ? 0 : opr_error(1, "opd (pid %d) does not end", (int)ending->pid);
}

/* True when the daemon answers once more, with the same pid. */
static bool answers_still(const struct opcontrol *ctl, pid_t pid)
{
	char *message = NULL;
	void *payload = NULL;
	size_t nr_bytes;
	struct ctl_daemon now = { .presence = CTL_ABSENT };
	bool answers = !op_control_call_within(ctl->config.control_socket, OP_CONTROL_STATUS, CTL_PROBE_MS, &payload, &nr_bytes,
					       &message) &&
		       !op_control_status_parts(payload, nr_bytes, &now.status, &now.events, &now.cpus) &&
		       (pid_t)now.status->pid == pid;

	free(payload);
	free(message);
	return answers;
}

/*
 * Another process may have got the pid before the pidfd was opened. A daemon that answers or holds
 * a lock with this pid afterwards is the one that the pidfd means.
 */
static bool is_still_daemon(const struct opcontrol *ctl, const struct ctl_daemon *daemon, const struct ending *ending)
{
	return (daemon->presence == CTL_PRESENT && answers_still(ctl, ending->pid)) || holds_lock(ctl, ending);
}

static int end_process(const struct opcontrol *ctl, const struct ctl_daemon *daemon, bool *ret_ended)
{
	bool present = daemon->presence == CTL_PRESENT;
	struct ending ending = { .pid = daemon->pid,
				 .pidfd = op_sys_pidfd_open(daemon->pid),
				 .session_dir = present ? daemon->status->session_dir : ctl->session_dir,
				 .asked = daemon->ending };
	bool killed = false;
	int rc = 0;

	*ret_ended = ending.pidfd == -ESRCH;
	if (*ret_ended)
		return 0;
	if (ending.pidfd < 0)
		return opr_error(1, "cannot watch opd (pid %d): %s", (int)daemon->pid, strerror(-ending.pidfd));
	*ret_ended = true;
	if (is_still_daemon(ctl, daemon, &ending)) {
		if (present) {
			rc = send_request(ctl, OP_CONTROL_SHUTDOWN, SHUTDOWN_MS, true);
			ending.asked = was_received(rc);
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
	struct op_text path = lock_path(ctl->session_dir);
	int rc;

	/* SHUTDOWN includes it. A request STOP would make the next daemon start paused. */
	if (daemon->presence == CTL_PRESENT && daemon->status->state == OP_DAEMON_RUNNING)
		puts("Stopping profiling.");
	rc = end_process(ctl, daemon, ret_ended);
	if (*ret_ended)
		puts("Daemon stopped.");
	if (*ret_ended && op_lock_owner(AT_FDCWD, op_text_get(&path)) == daemon->pid)
		remove_stale_lock(ctl);
	op_text_free(&path);
	return rc;
}
