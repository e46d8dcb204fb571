/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Starting the daemon as a process of our own, where it is not systemd's; it is ready when it says so (sd_notify(3)). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/lock.h"
#include "libop/base/sys.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "tools/common/log.h"
#include "tools/opcontrol/opcontrol.h"

#define LOG_NAME   "samples/oprofiled.log"
#define READY_MS   60000
#define ANOTHER_MS 50

/* What is known of a daemon that is coming up. */
struct birth {
	int notify_fd;
	char notify_name[64]; /* for NOTIFY_SOCKET */
	int log_fd;
	off_t log_start; /* what it writes begins here */
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

/* Beside this program, installed or in a build tree, else where it was to be installed. */
static int find_program(char **ret_program)
{
	static const char *const places[] = { "/../sbin/opd", "/opd", "/../daemon/opd" };
	const char *env = getenv(CTL_DAEMON_ENV);
	char self[PATH_MAX], *slash;
	ssize_t nr = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (env && *env)
		return try_program(ret_program, env, "") ? 0
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

/* An abstract socket with a name that the kernel chooses; the sender's user is checked at each message. */
static int open_notify(struct birth *birth)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t nr_bytes = sizeof(address);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	if (fd < 0)
		return opr_error(1, "cannot make a socket: %s", strerror(errno));
	birth->notify_fd = fd;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address.sun_family)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &nr_bytes) < 0)
		return opr_error(1, "cannot make a socket: %s", strerror(errno));
	snprintf(birth->notify_name, sizeof(birth->notify_name), "@%.*s",
		 (int)(nr_bytes - offsetof(struct sockaddr_un, sun_path) - 1), address.sun_path + 1);
	return 0;
}

/* The session directory may be another user's: what is there may be a link, or a pipe that nobody reads. */
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

static int open_log(const struct opcontrol *ctl, struct birth *birth)
{
	int dir_fd = op_session_open(ctl->session_dir);
	const char *in_the_way = dir_fd < 0 ? op_session_in_the_way(ctl->session_dir) : NULL;

	if (in_the_way)
		return opr_error(1, "cannot use the session directory %s: %s/%s is a directory: remove it", ctl->session_dir,
				ctl->session_dir, in_the_way);
	if (dir_fd < 0)
		return ctl_fail_session(ctl, "use the session directory", ctl->session_dir, NULL, dir_fd);
	birth->log_fd = open_regular(dir_fd, LOG_NAME);
	close(dir_fd);
	if (birth->log_fd == -EINVAL)
		return opr_error(1, "cannot open the log %s/" LOG_NAME ": it is no regular file: remove it", ctl->session_dir);
	if (birth->log_fd < 0)
		return ctl_fail_session(ctl, "open the log", ctl->session_dir, LOG_NAME, birth->log_fd);
	birth->log_start = lseek(birth->log_fd, 0, SEEK_END);
	return 0;
}

/* The daemon runs in /, so its configuration is named from there. */
static int name_config(const struct opcontrol *ctl, struct birth *birth)
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
	birth->config = op_text_steal(&text);
	return birth->config ? 0 : opr_no_memory();
}

/* ---- the process ---- */

/* The daemon outlives the caller: it keeps no descriptor but its three. */
OP_NORETURN static void become_daemon(const struct birth *birth)
{
	int null_fd = open("/dev/null", O_RDWR);

	setsid();
	if (null_fd < 0 || chdir("/") < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(birth->log_fd, STDOUT_FILENO) < 0 ||
	    dup2(birth->log_fd, STDERR_FILENO) < 0 || setenv("NOTIFY_SOCKET", birth->notify_name, 1) < 0)
		_exit(126);
	unsetenv("WATCHDOG_USEC");
	unsetenv("LISTEN_FDS");
	unsetenv("JOURNAL_STREAM");
	closefrom(STDERR_FILENO + 1);
	execl(birth->program, "opd", birth->config, (char *)NULL);
	dprintf(STDERR_FILENO, "opd: cannot run %s: %s\n", birth->program, strerror(errno));
	_exit(127);
}

/* The process that was started, which may have become the owner of the session directory, or one of its helpers. */
static bool sender_is_ours(const struct birth *birth, const struct msghdr *message)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR((struct msghdr *)(uintptr_t)message, part)) {
		struct ucred sender;

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS)
			continue;
		memcpy(&sender, CMSG_DATA(part), sizeof(sender));
		return sender.pid == birth->pid || sender.uid == geteuid();
	}
	return false;
}

/* Reads one message of the daemon; true when it says that it is ready. */
static bool read_notice(struct birth *birth)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	char text[4096];
	struct iovec iov = { text, sizeof(text) - 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t nr = recvmsg(birth->notify_fd, &message, 0);
	bool ready = false;

	if (nr < 0 || !sender_is_ours(birth, &message))
		return false;
	text[nr] = '\0';
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		ready |= !strcmp(line, "READY=1");
		if (!strncmp(line, "STATUS=", 7))
			snprintf(birth->status, sizeof(birth->status), "%s", line + 7);
	}
	return ready;
}

