/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Asks systemd for the daemon and starts it there, with systemctl(1). */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/session/layout.h"
#include "libop/session/walk.h"
#include "tools/common/log.h"
#include "tools/opcontrol/opcontrol.h"

#define UNIT        "opd.service"
#define SOCKET_UNIT "opd.socket"

static const char *const unit_dirs[] = {
	"/etc/systemd/system",     "/run/systemd/system", "/usr/local/lib/systemd/system",
	"/usr/lib/systemd/system", "/lib/systemd/system",
};

static bool unit_is_installed(const char *name)
{
	char path[128];

	for (size_t i = 0; i < op_array_size(unit_dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", unit_dirs[i], name);
		if (!access(path, R_OK))
			return true;
	}
	return false;
}

bool ctl_is_systemds(const struct opcontrol *ctl)
{
	return !ctl->config_explicit && !getenv(CTL_DAEMON_ENV) && sd_booted() > 0 && unit_is_installed(UNIT);
}

/* `fd` gets its standard output with_answer, else its standard error. */
OP_NORETURN static void become_systemctl(const char *const arguments[], int fd, bool with_answer)
{
	int null_fd = with_answer ? open("/dev/null", O_WRONLY) : -1;

	if (dup2(fd, with_answer ? STDOUT_FILENO : STDERR_FILENO) >= 0 && (!with_answer || dup2(null_fd, STDERR_FILENO) >= 0))
		execvp(arguments[0], (char *const *)(uintptr_t)arguments);
	dprintf(fd, "%s\n", strerror(errno));
	_exit(127);
}

/*
 * Reads a pipe to its end, so that the writer never waits, and keeps as much as there is room for.
 */
static void read_text(int fd, char *text, size_t nr_bytes)
{
	char rest[4096];
	size_t length = 0;
	ssize_t nr;

	while ((nr = read(fd, rest, sizeof(rest))) > 0 || (nr < 0 && errno == EINTR)) {
		size_t taken = nr < 0 ? 0 : (size_t)nr;

		if (taken > nr_bytes - 1 - length)
			taken = nr_bytes - 1 - length;
		memcpy(text + length, rest, taken);
		length += taken;
	}
	text[length] = '\0';
}

/* `text`: standard output with_answer, else standard error. *ret_status: of waitpid(2). */
static int run_systemctl(const char *const arguments[], bool with_answer, char *text, size_t nr_bytes, int *ret_status)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return opr_error(1, "cannot make a pipe: %s", strerror(errno));
	pid = fork();
	if (!pid)
		become_systemctl(arguments, fds[1], with_answer);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return opr_error(1, "cannot start a process: %s", strerror(errno));
	}
	read_text(fds[0], text, nr_bytes);
	close(fds[0]);
	while (waitpid(pid, ret_status, 0) < 0)
		if (errno != EINTR)
			return opr_error(1, "systemctl: %s", strerror(errno));
	return 0;
}

