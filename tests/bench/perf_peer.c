/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/perf_peer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"

#define SETTLE_SECONDS 2
#define SAMPLE_BYTES   40 /* at least, of perf's */
#define NR_ROUNDS      4

static void become_perf(uint64_t period_ns, size_t ring_bytes, const char *output, int error_fd)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	char period[32], pages[32];

	snprintf(period, sizeof(period), "%llu", (unsigned long long)period_ns);
	snprintf(pages, sizeof(pages), "%zu", ring_bytes / (size_t)sysconf(_SC_PAGESIZE));
	dup2(null_fd, STDIN_FILENO);
	dup2(null_fd, STDOUT_FILENO);
	dup2(null_fd, STDERR_FILENO);
	execlp("perf", "perf", "record", "-a", "-B", "-e", "cpu-clock", "-c", period, "-m", pages, "-o", output, (char *)NULL);
	/* The parent reads what went wrong; when exec succeeds it reads the end of the pipe. */
	if (write(error_fd, &errno, sizeof(errno)) < 0)
		_exit(126);
	_exit(127);
}

static int start_perf(uint64_t period_ns, size_t ring_bytes, const char *output, pid_t *ret_pid)
{
	int pipe_fds[2], err = 0;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (!pid)
		become_perf(period_ns, ring_bytes, output, pipe_fds[1]);
	close(pipe_fds[1]);
	if (pid > 0 && read(pipe_fds[0], &err, sizeof(err)) == sizeof(err))
		waitpid(pid, NULL, 0);
	close(pipe_fds[0]);
	if (pid < 0 || err)
		return pid < 0 ? -EAGAIN : -err;
	*ret_pid = pid;
	return 0;
}

/* CPU time of all threads of a process, as the scheduler counts it. */
static uint64_t process_cpu_ns(pid_t pid)
{
	unsigned long long total = 0, ns;
	struct dirent *task;
	char path[300];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && (task = readdir(tasks))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid, task->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fscanf(file, "%llu", &ns) == 1)
			total += ns;
		fclose(file);
	}
	if (tasks)
		closedir(tasks);
	return total;
}

/* perf is woken when a ring is half full. */
static unsigned int seconds_needed(uint64_t period_ns, size_t ring_bytes)
{
	return (unsigned int)(NR_ROUNDS * (ring_bytes / 2 / SAMPLE_BYTES) * period_ns / BENCH_NS_PER_S + 1);
}

int perf_peer_ns_per_sample(uint64_t period_ns, unsigned int nr_cpus, size_t ring_bytes, unsigned int seconds, double *ret_ns)
{
	char output[] = "/tmp/opd-bench.XXXXXX";
	int fd = mkstemp(output), err, status;
	uint64_t begin_ns, begin_cpu_ns, cpu_ns;
	pid_t pid = 0;
	double nr;

	if (fd < 0)
		return -errno;
	close(fd);
	err = start_perf(period_ns, ring_bytes, output, &pid);
	if (err)
		goto out;
	sleep(SETTLE_SECONDS);
	begin_ns = bench_now_ns();
	begin_cpu_ns = process_cpu_ns(pid);
	sleep((unsigned int)op_max_u64(seconds, seconds_needed(period_ns, ring_bytes)));
	nr = (double)(bench_now_ns() - begin_ns) * nr_cpus / (double)period_ns;
	cpu_ns = process_cpu_ns(pid);
	kill(pid, SIGINT);
	waitpid(pid, &status, 0);
	if (cpu_ns > begin_cpu_ns)
		*ret_ns = (double)(cpu_ns - begin_cpu_ns) / nr;
	else
		err = -ECHILD; /* it ended before its time */
out:
	unlink(output);
	return err;
}
