/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/base/sys.h"
#include "tools/common/progress.h"

#define STATM_BYTES   256
#define STAT_BYTES    4096
#define POLL_MS_MAX   20
#define PROGRESS_MS   200
#define KILL_MS       100 /* for a killed child to end */

static const struct op_stop *program_stop;

/* Sanitizers map terabytes, so there is no limit of memory with them. */
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

/* The parent's handlers mean nothing here. */
static void reset_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; program_stop && i < op_array_size(numbers); i++)
		signal(numbers[i], SIG_DFL);
}

static void run_child(int fd, opr_child_fn *work, void *arg, pid_t parent)
{
	FILE *out = fdopen(fd, "w");
	int err = out ? 0 : -errno;

	reset_signals();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	signal(SIGXFSZ, SIG_DFL);
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
	int fd = op_sys_memfd_create("opd-child", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	pid_t parent = getpid(), pid;

	if (fd < 0)
		return fd;
	fflush(NULL); /* else the child writes what is in the parent's buffers */
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

static int copy_output(int fd, void *map, size_t nr_bytes)
{
	size_t nr_read = 0;
	int err = op_file_read_at(fd, map, nr_bytes, 0, &nr_read);

	return !err && nr_read < nr_bytes ? -EIO : err;
}

/*
 * Maps the output with a NUL behind it, and seals it first: a hostile file may have made the child
 * leave a process behind that still has it. If such a process has it mapped, sealing fails, and the
 * parent takes a copy.
 */
static int map_output(int fd, struct opr_child_result *result)
{
	struct stat st;
	void *map = NULL;
	bool is_sealed;
	int err = op_sys_fstat(fd, &st);

	if (!err)
		err = op_sys_ftruncate(fd, st.st_size + 1);
	if (err)
		return err;
	is_sealed = op_sys_fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) >= 0;
	err = op_sys_mmap(NULL, (size_t)st.st_size + 1, is_sealed ? PROT_READ : PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | (is_sealed ? MAP_POPULATE : MAP_ANONYMOUS), is_sealed ? fd : -1, 0, &map);
	if (!err && !is_sealed)
		err = copy_output(fd, map, (size_t)st.st_size);
	if (err && map)
		munmap(map, (size_t)st.st_size + 1);
	if (err)
		return err;
	result->bytes = map;
	result->nr_bytes = (size_t)st.st_size;
	return 0;
}

/* True when the child was stopped. Without pidfds it cannot be, and no progress is shown. */
static bool wait_or_kill(const struct opr_child *child)
{
	bool shows = !program_stop && opr_progress_is_on();
	int fd = program_stop || shows ? op_sys_pidfd_open(child->pid) : -1;
	struct pollfd end = { .fd = fd, .events = POLLIN };
	bool is_stopped = program_stop && fd >= 0 && op_stop_wait(program_stop, fd);

	while (shows && fd >= 0 && !poll(&end, 1, PROGRESS_MS))
		opr_progress_tick();

	if (is_stopped)
		kill(child->pid, SIGKILL);
	if (fd >= 0)
		close(fd);
	return is_stopped;
}

static int take_output(struct opr_child *child, int child_err, struct opr_child_result *ret_result)
{
	struct opr_child_result result = { .err = child_err };
	int err = map_output(child->fd, &result);

	close(child->fd);
	if (!err)
		*ret_result = result;
	return err;
}

int opr_child_wait(struct opr_child *child, struct opr_child_result *ret_result)
{
	int status = 0;
	bool is_stopped = wait_or_kill(child);

	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	return take_output(child, is_stopped ? -EINTR : error_of(status), ret_result);
}

/* ---- a child that may hang ---- */

void opr_child_let_go(int fd, int other_fd)
{
	unsigned int low = (unsigned int)(fd < other_fd ? fd : other_fd), high = (unsigned int)(fd < other_fd ? other_fd : fd);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
		if (null < 0 || dup2(null, i) < 0)
			close(i);
	if (fd < 0 || other_fd < 0)
		low = high;
	if (low > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, low - 1, 0);
	if (high > low + 1)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0u, 0);
}

/* Whether a process runs or waits for a CPU: then the machine is busy, and it does not hang. */
static bool is_running(pid_t pid)
{
	char path[sizeof("/proc//stat") + 3 * sizeof(pid)], *text = NULL, *bracket;
	bool runs;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (op_file_read(AT_FDCWD, path, STAT_BYTES, &text) < 0)
		return false;
	bracket = strrchr(text, ')');
	runs = bracket && !strncmp(bracket, ") R", 3);
	free(text);
	return runs;
}

/* True with its status when the child ends in that time, without a break in its beats. */
static bool ends_in_time(const struct opr_child *child, const uint64_t *beats, uint64_t patience_ms, uint64_t budget_ms,
			 int *ret_status)
{
	uint64_t begin = op_now_ns(), last = begin, now = begin, seen = op_load_relaxed(beats);

	for (uint64_t wait_ms = 1; !op_stop_is_set(program_stop); wait_ms = op_min_u64(2 * wait_ms, POLL_MS_MAX)) {
		pid_t ended = waitpid(child->pid, ret_status, WNOHANG);

		if (ended == child->pid)
			return true;
		now = op_now_ns();
		if (op_load_relaxed(beats) != seen || is_running(child->pid)) {
			seen = op_load_relaxed(beats);
			last = now;
		}
		if (now - begin >= budget_ms * OP_NS_PER_MS || now - last >= patience_ms * OP_NS_PER_MS)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = (long)(wait_ms * OP_NS_PER_MS) }, NULL);
	}
	return false;
}

int opr_child_wait_awake(struct opr_child *child, const uint64_t *beats, uint64_t patience_ms, uint64_t *budget_ms,
			 struct opr_child_result *ret_result)
{
	uint64_t begin = op_now_ns(), spent_ms;
	int status = 0, err = 0;

	if (ends_in_time(child, beats, patience_ms, *budget_ms, &status)) {
		err = error_of(status);
	} else {
		err = op_stop_is_set(program_stop) ? -EINTR : -ETIME;
		kill(child->pid, SIGKILL);
		for (int i = 0; i < KILL_MS && waitpid(child->pid, &status, WNOHANG) != child->pid; i++)
			nanosleep(&(struct timespec){ .tv_nsec = OP_NS_PER_MS }, NULL);
	}
	spent_ms = (op_now_ns() - begin) / OP_NS_PER_MS;
	*budget_ms -= op_min_u64(spent_ms, *budget_ms);
	return take_output(child, err, ret_result);
}

void opr_child_result_free(struct opr_child_result *result)
{
	if (result->bytes)
		munmap((void *)(uintptr_t)result->bytes, result->nr_bytes + 1);
	result->bytes = NULL;
	result->nr_bytes = 0;
}

const char *opr_child_reason(int err)
{
	switch (err) {
	case -ETIME:
		return "it takes too much time";
	case -ENOMEM:
		return "it takes too much memory";
	case -EFAULT:
		return "it is damaged, and libbfd or libdw crashed on it";
	case -ESTALE:
		return "another file has taken its place since its symbols were read";
	default:
		return strerror(-err);
	}
}
