/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "libop/base/text.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/common/progress.h"

#define DEFAULT_PAGER "less"
#define STDOUT_BYTES  65536

#define STANDARD_OUTPUT "-" /* as the name of a file */
#define LEADS_NOWHERE   "%s: a symbolic link that leads nowhere"

/* ---- standard output ---- */

static bool is_told;
static int exit_failed; /* 0: exit(3) does not flush yet */

int opr_stdout_flush(void)
{
	bool failed = ferror(stdout);

	errno = 0;
	failed |= fflush(stdout) == EOF;
	if (!failed)
		return 0;
	if (!is_told)
		opr_error(-EIO, "cannot write to the standard output: %s", strerror(errno ? errno : EIO));
	is_told = true;
	return -EIO;
}

/* A tool that has told the user chooses its exit status itself. */
static void check_at_exit(void)
{
	if (!is_told && opr_stdout_flush())
		_exit(exit_failed);
}

int opr_stdout_guard(int failed)
{
	if (!exit_failed && atexit(check_at_exit))
		return opr_no_memory();
	exit_failed = failed;
	return 0;
}

static bool is_dumb(void)
{
	const char *term = getenv("TERM");

	return !term || !*term || !strcmp(term, "dumb");
}

static bool shows_colours(void)
{
	const char *refused = getenv("NO_COLOR");

	return !is_dumb() && !(refused && *refused);
}

/* ---- the pager ---- */

/* The command of the pager; NULL: the user wants none. */
static const char *choose_pager(void)
{
	const char *pager = getenv("PAGER");

	if (is_dumb())
		return NULL;
	if (!pager)
		return DEFAULT_PAGER;
	return *pager && strcmp(pager, "cat") ? pager : NULL;
}

/*
 * Text is kept until it is longer than the screen; then the pager starts, and gets it through a
 * pipe. sh(1) runs the pager, and reports only at its end that there is none. So the text is kept
 * while the pipe can hold all of it; if the pager cannot be run, the text goes to the terminal.
 */
struct opr_pager {
	const char *command;
	bool is_started;
	pid_t pid;
	int fd; /* -1: the pager has ended, or has not started */
	struct op_text kept;
	size_t nr_written, capacity;
	size_t nr_rows, nr_columns; /* of the screen */
	size_t row, column;         /* of the end of the text */
	bool in_escape;             /* the text ends within a colour */
	int status;
	bool on_terminal;
};

/* Counts the rows that the text takes on the screen. */
static void count_rows(struct opr_pager *pager, const char *bytes, size_t nr_bytes)
{
	for (size_t i = 0; i < nr_bytes; i++) {
		/* within a character of UTF-8 */
		bool is_continued = ((unsigned char)bytes[i] & 0xc0) == 0x80;

		if (bytes[i] == '\033') {
			pager->in_escape = true;
		} else if (pager->in_escape) {
			pager->in_escape = bytes[i] != 'm';
		} else if (bytes[i] == '\n') {
			pager->row++;
			pager->column = 0;
		} else if (bytes[i] == '\t') {
			pager->column += 8 - pager->column % 8;
		} else if (!is_continued) {
			pager->row += pager->column && !(pager->column % pager->nr_columns);
			pager->column++;
		}
	}
}