static bool has_succeeded(int status)
{
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Properties of the service, and of its socket. */
struct properties {
	char state[32], socket_state[32];
	pid_t pid;
};

static bool take_property(const char *line, const char *name, char *value, size_t nr_bytes)
{
	size_t length = strlen(name);
	bool is_it = !strncmp(line, name, length);

	if (is_it)
		snprintf(value, nr_bytes, "%s", line + length);
	return is_it;
}

/* False: systemctl fails, as for a user without D-Bus. */
static bool read_properties(struct properties *properties)
{
	static const char *const show[] = {
		"systemctl", "show", "--property=ActiveState,SubState,MainPID", UNIT, SOCKET_UNIT, NULL
	};
	char text[1024], *rest = text, pid[32] = "";
	bool of_socket = false;
	int status;

	*properties = (struct properties){ 0 };
	if (run_systemctl(show, true, text, sizeof(text), &status) || !has_succeeded(status))
		return false;
	for (char *line; (line = strsep(&rest, "\n"));) {
		of_socket |= !*line; /* an empty line is between the units */
		if (of_socket)
			take_property(line, "SubState=", properties->socket_state, sizeof(properties->socket_state));
		else if (!take_property(line, "ActiveState=", properties->state, sizeof(properties->state)))
			take_property(line, "MainPID=", pid, sizeof(pid));
	}
	properties->pid = (pid_t)strtol(pid, NULL, 10);
	return *properties->state && *properties->socket_state;
}

/* ---- without systemctl ---- */

static bool is_of_unit(const char *pid)
{
	char path[64], *text;
	bool found;

	snprintf(path, sizeof(path), "/proc/%.16s/cgroup", pid);
	if (op_file_read(AT_FDCWD, path, OP_FILE_MAX_BYTES, &text) < 0)
		return false;
	found = strstr(text, "/" UNIT "\n");
	free(text);
	return found;
}

/* The first process of the unit: the daemon is older than its helpers. */
static int visit_process(const char *name, void *arg)
{
	pid_t *pid = arg, found = *name < '0' || *name > '9' ? 0 : (pid_t)strtol(name, NULL, 10);

	if (found && is_of_unit(name) && (!*pid || found < *pid))
		*pid = found;
	return 0;
}

static enum ctl_unit state_by_processes(const struct opcontrol *ctl, pid_t *ret_pid)
{
	struct op_text lock = { 0 };
	bool held;

	*ret_pid = 0;
	if (!op_session_visit_dir(AT_FDCWD, "/proc", visit_process, ret_pid) && *ret_pid)
		return CTL_UNIT_RUNS;
	if (!unit_is_installed(SOCKET_UNIT))
		return CTL_UNIT_NONE;
	op_text_printf(&lock, "%s/" OP_SESSION_LOCK, ctl->session_dir);
	held = lock.failed || ctl_lock_may_be_held(op_text_get(&lock));
	op_text_free(&lock);
	return held ? CTL_UNIT_NONE : CTL_UNIT_SLEEPS;
}

/* Does not look into the session directory: the daemon may use another one than this call. */
enum ctl_unit ctl_unit_state(const struct opcontrol *ctl, pid_t *ret_pid)
{
	struct properties properties;
	const char *state = properties.state;

	*ret_pid = 0;
	if (!ctl_is_systemds(ctl))
		return CTL_UNIT_NONE;
	if (!read_properties(&properties))
		return state_by_processes(ctl, ret_pid);
	*ret_pid = properties.pid;
	if (!strcmp(state, "deactivating") && properties.pid)
		return CTL_UNIT_ENDS;
	if (!strcmp(state, "active") || !strcmp(state, "reloading") || (!strcmp(state, "activating") && properties.pid))
		return CTL_UNIT_RUNS;
	return !strcmp(properties.socket_state, "listening") ? CTL_UNIT_SLEEPS : CTL_UNIT_NONE;
}

/* The last status of opd. systemd clears older ones when it tries a start. */
static bool last_status(char *line, size_t nr_bytes)
{
	static const char *const show[] = { "systemctl", "show", "--property=StatusText", "--value", UNIT, NULL };
	int status;

	if (run_systemctl(show, true, line, nr_bytes, &status) || !has_succeeded(status))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return *line;
}

/* If systemd did not try a start, as for a masked unit, only systemctl says why. */
static int explain_unit(char *text)
{
	char line[1024];

	text[strcspn(text, "\n")] = '\0';
	if (!strncmp(text, "Job for ", 8) && last_status(line, sizeof(line)))
		return opr_error(1, "opd does not start: %s ('systemctl status " UNIT "' says more)", line);
	return opr_error(1, "'systemctl start " UNIT "' failed%s%s ('systemctl status " UNIT "' says more)", *text ? ": " : "",
			 text);
}

/* First clears the failures of the unit, so that its start limit does not refuse the start. */
int ctl_start_unit(const struct opcontrol *ctl)
{
	static const char *const forgive[] = { "systemctl", "reset-failed", UNIT, SOCKET_UNIT, NULL };
	static const char *const start[] = { "systemctl", "start", UNIT, NULL };
	char text[512];
	int status, rc;

	if (ctl->verbose)
		puts("systemctl start " UNIT);
	rc = run_systemctl(forgive, false, text, sizeof(text), &status);

	if (!rc)
		rc = run_systemctl(start, false, text, sizeof(text), &status);
	if (rc || has_succeeded(status))
		return rc;
	return explain_unit(text);
}

int ctl_close_socket(const struct opcontrol *ctl)
{
	static const char *const stop[] = { "systemctl", "stop", SOCKET_UNIT, NULL };
	char text[512];
	int status, rc;

	if (!ctl_is_systemds(ctl) || !unit_is_installed(SOCKET_UNIT))
		return 0;
	rc = run_systemctl(stop, false, text, sizeof(text), &status);
	if (rc || has_succeeded(status))
		return rc;
	text[strcspn(text, "\n")] = '\0';
	return opr_error(1, "'systemctl stop " SOCKET_UNIT "' failed%s%s: a connection to it starts opd again", *text ? ": " : "",
			 text);
}
