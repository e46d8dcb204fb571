/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Starts the daemon as a child process. It says when it is ready (sd_notify(3)). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "tools/common/log.h"
#include "tools/opcontrol/opcontrol.h"

#define LOG_NAME   "samples/oprofiled.log"
#define READY_MS   60000
#define ANOTHER_MS 50

/* A daemon that is starting. */
struct child {
	int notify_fd;
	char notify_name[64]; /* for NOTIFY_SOCKET */
	int log_fd;
	off_t log_start; /* its output begins here */
	char *program, *config;
	pid_t pid;
	char status[512]; /* its last STATUS= */
};

/* ---- the program and its surroundings ---- */

static bool try_program(char **ret_program, const char *dir, const char *name)
{
	struct op_text path = { 0 };

	op_text_printf(&path, "%s%s", dir, name);
	if (access(op_text_get(&path), X_OK) < 0) {
		op_text_free(&path);
		return false;
	}
	*ret_program = op_text_steal(&path);
	return *ret_program;
}

/* Finds opd beside this program, installed or in a build tree, else in OPD_SBINDIR. */
static int find_program(char **ret_program)
{
	static const char *const places[] = { "/../sbin/opd", "/opd", "/../daemon/opd" };
	const char *env = getenv(CTL_DAEMON_ENV);
	char self[PATH_MAX], *slash;
	ssize_t nr = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (env && *env)
		return try_program(ret_program, env, "")
			       ? 0
			       : opr_error(1, "%s (environment " CTL_DAEMON_ENV "): %s", env, strerror(errno));
	self[nr > 0 ? nr : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash) {
		*slash = '\0';
		for (size_t i = 0; i < op_array_size(places); i++)
			if (try_program(ret_program, self, places[i]))
				return 0;
	}
	return try_program(ret_program, OPD_SBINDIR "/opd", "")
		       ? 0
		       : opr_error(1, "cannot find opd, neither beside opcontrol nor in " OPD_SBINDIR);
}

/* An abstract socket with a name from the kernel. Anybody can send to it: see is_from_daemon. */
static int open_notify(struct child *child)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t nr_bytes = sizeof(address);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	if (fd < 0)
		return opr_error(1, "cannot make a socket: %s", strerror(errno));
	child->notify_fd = fd;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address.sun_family)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &nr_bytes) < 0)
		return opr_error(1, "cannot make a socket: %s", strerror(errno));
	snprintf(child->notify_name, sizeof(child->notify_name), "@%.*s",
		 (int)(nr_bytes - offsetof(struct sockaddr_un, sun_path) - 1), address.sun_path + 1);
	return 0;
}

/* In another user's directory the log may be a link, or a pipe that nobody reads. */
static int open_regular(int dir_fd, const char *path)
{
	struct stat st;
	int fd = op_file_open_below(dir_fd, path, O_RDWR | O_APPEND | O_CREAT, 0644), err;

	if (fd < 0)
		return fd;
	err = op_sys_fstat(fd, &st);
	if (!err && !S_ISREG(st.st_mode))
		err = -EINVAL;
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int open_log(const struct opcontrol *ctl, struct child *child)
{
	int dir_fd = op_session_open(ctl->session_dir);
	const char *in_the_way = dir_fd < 0 ? op_session_in_the_way(ctl->session_dir) : NULL;

	if (in_the_way)
		return opr_error(1, "cannot use the session directory %s: %s/%s is a directory: remove it", ctl->session_dir,
				 ctl->session_dir, in_the_way);
	if (dir_fd < 0)
		return ctl_fail_session(ctl, "use the session directory", ctl->session_dir, NULL, dir_fd);
	child->log_fd = open_regular(dir_fd, LOG_NAME);
	close(dir_fd);
	if (child->log_fd == -EINVAL)
		return opr_error(1, "cannot open the log %s/" LOG_NAME ": it is not a regular file: remove it", ctl->session_dir);
	if (child->log_fd < 0)
		return ctl_fail_session(ctl, "open the log", ctl->session_dir, LOG_NAME, child->log_fd);
	child->log_start = lseek(child->log_fd, 0, SEEK_END);
	return 0;
}

/* The daemon runs in /, so it gets the absolute path of its configuration. */
static int set_config(const struct opcontrol *ctl, struct child *child)
{
	struct op_text text = { 0 };
	char *path;

	if (!ctl->config_explicit)
		return 0;
	path = realpath(ctl->config_path, NULL);
	if (!path)
		return opr_error(1, "%s: %s", ctl->config_path, strerror(errno));
	op_text_printf(&text, "--config=%s", path);
	free(path);
	child->config = op_text_steal(&text);
	return child->config ? 0 : opr_no_memory();
}

/* ---- the process ---- */

/* The daemon outlives the caller, so it keeps no other descriptors of it than the standard ones. */
OP_NORETURN static void become_daemon(const struct child *child)
{
	int null_fd = open("/dev/null", O_RDWR);

	setsid();
	if (null_fd < 0 || chdir("/") < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(child->log_fd, STDOUT_FILENO) < 0 ||
	    dup2(child->log_fd, STDERR_FILENO) < 0 || setenv("NOTIFY_SOCKET", child->notify_name, 1) < 0)
		_exit(126);
	unsetenv("WATCHDOG_USEC");
	unsetenv("LISTEN_FDS");
	unsetenv("JOURNAL_STREAM");
	closefrom(STDERR_FILENO + 1);
	execl(child->program, "opd", child->config, (char *)NULL);
	dprintf(STDERR_FILENO, "opd: cannot run %s: %s\n", child->program, strerror(errno));
	_exit(127);
}

/* The sender is the daemon, or one of its helpers, which has another pid but the same user. */
static bool is_from_daemon(const struct child *child, const struct msghdr *message)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR((struct msghdr *)(uintptr_t)message, part)) {
		struct ucred sender;

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS)
			continue;
		memcpy(&sender, CMSG_DATA(part), sizeof(sender));
		return sender.pid == child->pid || sender.uid == geteuid();
	}
	return false;
}

