/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "libop/base/text.h"
#include "tools/common/log.h"

static bool ignores_file_size;

void opr_workload_note_signals(void)
{
	struct sigaction action;

	ignores_file_size = !sigaction(SIGXFSZ, NULL, &action) && action.sa_handler == SIG_IGN;
}

/* ---- before anything is changed ---- */

static int check_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || access(path, X_OK) < 0)
		return -EACCES;
	return 0;
}

/*
 * As a shell looks for it, which passes over directories that it may not read. 0 and *ret_path,
 * freed by the caller; or -errno.
 */
static int look_for(const char *name, char **ret_path)
{
	const char *path = getenv("PATH");
	char *copy = strdup(path ? path : "/bin:/usr/bin"), *rest = copy;
	int found = -ENOENT;

	if (strchr(name, '/') || !*name) {
		free(copy);
		*ret_path = strdup(name);
		return *name ? check_file(name) : -ENOENT;
	}
	for (const char *dir; copy && found && (dir = strsep(&rest, ":"));) {
		struct op_text file = { 0 };
		int err;

		op_text_printf(&file, "%s/%s", *dir ? dir : ".", name);
		err = file.failed || access(op_text_get(&file), F_OK) < 0 ? -ENOENT : check_file(op_text_get(&file));
		if (!err)
			*ret_path = op_text_steal(&file);
		op_text_free(&file);
		if (err != -ENOENT)
			found = err;
	}
	free(copy);
	return copy ? found : -ENOMEM;
}

static int refuse(struct opr_workload *command, const char *name, int err)
{
	command->exit_code = err == -ENOENT || err == -ENOTDIR ? OPR_NOT_FOUND : OPR_CANNOT_RUN;
	command->ended = true;
	return opr_error(err, "%s: %s", name, err == -ENOENT ? "no such command" : strerror(-err));
}

static _Noreturn void become(const struct opr_words *words, int go_fd, int error_fd)
{
	char **arguments = calloc(words->nr_words + 1, sizeof(*arguments)), byte;
	int err = ENOMEM;

	for (size_t i = 0; arguments && i < words->nr_words; i++)
		arguments[i] = words->words[i];
	if (!ignores_file_size)
		signal(SIGXFSZ, SIG_DFL);
	if (op_sys_read(go_fd, &byte, 1) != 1)
		_exit(EXIT_FAILURE);
	if (arguments) {
		execvp(arguments[0], arguments);
		err = errno;
	}
	(void)!write(error_fd, &err, sizeof(err));
	_exit(err == ENOENT ? OPR_NOT_FOUND : OPR_CANNOT_RUN);
}

int opr_workload_start(struct opr_workload *command, const struct opr_words *words)
{
	int go[2], error[2], err;

	*command = (struct opr_workload){ .go_fd = -1, .error_fd = -1 };
	err = look_for(words->words[0], &command->path);
	if (err)
		return refuse(command, words->words[0], err);
	if (pipe2(go, O_CLOEXEC) < 0)
		return opr_error(-errno, "cannot make a pipe: %s", strerror(errno));
	if (pipe2(error, O_CLOEXEC) < 0) {
		err = opr_error(-errno, "cannot make a pipe: %s", strerror(errno));
		close(go[0]);
		close(go[1]);
		return err;
	}
	command->pid = fork();
	if (!command->pid) {
		close(go[1]);
		become(words, go[0], error[1]);
	}
	if (command->pid < 0)
		err = opr_error(-errno, "cannot start a process: %s", strerror(errno));
	command->pid = err ? 0 : command->pid;
	close(go[0]);
	close(error[1]);
	command->go_fd = go[1];
	command->error_fd = error[0];
	return err;
}

int opr_workload_go(struct opr_workload *command, const char *name)
{
	int exec_errno;
	ssize_t nr;

	if (op_sys_write(command->go_fd, "", 1) != 1)
		return opr_error(-EPIPE, "%s: the process that was to run it has ended", name);
	close(command->go_fd);
	command->go_fd = -1;
	nr = op_sys_read(command->error_fd, &exec_errno, sizeof(exec_errno));
	if (nr != sizeof(exec_errno))
		return 0;
	waitpid(command->pid, NULL, 0);
	return refuse(command, name, -exec_errno);
}

void opr_workload_check(struct opr_workload *command)
{
	int status;

	if (!command->pid || command->ended || waitpid(command->pid, &status, WNOHANG) != command->pid)
		return;
	command->ended = true;
	command->exit_code = WIFSIGNALED(status) ? OPR_BY_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

void opr_workload_pass(const struct opr_workload *command, const struct signalfd_siginfo *info)
{
	if (command->pid && !command->ended && info->ssi_code != SI_KERNEL)
		kill(command->pid, (int)info->ssi_signo);
}

void opr_workload_end(struct opr_workload *command)
{
	if (command->go_fd >= 0)
		close(command->go_fd);
	if (command->error_fd >= 0)
		close(command->error_fd);
	command->go_fd = command->error_fd = -1;
	if (command->pid && !command->ended)
		waitpid(command->pid, NULL, 0);
	command->pid = 0;
	free(command->path);
	command->path = NULL;
}
