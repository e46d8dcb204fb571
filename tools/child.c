/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/file.h"
#include "libop/sys.h"

#define STATM_BYTES 256

static const struct op_stop *program_stop;

/* Sanitizers map terabytes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool limits_memory = false;
#else
static const bool limits_memory = true;
#endif

/* ---- the child's side ---- */

static void limit(int resource, rlim_t value)
{
	struct rlimit old;

	if (!getrlimit((__rlimit_resource_t)resource, &old) && (old.rlim_max == RLIM_INFINITY || old.rlim_max > value))
		setrlimit((__rlimit_resource_t)resource, &(struct rlimit){ value, value });
}

static rlim_t address_space(void)
{
	unsigned long long pages = 0;
	char *text = NULL;

	if (!op_file_read(AT_FDCWD, "/proc/self/statm", STATM_BYTES, &text))
		pages = strtoull(text, NULL, 10);
	free(text);
	return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

void opr_child_begin_step(void)
{
	const struct itimerval cpu = { .it_value.tv_sec = OPR_CHILD_CPU_SECONDS };
	const struct itimerval wall = { .it_value.tv_sec = OPR_CHILD_WALL_SECONDS };

	setitimer(ITIMER_PROF, &cpu, NULL);
	setitimer(ITIMER_REAL, &wall, NULL);
}

/* The handlers are the parent's. */
static void take_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; program_stop && i < op_array_size(numbers); i++)
		signal(numbers[i], SIG_DFL);
}

static void run_child(int fd, opr_child_fn *work, void *arg, pid_t parent)
{
	FILE *out = fdopen(fd, "w");
	int err = out ? 0 : -errno;

	take_signals();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, OPR_CHILD_OUTPUT_BYTES);
	if (limits_memory)
		limit(RLIMIT_AS, address_space() + OPR_CHILD_MEMORY_BYTES);
	opr_child_begin_step();
	if (!err)
		err = work(out, arg);
	if (!err && fflush(out) == EOF)
		err = -EIO;
	_exit(err ? -err & 0xff : 0);
}

/* ---- the parent's side ---- */

void opr_child_stop_with(const struct op_stop *stop)
{
	program_stop = stop;
}

int opr_child_start(struct opr_child *child, opr_child_fn *work, void *arg)
{
	int fd = op_sys_memfd_create("opd-child", MFD_CLOEXEC);
	pid_t parent = getpid(), pid;

	if (fd < 0)
		return fd;
	fflush(NULL); /* what waits to be written is not the child's */
	pid = fork();
	if (!pid)
		run_child(fd, work, arg, parent);
	if (pid < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	*child = (struct opr_child){ pid, fd };
	return 0;
}

static int error_of(int status)
{
	if (WIFEXITED(status))
		return -WEXITSTATUS(status);
	switch (WTERMSIG(status)) {
	case SIGPROF:
	case SIGALRM:
	case SIGXCPU:
		return -ETIME;
	case SIGXFSZ:
	case SIGKILL:
		return -ENOMEM;
	default:
		return -EFAULT;
	}
}

static int read_output(int fd, struct opr_child_result *result)
{
	struct stat st;
	ssize_t got;
	int err = op_sys_fstat(fd, &st);

	if (err)
		return err;
	result->bytes = malloc((size_t)st.st_size + 1);
	if (!result->bytes)
		return -ENOMEM;
	for (; result->nr_bytes < (size_t)st.st_size; result->nr_bytes += (size_t)got) {
		got = op_sys_pread(fd, result->bytes + result->nr_bytes, (size_t)st.st_size - result->nr_bytes,
				   (off_t)result->nr_bytes);
		if (got <= 0) {
			free(result->bytes);
			return got < 0 ? (int)got : -EIO;
		}
	}
	result->bytes[result->nr_bytes] = '\0';
	return 0;
}

/* True when it was stopped; without pidfds it is waited for. */
static bool wait_or_kill(const struct opr_child *child)
{
	int fd = program_stop ? op_sys_pidfd_open(child->pid) : -1;
	bool is_stopped = fd >= 0 && op_stop_wait(program_stop, fd);

	if (is_stopped)
		kill(child->pid, SIGKILL);
	if (fd >= 0)
		close(fd);
	return is_stopped;
}

int opr_child_wait(struct opr_child *child, struct opr_child_result *ret_result)
{
	struct opr_child_result result = { 0 };
	int status = 0, err;
	bool is_stopped = wait_or_kill(child);

	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	result.err = is_stopped ? -EINTR : error_of(status);
	err = read_output(child->fd, &result);
	close(child->fd);
	if (!err)
		*ret_result = result;
	return err;
}

const char *opr_child_reason(int err)
{
	switch (err) {
	case -ETIME:
		return "it takes too much time";
	case -ENOMEM:
		return "it takes too much memory";
	case -EFAULT:
		return "it is damaged, and libbfd crashed on it";
	default:
		return strerror(-err);
	}
}
