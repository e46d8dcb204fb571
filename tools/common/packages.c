/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/packages.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/text.h"

#define DPKG_QUERY      "/usr/bin/dpkg-query"
#define PATHS_AT_A_TIME 256
#define WILDCARDS       "*?[\\\n"
#define USR             "/usr"

/* Packages whose debug files are not in NAME-dbgsym. */
static const struct {
	const char *prefix;
	const char *suffix;
} exceptions[] = {
	{ "libc6", "-dbg" },
	{ "linux-image-", "-dbg" },
};

char *opr_packages_parse(char *line, const char **ret_path)
{
	char *colon = strstr(line, ": /");
	size_t length = strcspn(line, ":, ");
	const char *suffix = "-dbgsym";
	struct op_text name = { 0 };

	if (!colon || !length || !strncmp(line, "diversion ", 10))
		return NULL;
	*ret_path = colon + 2;
	line[length] = '\0';
	for (size_t i = 0; i < op_array_size(exceptions); i++)
		if (!strncmp(line, exceptions[i].prefix, strlen(exceptions[i].prefix)))
			suffix = exceptions[i].suffix;
	op_text_printf(&name, "%s%s", line, suffix);
	return op_text_steal(&name);
}

static bool can_be_asked(const char *path)
{
	return path && *path == '/' && !strpbrk(path, WILDCARDS);
}

/* On a system with merged /usr, dpkg may know a file without /usr. */
static const char *other_name(const char *path)
{
	return !strncmp(path, USR "/", sizeof(USR)) ? path + strlen(USR) : NULL;
}

static int take_line(char *line, const char *const *paths, size_t nr_paths, char **packages)
{
	const char *path;
	char *package;
	int err = 0;

	line[strcspn(line, "\n")] = '\0';
	package = opr_packages_parse(line, &path);
	for (size_t i = 0; package && i < nr_paths && !err; i++) {
		const char *other = can_be_asked(paths[i]) ? other_name(paths[i]) : NULL;

		if (packages[i] || !paths[i] || (strcmp(paths[i], path) != 0 && (!other || strcmp(other, path) != 0)))
			continue;
		packages[i] = strdup(package);
		err = packages[i] ? 0 : -ENOMEM;
	}
	free(package);
	return err;
}

static int read_answer(FILE *answer, const char *const *paths, size_t nr_paths, char **packages)
{
	char *line = NULL;
	size_t capacity = 0;
	int err = 0;

	while (!err && getline(&line, &capacity, answer) > 0)
		err = take_line(line, paths, nr_paths, packages);
	free(line);
	return err;
}

/* Starts dpkg-query with its output to a pipe and without its stderr. 0 or -errno. */
static int start(char **arguments, int pipe_fds[2], pid_t *ret_pid)
{
	static char locale[] = "LC_ALL=C";
	char *const environment[] = { locale, NULL };
	posix_spawn_file_actions_t actions;
	int err = posix_spawn_file_actions_init(&actions);

	if (err)
		return -err;
	err = posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (!err)
		err = posix_spawn(ret_pid, DPKG_QUERY, &actions, NULL, arguments, environment);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

static int ask(char **arguments, const char *const *paths, size_t nr_paths, char **packages)
{
	int pipe_fds[2], err;
	FILE *answer;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return 0;
	err = start(arguments, pipe_fds, &pid);
	close(pipe_fds[1]);
	answer = fdopen(pipe_fds[0], "re");
	if (!answer)
		close(pipe_fds[0]);
	if (err) {
		if (answer)
			fclose(answer);
		return 0;
	}
	err = answer ? read_answer(answer, paths, nr_paths, packages) : -ENOMEM;
	if (answer)
		fclose(answer);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return err;
}

static int ask_some(const char *const *paths, size_t nr_paths, char **packages)
{
	static char command[] = "dpkg-query", option[] = "-S", end[] = "--";
	char *arguments[2 * PATHS_AT_A_TIME + 4] = { command, option, end };
	size_t nr_arguments = 3;

	for (size_t i = 0; i < nr_paths; i++) {
		const char *other = can_be_asked(paths[i]) ? other_name(paths[i]) : NULL;

		if (can_be_asked(paths[i]))
			arguments[nr_arguments++] = (char *)(uintptr_t)paths[i];
		if (other)
			arguments[nr_arguments++] = (char *)(uintptr_t)other;
	}
	return nr_arguments > 3 ? ask(arguments, paths, nr_paths, packages) : 0;
}

int opr_packages_find(const char *const *paths, size_t nr_paths, char **ret_packages)
{
	int err = 0;

	for (size_t i = 0; i < nr_paths; i++)
		ret_packages[i] = NULL;
	if (access(DPKG_QUERY, X_OK) < 0)
		return 0;
	for (size_t i = 0; i < nr_paths && !err; i += PATHS_AT_A_TIME)
		err = ask_some(paths + i, op_min_u64(nr_paths - i, PATHS_AT_A_TIME), ret_packages + i);
	return err;
}