/* Reads one message of the daemon. True: the daemon is ready. */
static bool read_message(struct child *child)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	char text[4096];
	struct iovec iov = { text, sizeof(text) - 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t nr = recvmsg(child->notify_fd, &message, 0);
	bool ready = false;

	if (nr < 0 || !is_from_daemon(child, &message))
		return false;
	text[nr] = '\0';
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		ready |= !strcmp(line, "READY=1");
		if (!strncmp(line, "STATUS=", 7))
			snprintf(child->status, sizeof(child->status), "%s", line + 7);
	}
	return ready;
}

/* The last line that the daemon logged, else its last STATUS=. */
static void read_last_line(const struct child *child, char *line, size_t nr_bytes)
{
	char text[4096], *next;
	off_t end = lseek(child->log_fd, 0, SEEK_END), from = end - (off_t)sizeof(text) + 1;
	ssize_t nr = pread(child->log_fd, text, sizeof(text) - 1, from > child->log_start ? from : child->log_start);

	snprintf(line, nr_bytes, "%s", child->status);
	text[nr > 0 ? nr : 0] = '\0';
	for (char *rest = text; (next = strsep(&rest, "\n"));)
		if (*next)
			snprintf(line, nr_bytes, "%s", strncmp(next, "opd: ", 5) ? next : next + 5);
}

/* True when another opd holds the lock of the control socket. */
static bool another_is_starting(const struct opcontrol *ctl)
{
	struct op_text path = { 0 };
	pid_t pid;

	op_text_printf(&path, "%s.lock", ctl->config.control_socket);
	pid = path.failed ? 0 : ctl_lock_holder(op_text_get(&path));
	op_text_free(&path);
	return pid;
}

/* True when another opd answers: of several that start together, one stays for all. */
static bool another_answers(const struct opcontrol *ctl)
{
	int err;

	for (int waited_ms = 0;; waited_ms += ANOTHER_MS) {
		char *message = NULL;
		void *payload = NULL;
		size_t nr_bytes;

		err = op_control_call_within(ctl->config.control_socket, OP_CONTROL_STATUS, CTL_PROBE_MS, &payload, &nr_bytes,
					     &message);
		free(payload);
		free(message);
		if (!err || waited_ms >= READY_MS || !another_is_starting(ctl))
			return !err;
		usleep(ANOTHER_MS * 1000);
	}
}

static int explain_end(const struct opcontrol *ctl, const struct child *child, int status)
{
	char line[1024];

	if (another_answers(ctl))
		return CTL_ANOTHER;
	read_last_line(child, line, sizeof(line));
	if (*line)
		return opr_error(1, "opd does not start: %s", line);
	if (WIFSIGNALED(status))
		return opr_error(1, "opd was ended by signal %d before it was ready", WTERMSIG(status));
	return opr_error(1, "opd ended with exit code %d before it was ready", WEXITSTATUS(status));
}

static int give_up(struct child *child)
{
	int status;

	kill(child->pid, SIGKILL);
	waitpid(child->pid, &status, 0);
	return opr_error(1, "opd was not ready after %d seconds and was ended", READY_MS / 1000);
}

/* Reads all messages of the daemon before it looks whether the daemon has ended. */
static int await_ready(const struct opcontrol *ctl, struct child *child)
{
	struct timespec now, start;
	int pidfd = op_sys_pidfd_open(child->pid), status, rc = -1;

	if (pidfd < 0)
		return opr_error(1, "cannot watch opd (pid %d): %s", (int)child->pid, strerror(-pidfd));
	clock_gettime(CLOCK_MONOTONIC, &start);
	while (rc < 0) {
		struct pollfd fds[] = { { .fd = child->notify_fd, .events = POLLIN }, { .fd = pidfd, .events = POLLIN } };
		int elapsed_ms;

		clock_gettime(CLOCK_MONOTONIC, &now);
		elapsed_ms = (int)((now.tv_sec - start.tv_sec) * 1000);
		if (elapsed_ms >= READY_MS)
			rc = give_up(child);
		else if (poll(fds, 2, READY_MS - elapsed_ms) <= 0)
			continue;
		else if (fds[0].revents & POLLIN && read_message(child))
			rc = 0;
		else if (fds[1].revents && !(fds[0].revents & POLLIN) && waitpid(child->pid, &status, WNOHANG) > 0)
			rc = explain_end(ctl, child, status);
	}
	close(pidfd);
	return rc;
}

static int start_process(const struct opcontrol *ctl)
{
	struct child child = { .notify_fd = -1, .log_fd = -1 };
	int rc = find_program(&child.program);

	if (!rc)
		rc = set_config(ctl, &child);
	if (!rc)
		rc = open_notify(&child);
	if (!rc)
		rc = open_log(ctl, &child);
	if (!rc) {
		if (ctl->verbose)
			printf("Starting %s %s\n", child.program, child.config ? child.config : "");
		child.pid = fork();
		if (!child.pid)
			become_daemon(&child);
		rc = child.pid < 0 ? opr_error(1, "cannot start a process: %s", strerror(errno)) : await_ready(ctl, &child);
	}
	if (child.notify_fd >= 0)
		close(child.notify_fd);
	if (child.log_fd >= 0)
		close(child.log_fd);
	free(child.program);
	free(child.config);
	return rc;
}

int ctl_spawn_daemon(const struct opcontrol *ctl)
{
	return ctl_is_systemds(ctl) ? ctl_start_unit(ctl) : start_process(ctl);
}