static void run_pager(const char *command, int read_fd)
{
	if (dup2(read_fd, STDIN_FILENO) < 0)
		_exit(127);
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	if (!strcmp(command, DEFAULT_PAGER))
		/* sh(1) would complain where it is not installed */
		execlp(command, command, (char *)NULL);
	else
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

/* sh(1) ends with these codes when it cannot run a command. */
static bool could_not_run(int status)
{
	return WIFEXITED(status) && (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127);
}

/* Waits for its end. 0: the report is on the terminal instead. */
static int end_pager(struct opr_pager *pager)
{
	close(pager->fd);
	pager->fd = -1;
	while (waitpid(pager->pid, &pager->status, 0) < 0 && errno == EINTR)
		;
	if (!could_not_run(pager->status) || pager->nr_written > pager->capacity || pager->kept.failed)
		return -EPIPE;
	if (strcmp(pager->command, DEFAULT_PAGER) != 0)
		opr_warn("the pager '%s' cannot be run: the report is shown without one", pager->command);
	pager->on_terminal = true;
	return op_sys_write_all(STDOUT_FILENO, op_text_get(&pager->kept), pager->kept.length);
}

static int feed_started(struct opr_pager *pager, const char *bytes, size_t nr_bytes)
{
	int err;

	if (pager->fd < 0)
		return -EPIPE;
	if (pager->nr_written <= pager->capacity)
		op_text_add_bytes(&pager->kept, bytes, nr_bytes);
	err = op_sys_write_all(pager->fd, bytes, nr_bytes);
	if (err == -EPIPE)
		return end_pager(pager);
	pager->nr_written += nr_bytes;
	if (pager->nr_written > pager->capacity)
		op_text_free(&pager->kept);
	return err;
}

/* Without a process or a pipe the text goes to the terminal. */
static void start_pager(struct opr_pager *pager)
{
	int fds[2], size;

	pager->is_started = true;
	pager->on_terminal = pipe2(fds, O_CLOEXEC) < 0;
	if (pager->on_terminal)
		return;
	size = fcntl(fds[1], F_GETPIPE_SZ);
	pager->capacity = size > 0 ? (size_t)size : 0;
	fflush(stderr);
	pager->pid = fork();
	if (!pager->pid)
		run_pager(pager->command, fds[0]);
	close(fds[0]);
	pager->fd = fds[1];
	if (pager->pid > 0) {
		signal(SIGPIPE, SIG_IGN);
		return;
	}
	close(fds[1]);
	pager->fd = -1;
	pager->on_terminal = true;
}

/* Hands over what was kept until the pager started. */
static int feed_kept(struct opr_pager *pager)
{
	struct op_text kept = pager->kept;
	int err;

	pager->kept = (struct op_text){ 0 };
	if (pager->on_terminal)
		err = op_sys_write_all(STDOUT_FILENO, op_text_get(&kept), kept.length);
	else
		err = feed_started(pager, op_text_get(&kept), kept.length);
	op_text_free(&kept);
	return err;
}

static int feed_pager(struct opr_pager *pager, const char *bytes, size_t nr_bytes)
{
	if (pager->on_terminal)
		return op_sys_write_all(STDOUT_FILENO, bytes, nr_bytes);
	if (pager->is_started)
		return feed_started(pager, bytes, nr_bytes);
	op_text_add_bytes(&pager->kept, bytes, nr_bytes);
	if (pager->kept.failed)
		return -ENOMEM;
	count_rows(pager, bytes, nr_bytes);
	if (pager->row < pager->nr_rows)
		return 0;
	start_pager(pager);
	return feed_kept(pager);
}

/* For fopencookie(3): 0 is an error. */
static ssize_t write_bytes(void *cookie, const char *bytes, size_t nr_bytes)
{
	int err = feed_pager(cookie, bytes, nr_bytes);

	if (!err)
		return (ssize_t)nr_bytes;
	errno = -err;
	return 0;
}

static int close_pager(void *cookie)
{
	struct opr_pager *pager = cookie;
	int err = pager->fd < 0 ? 0 : end_pager(pager);

	if (!pager->is_started) {
		pager->on_terminal = true;
		err = feed_kept(pager);
	}
	if (!err || err == -EPIPE)
		return 0;
	errno = -err;
	return EOF;
}

static int open_pager(struct opr_output *output, const char *command)
{
	const cookie_io_functions_t functions = { .write = write_bytes, .close = close_pager };
	struct opr_pager *pager = calloc(1, sizeof(*pager));

	if (!pager)
		return -ENOMEM;
	*pager = (struct opr_pager){ .command = command,
				     .fd = -1,
				     .nr_rows = opr_count_rows(STDOUT_FILENO),
				     .nr_columns = output->nr_columns };
	output->pager = pager;
	output->out = fopencookie(pager, "w", functions);
	return output->out ? 0 : -ENOMEM;
}

/* 0, also when the user left it early. */
static int check_pager(const struct opr_pager *pager)
{
	if (pager->on_terminal || !pager->status)
		return 0;
	if (WIFSIGNALED(pager->status))
		return opr_error(-EIO, "the pager '%s' was ended by signal %d", pager->command, WTERMSIG(pager->status));
	return opr_error(-EIO, "the pager '%s' ended with %d", pager->command, WEXITSTATUS(pager->status));
}

static void free_pager(struct opr_output *output)
{
	if (output->pager)
		op_text_free(&output->pager->kept);
	free(output->pager);
	output->pager = NULL;
}

/* ---- open and close ---- */

static int open_terminal(struct opr_output *output, bool no_pager)
{
	const char *command = no_pager ? NULL : choose_pager();
	int err = 0;

	output->nr_columns = opr_count_columns(STDOUT_FILENO);
	output->colour = shows_colours();
	if (command)
		err = open_pager(output, command);
	if (err < 0)
		free_pager(output);
	return err < 0 ? opr_error(err, "pager %s: %s", command, strerror(-err)) : 0;
}

/* Long reports need fewer write(2) with a larger buffer. */
static void widen_stdout(void)
{
	static char buffer[STDOUT_BYTES];
	static bool is_wide;

	if (!is_wide)
		setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	is_wide = true;
}

static bool is_regular(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

int opr_output_open(struct opr_output *output, const char *file, bool no_pager, const char *colour)
{
	int err = 0;

	*output = (struct opr_output){ .out = stdout, .file = file, .dir_fd = -1 };
	if (!file && !is_regular(STDOUT_FILENO))
		opr_progress_stop(); /* who reads it may be on the same terminal */
	if (file) {
		output->out = fopen(file, "we");
		if (!output->out)
			return opr_error(-errno, "%s: %s", file, strerror(errno));
	} else if (isatty(STDOUT_FILENO)) {
		err = open_terminal(output, no_pager);
	} else {
		widen_stdout();
	}
	if (strcmp(colour, "auto"))
		output->colour = !strcmp(colour, "always");
	return err;
}

/* ---- a file in the place of another ---- */

static bool is_standard_output(const struct stat *st)
{
	struct stat out;

	return !fstat(STDOUT_FILENO, &out) && out.st_dev == st->st_dev && out.st_ino == st->st_ino;
}

/* Opens nothing but the path: what is checked through the descriptor is what is used. */
static int open_path(const char *file, struct stat *ret_st)
{
	int fd = op_sys_openat(AT_FDCWD, file, O_PATH | O_CLOEXEC, 0), err = fd < 0 ? fd : op_sys_fstat(fd, ret_st);

	if (fd >= 0 && err)
		close(fd);
	return err ? err : fd;
}

/* Opens a file again that is open with O_PATH. */
static int open_again(int path_fd, int flags)
{
	char same[sizeof("/proc/self/fd/") + 10];

	snprintf(same, sizeof(same), "/proc/self/fd/%d", path_fd);
	return op_sys_openat(AT_FDCWD, same, flags | O_CLOEXEC, 0);
}

/* 0: the file may be replaced. path_fd: opened with O_PATH. */
static int check_replaced(const char *file, int path_fd, const struct stat *st, bool (*is_own)(int fd), const char *what)
{
	int fd = st->st_size ? open_again(path_fd, O_RDONLY | O_NONBLOCK) : -1;
	bool may_be = !st->st_size;

	if (st->st_size && fd < 0)
		return opr_error(fd, "%s: %s", file, strerror(-fd));
	if (fd >= 0) {
		may_be = is_own(fd);
		close(fd);
	}
	return may_be ? 0 : opr_error(-EEXIST, "%s: not replaced, because it is not a %s", file, what);
}

/* 0: a file can be made in the directory of `path`; `file` is how the user calls it. */
static int check_directory_of(const char *path, const char *file)
{
	char *copy = path ? strdup(path) : NULL;
	int err = !copy ? -ENOMEM : access(dirname(copy), W_OK | X_OK) < 0 ? -errno : 0;

	free(copy);
	return err ? opr_error(err, "%s: %s", file, strerror(-err)) : 0;
}

static int check_existing(const char *file, int path_fd, const struct stat *st, bool (*is_own)(int fd), const char *what)
{
	char *target;
	int err;

	if (S_ISDIR(st->st_mode))
		return opr_error(-EISDIR, "%s: %s", file, strerror(EISDIR));
	if (!is_own || !S_ISREG(st->st_mode) || is_standard_output(st))
		return access(file, W_OK) < 0 ? opr_error(-errno, "%s: %s", file, strerror(errno)) : 0;
	err = check_replaced(file, path_fd, st, is_own, what);
	if (err)
		return err;
	target = realpath(file, NULL);
	err = check_directory_of(target, file);
	free(target);
	return err;
}

int opr_output_check(const char *file, bool (*is_own)(int fd), const char *what)
{
	struct stat st;
	int path_fd, err;

	if (is_own && !strcmp(file, STANDARD_OUTPUT))
		return 0;
	path_fd = open_path(file, &st);
	if (path_fd >= 0) {
		err = check_existing(file, path_fd, &st, is_own, what);
		close(path_fd);
		return err;
	}
	if (lstat(file, &st) < 0)
		return check_directory_of(file, file);
	return is_own ? opr_error(-ENOENT, LEADS_NOWHERE, file) : 0;
}

/* The mode of the file that is replaced, else that of a new file. */
static mode_t mode_of(const struct opr_output *output, const struct stat *st)
{
	mode_t mask = umask(0);

	umask(mask);
	return output->replaces ? st->st_mode & 0777 : 0666 & ~mask;
}

/* Whether the name in the directory leads to the file that was checked. */
static bool is_checked(const struct opr_output *output, const char *name)
{
	struct stat st;

	return !fstatat(output->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) && st.st_dev == output->device &&
	       st.st_ino == output->inode;
}

/*
 * Finds the directory of a path, and the name in it. Both stay: who may change links on the way
 * there leads the report nowhere else.
 */
static int find_target(struct opr_output *output, const char *path)
{
	char *dir = strdup(path), *name = strdup(path);
	int err = !dir || !name ? -ENOMEM : *path && path[strlen(path) - 1] == '/' ? -ENOTDIR : 0;

	if (!err)
		err = output->dir_fd = op_sys_openat(AT_FDCWD, dirname(dir), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	output->target = err < 0 ? NULL : strdup(basename(name));
	free(dir);
	free(name);
	return err < 0 ? err : output->target ? 0 : -ENOMEM;
}

/* Where the file is that was checked, behind all links. */
static int find_checked(struct opr_output *output, int path_fd)
{
	char same[sizeof("/proc/self/fd/") + 10], path[PATH_MAX];
	ssize_t length;
	int err;

	snprintf(same, sizeof(same), "/proc/self/fd/%d", path_fd);
	length = op_sys_readlinkat(AT_FDCWD, same, path, sizeof(path) - 1);
	if (length < 0)
		return (int)length;
	path[length] = '\0';
	err = find_target(output, path);
	return err ? err : is_checked(output, output->target) ? 0 : -ESTALE;
}

static int open_beside(struct opr_output *output, const struct stat *st)
{
	char path[sizeof("/proc/self/fd//.opd-XXXXXX") + 10];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/.opd-XXXXXX", output->dir_fd);
	fd = mkostemp(path, O_CLOEXEC);
	err = fd < 0 ? -errno : 0;
	output->temporary = err ? NULL : strdup(strrchr(path, '/') + 1);
	if (fd >= 0 && (!output->temporary || fchmod(fd, mode_of(output, st)) < 0))
		err = -errno;
	output->out = err ? NULL : fdopen(fd, "w");
	if (output->out)
		return 0;
	if (!err)
		err = -errno;
	if (fd >= 0) {
		close(fd);
		unlink(path);
	}
	return err;
}

/* For no regular file, and for the file that standard output is. */
static int open_at_once(struct opr_output *output, int path_fd, bool is_stdout)
{
	int fd = is_stdout ? op_sys_fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : open_again(path_fd, O_WRONLY | O_NOCTTY);

	errno = fd < 0 ? -fd : 0;
	output->out = fd < 0 ? NULL : fdopen(fd, "w");
	if (output->out)
		return 0;
	if (fd >= 0)
		close(fd);
	return opr_error(-errno, "%s: %s", output->file, strerror(errno));
}

static void forget_target(struct opr_output *output)
{
	if (output->dir_fd >= 0)
		close(output->dir_fd);
	free(output->temporary);
	free(output->target);
	output->temporary = output->target = NULL;
	output->dir_fd = -1;
}

/* path_fd: of the file that is replaced; negative: there is none. */
static int begin_replacing(struct opr_output *output, int path_fd, const struct stat *st)
{
	int err = output->replaces ? find_checked(output, path_fd) : find_target(output, output->file);

	if (!err)
		err = open_beside(output, st);
	if (!err)
		return 0;
	forget_target(output);
	return opr_error(err, "%s: %s", output->file, strerror(-err));
}

int opr_output_replace(struct opr_output *output, const char *file, bool (*is_own)(int fd), const char *what)
{
	struct stat st = { 0 }, link;
	int path_fd, err;

	if (!strcmp(file, STANDARD_OUTPUT))
		return opr_output_open(output, NULL, true, "never");
	path_fd = open_path(file, &st);
	*output = (struct opr_output){
		.file = file, .replaces = path_fd >= 0, .dir_fd = -1, .device = st.st_dev, .inode = st.st_ino
	};
	if (!output->replaces && !lstat(file, &link))
		return opr_error(-ENOENT, LEADS_NOWHERE, file);
	if (output->replaces && (!S_ISREG(st.st_mode) || is_standard_output(&st))) {
		err = open_at_once(output, path_fd, S_ISREG(st.st_mode));
	} else {
		err = output->replaces ? check_replaced(file, path_fd, &st, is_own, what) : 0;
		if (!err)
			err = begin_replacing(output, path_fd, &st);
	}
	if (path_fd >= 0)
		close(path_fd);
	return err;
}

/*
 * Exchanges the two files and looks at what was there. Another file than the one that was checked
 * goes back to its place.
 */
static int exchange(const struct opr_output *output)
{
	int dir_fd = output->dir_fd, err = op_sys_rename_exchange(dir_fd, output->temporary, dir_fd, output->target);

	if (err == -ENOENT)
		return op_sys_rename_new(dir_fd, output->temporary, dir_fd, output->target);
	if (err == -EINVAL || err == -ENOSYS)
		return is_checked(output, output->target) ?
			       op_sys_renameat(dir_fd, output->temporary, dir_fd, output->target) :
			       -EEXIST;
	if (err)
		return err;
	if (is_checked(output, output->temporary))
		return op_sys_unlinkat(dir_fd, output->temporary, 0);
	err = op_sys_renameat(dir_fd, output->temporary, dir_fd, output->target);
	return err ? err : -EEXIST;
}

/* Does not replace a file that was made meanwhile, if the file system supports that. */
static int put_in_place(const struct opr_output *output)
{
	if (output->replaces)
		return exchange(output);
	return op_sys_rename_new(output->dir_fd, output->temporary, output->dir_fd, output->target);
}

static int end_replacing(struct opr_output *output, int err)
{
	if (!output->temporary)
		return err;
	if (!err) {
		err = put_in_place(output);
		if (err)
			opr_error(err, "%s: %s", output->file, strerror(-err));
	}
	if (err)
		op_sys_unlinkat(output->dir_fd, output->temporary, 0);
	forget_target(output);
	return err;
}

/* ---- the end ---- */

void opr_output_drop(struct opr_output *output)
{
	if (output->out != stdout)
		fclose(output->out);
	end_replacing(output, -ECANCELED);
	free_pager(output);
}

int opr_output_close(struct opr_output *output)
{
	const char *name = output->file ? output->file : "standard output";
	bool failed = ferror(output->out), left = false;
	int err;

	opr_progress_end();
	if (output->out == stdout)
		return opr_stdout_flush();
	errno = 0;
	failed |= fflush(output->out) == EOF;
	err = errno;
	if (fclose(output->out) == EOF) {
		failed = true;
		err = err ? err : errno;
	}
	if (output->pager) {
		left = !err || err == EPIPE;
		if (left && check_pager(output->pager) < 0) {
			free_pager(output);
			return -EIO;
		}
		free_pager(output);
	}
	if (failed && !left)
		return end_replacing(output, opr_error(-EIO, "%s: %s", name, strerror(err ? err : EIO)));
	return end_replacing(output, 0);
}
