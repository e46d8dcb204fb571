/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finding, asking and ending the daemon. */
#include "tools/opcontrol.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libop/file.h"
#include "libop/parse.h"
#include "libop/session.h"

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

/* The pid in the lock; 0: there is no lock, -1: no pid in it. */
static pid_t read_lock(const char *path)
{
	uint64_t pid;
	char *text;

	if (op_file_read(AT_FDCWD, path, 32, &text) < 0)
		return access(path, F_OK) < 0 ? 0 : -1;
	text[strcspn(text, "\n")] = '\0';
	if (op_parse_u64(text, 1, INT_MAX, &pid) < 0)
		pid = 0;
	free(text);
	return pid ? (pid_t)pid : -1;
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
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB)) {
		puts("Detected stale lock file. Removing.");
		if (leave_unclean(ctl) < 0 || unlink(path) < 0)
			ctl_fail("cannot remove %s: %s", path, strerror(errno));
	}
	close(fd);
}

/* Nobody answers at the socket: what does the lock say? */
static void look_at_lock(const struct opcontrol *ctl, struct ctl_daemon *daemon)
{
	struct op_text path = { 0 };
	pid_t pid;

	lock_path(ctl, &path);
	pid = read_lock(op_text_get(&path));
	if (is_daemon(pid)) {
		daemon->presence = CTL_MUTE;
		daemon->pid = pid;
	} else if (pid && geteuid() == 0 && !ctl->json) {
		remove_stale_lock(ctl, op_text_get(&path));
	}
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
		return ctl_fail("opd is of another version than this opcontrol: its status has a form of its own");
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

int ctl_find_daemon(const struct opcontrol *ctl, struct ctl_daemon *ret_daemon)
{
	struct ctl_daemon daemon = { .presence = CTL_ABSENT };
	char *message = NULL;
	void *payload = NULL;
	size_t nr_bytes;
	int rc = 0, err;

	if (ctl_sleeps(ctl)) {
		*ret_daemon = daemon;
		return 0;
	}
	err = op_control_call_within(ctl->config.control_socket, OP_CONTROL_STATUS, CTL_PROBE_MS, &payload, &nr_bytes, &message);
	if (!err)
		rc = take_status(&daemon, payload, nr_bytes);
	else if ((err == -ETIMEDOUT || err == -ESHUTDOWN) && is_hidden(ctl))
		rc = ctl_fail("opd %s", err == -ESHUTDOWN ? "is shutting down" : "does not answer");
	else if (err == -ETIMEDOUT || is_ending(err))
		look_at_lock(ctl, &daemon);
	else
		rc = ctl_fail("%s", message ? message : strerror(-err));
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
}

int ctl_fail_mute(const struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	if (daemon->ending)
		return ctl_fail("opd (pid %d) is shutting down", (int)daemon->pid);
	return ctl_fail("opd (pid %d) holds %s/" OP_SESSION_LOCK ", but does not answer at %s", (int)daemon->pid, ctl->session_dir,
			ctl->config.control_socket);
}

/* The options that the commands stand for. */
static const char *const request_names[] = {
	[OP_CONTROL_STATUS] = "status", [OP_CONTROL_START] = "start", [OP_CONTROL_STOP] = "stop",
	[OP_CONTROL_DUMP] = "dump",     [OP_CONTROL_RESET] = "reset", [OP_CONTROL_SHUTDOWN] = "shutdown",
};

static int send_request(const struct opcontrol *ctl, enum op_control_command command, int timeout_ms, bool may_be_ending)
{
	char *message = NULL;
	void *payload = NULL;
	size_t nr_bytes;
	int err = op_control_call_within(ctl->config.control_socket, command, timeout_ms, &payload, &nr_bytes, &message);

	if (may_be_ending && is_ending(err))
		err = 0;
	if (err < 0)
		ctl_fail("--%s: %s", request_names[command], message ? message : strerror(-err));
	free(payload);
	free(message);
	return err < 0;
}

int ctl_request(const struct opcontrol *ctl, enum op_control_command command)
{
	return send_request(ctl, command, -1, false);
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

/* What follows each other until the process is gone; 0: only wait, it was asked. A process that was stopped ends when it goes on. */
static const struct {
	int signal;
	int wait_ms;
} insisting[] = { { 0, ASKED_MS }, { SIGTERM, TERM_MS }, { SIGKILL, KILL_MS } };

static int await_end(const struct opcontrol *ctl, pid_t pid, int pidfd, bool asked)
{
	for (size_t i = asked ? 0 : 1; i < op_array_size(insisting); i++) {
		if (insisting[i].signal) {
			ctl_verbose(ctl, "Sending signal %d to process %d.", insisting[i].signal, (int)pid);
			if (!send_signal(pidfd, insisting[i].signal) && errno == ESRCH)
				return 0;
			send_signal(pidfd, SIGCONT);
		}
		if (gone_within(pidfd, insisting[i].wait_ms))
			return 0;
	}
	return ctl_fail("opd (pid %d) does not end", (int)pid);
}

/* The pid may have been given to another process between the question and here: looked at once more, held by the pidfd. */
static int end_process(const struct opcontrol *ctl, pid_t pid, bool present, bool asked, bool *ret_ended)
{
	int pidfd = open_pidfd(pid), rc = 0;

	*ret_ended = pidfd < 0 && errno == ESRCH;

	if (pidfd < 0 && errno == ESRCH)
		return 0;
	if (pidfd < 0)
		return ctl_fail("cannot watch opd (pid %d): %s", (int)pid, strerror(errno));
	*ret_ended = true;
	if (is_daemon(pid)) {
		if (present) {
			rc = send_request(ctl, OP_CONTROL_SHUTDOWN, SHUTDOWN_MS, true);
			asked = !rc;
		}
		*ret_ended = !await_end(ctl, pid, pidfd, asked);
	}
	close(pidfd);
	return *ret_ended ? rc : 1;
}

int ctl_end_daemon(const struct opcontrol *ctl, const struct ctl_daemon *daemon, bool *ret_ended)
{
	bool present = daemon->presence == CTL_PRESENT;
	struct op_text path = { 0 };
	int rc;

	if (present && daemon->status->state == OP_DAEMON_RUNNING) {
		puts("Stopping profiling."); /* a part of SHUTDOWN: as a request of its own it would keep the next daemon from profiling */
		fflush(stdout);
	}
	puts("Killing daemon.");
	fflush(stdout);
	rc = end_process(ctl, daemon->pid, present, daemon->ending, ret_ended);
	lock_path(ctl, &path);
	if (*ret_ended && read_lock(op_text_get(&path)) == daemon->pid)
		remove_stale_lock(ctl, op_text_get(&path));
	op_text_free(&path);
	return rc;
}