/* The last line with something in it of what the daemon wrote since its start; else its last STATUS. */
static void last_words(const struct birth *birth, char *words, size_t nr_bytes)
{
	char text[4096], *line;
	off_t end = lseek(birth->log_fd, 0, SEEK_END), from = end - (off_t)sizeof(text) + 1;
	ssize_t nr = pread(birth->log_fd, text, sizeof(text) - 1, from > birth->log_start ? from : birth->log_start);

	snprintf(words, nr_bytes, "%s", birth->status);
	text[nr > 0 ? nr : 0] = '\0';
	for (char *rest = text; (line = strsep(&rest, "\n"));)
		if (*line)
			snprintf(words, nr_bytes, "%s", strncmp(line, "opd: ", 5) ? line : line + 5);
}

/* Whether another opd has the control socket, or is about to have it: the number in its lock is that of a process. */
static bool another_comes_up(const struct opcontrol *ctl)
{
	struct op_text path = { 0 };
	pid_t pid;

	op_text_printf(&path, "%s.lock", ctl->config.control_socket);
	pid = op_lock_owner(AT_FDCWD, op_text_get(&path));
	op_text_free(&path);
	return pid > 0 && (!kill(pid, 0) || errno == EPERM);
}

/* Of several that are started together one stays, and that is what all were asked for. */
static bool another_is_there(const struct opcontrol *ctl)
{
	int err;

	for (int waited_ms = 0;; waited_ms += ANOTHER_MS) {
		char *message = NULL;
		void *payload = NULL;
		size_t nr_bytes;

		err = op_control_call_within(ctl->config.control_socket, OP_CONTROL_STATUS, CTL_PROBE_MS, &payload, &nr_bytes, &message);
		free(payload);
		free(message);
		if (!err || waited_ms >= READY_MS || !another_comes_up(ctl))
			return !err;
		usleep(ANOTHER_MS * 1000);
	}
}

static int explain_end(const struct opcontrol *ctl, const struct birth *birth, int status)
{
	char words[1024], how[64];

	if (another_is_there(ctl))
		return CTL_ANOTHER;
	last_words(birth, words, sizeof(words));
	if (WIFSIGNALED(status))
		snprintf(how, sizeof(how), "was ended by signal %d", WTERMSIG(status));
	else
		snprintf(how, sizeof(how), "ended with exit code %d", WEXITSTATUS(status));
	if (*words)
		return opr_error(1, "opd does not start: %s", words);
	return opr_error(1, "opd %s before it was ready", how);
}

static int give_up(struct birth *birth)
{
	int status;

	kill(birth->pid, SIGKILL);
	waitpid(birth->pid, &status, 0);
	return opr_error(1, "opd was not ready after %d seconds and was ended", READY_MS / 1000);
}

/* What it said last is read before its end is looked at. */
static int await_ready(const struct opcontrol *ctl, struct birth *birth)
{
	struct timespec now, start;
	int pidfd = (int)syscall(SYS_pidfd_open, birth->pid, 0), status, rc = -1;

	if (pidfd < 0)
		return opr_error(1, "cannot watch opd (pid %d): %s", (int)birth->pid, strerror(errno));
	clock_gettime(CLOCK_MONOTONIC, &start);
	while (rc < 0) {
		struct pollfd fds[] = { { .fd = birth->notify_fd, .events = POLLIN }, { .fd = pidfd, .events = POLLIN } };
		int elapsed_ms;

		clock_gettime(CLOCK_MONOTONIC, &now);
		elapsed_ms = (int)((now.tv_sec - start.tv_sec) * 1000);
		if (elapsed_ms >= READY_MS)
			rc = give_up(birth);
		else if (poll(fds, 2, READY_MS - elapsed_ms) <= 0)
			continue;
		else if (fds[0].revents & POLLIN && read_notice(birth))
			rc = 0;
		else if (fds[1].revents && !(fds[0].revents & POLLIN) && waitpid(birth->pid, &status, WNOHANG) > 0)
			rc = explain_end(ctl, birth, status);
	}
	close(pidfd);
	return rc;
}

static int give_birth(const struct opcontrol *ctl, struct birth *birth)
{
	birth->pid = fork();
	if (!birth->pid)
		become_daemon(birth);
	return birth->pid < 0 ? opr_error(1, "cannot start a process: %s", strerror(errno)) : await_ready(ctl, birth);
}

static int start_process(const struct opcontrol *ctl)
{
	struct birth birth = { .notify_fd = -1, .log_fd = -1 };
	int rc = find_program(&birth.program);

	if (!rc)
		rc = name_config(ctl, &birth);
	if (!rc)
		rc = open_notify(&birth);
	if (!rc)
		rc = open_log(ctl, &birth);
	if (!rc) {
		if (ctl->verbose)
			printf("Starting %s %s\n", birth.program, birth.config ? birth.config : "");
		rc = give_birth(ctl, &birth);
	}
	if (birth.notify_fd >= 0)
		close(birth.notify_fd);
	if (birth.log_fd >= 0)
		close(birth.log_fd);
	free(birth.program);
	free(birth.config);
	return rc;
}

int ctl_spawn_daemon(const struct opcontrol *ctl)
{
	return ctl_is_systemds(ctl) ? ctl_start_unit(ctl) : start_process(ctl);
}
