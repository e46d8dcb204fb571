/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/parse.h"
#include "tools/report_log.h"

#define DEFAULT_COLUMNS 80
#define MAX_COLUMNS     10000
#define DEFAULT_PAGER   "less"

static size_t count_columns(int fd)
{
	const char *said = getenv("COLUMNS");
	struct winsize size = { 0 };
	uint64_t columns;

	if (said && !op_parse_u64(said, 1, MAX_COLUMNS, &columns))
		return (size_t)columns;
	return !ioctl(fd, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : DEFAULT_COLUMNS;
}

static bool shows_colours(void)
{
	const char *term = getenv("TERM"), *refused = getenv("NO_COLOR");

	return term && strcmp(term, "dumb") && !(refused && *refused);
}

/* ---- the pager ---- */

static bool is_in_path(const char *program)
{
	const char *path = getenv("PATH");
	char *copy = strdup(path ? path : ""), *rest = copy;
	bool found = false;

	for (char *dir; rest && !found && (dir = strsep(&rest, ":"));) {
		char *file = NULL;

		if (asprintf(&file, "%s/%s", *dir ? dir : ".", program) >= 0)
			found = !access(file, X_OK);
		free(file);
	}
	free(copy);
	return found;
}

/* The command of the pager; NULL: none is wanted, or there is none. */
static const char *choose_pager(void)
{
	const char *pager = getenv("PAGER");

	if (pager)
		return *pager && strcmp(pager, "cat") ? pager : NULL;
	return is_in_path(DEFAULT_PAGER) ? DEFAULT_PAGER : NULL;
}

static void run_pager(const char *command, int read_fd)
{
	if (dup2(read_fd, STDIN_FILENO) < 0)
		_exit(127);
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	signal(SIGPIPE, SIG_DFL);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

static int start_pager(struct opr_output *output, const char *command)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	fflush(stderr);
	pid = fork();
	if (!pid)
		run_pager(command, fds[0]);
	close(fds[0]);
	output->out = pid < 0 ? NULL : fdopen(fds[1], "w");
	if (!output->out) {
		int err = -errno;

		close(fds[1]);
		return err;
	}
	output->pager = pid;
	signal(SIGPIPE, SIG_IGN);
	return 0;
}

/* ---- open and close ---- */

static int open_terminal(struct opr_output *output, bool no_pager)
{
	const char *command = no_pager ? NULL : choose_pager();
	int err = 0;

	output->nr_columns = count_columns(STDOUT_FILENO);
	output->colour = shows_colours();
	if (command)
		err = start_pager(output, command);
	return err < 0 ? opr_error(err, "pager %s: %s", command, strerror(-err)) : 0;
}

int opr_output_open(struct opr_output *output, const char *file, bool no_pager, const char *colour)
{
	int err = 0;

	*output = (struct opr_output){ .out = stdout, .file = file };
	if (file) {
		output->out = fopen(file, "we");
		if (!output->out)
			return opr_error(-errno, "%s: %s", file, strerror(errno));
	} else if (isatty(STDOUT_FILENO)) {
		err = open_terminal(output, no_pager);
	}
	if (strcmp(colour, "auto"))
		output->colour = !strcmp(colour, "always");
	return err;
}

static void wait_for_pager(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
}

int opr_output_close(struct opr_output *output)
{
	const char *name = output->file ? output->file : "standard output";
	bool failed = ferror(output->out), left = false;
	int err;

	errno = 0;
	failed |= fflush(output->out) == EOF;
	err = errno;
	if (output->out != stdout)
		failed |= fclose(output->out) == EOF;
	if (output->pager) {
		wait_for_pager(output->pager);
		left = !err || err == EPIPE;
	}
	return failed && !left ? opr_error(-EIO, "%s: %s", name, strerror(err ? err : EIO)) : 0;
}
