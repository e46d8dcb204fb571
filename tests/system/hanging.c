/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An unprivileged user against a profiler. Each of NR processes mounts a file system of its own
 * (FUSE), and an overlay of it at /tmp, in a user and mount namespace of its own. Then it runs code
 * without a file. Who looks for /tmp/perf-PID.map there waits for the answer: SECONDS, or for ever
 * when that is 0.
 *
 *   hanging NODE DIR NR SECONDS [FILE]
 *
 * NODE is /dev/fuse, or another node of the device that the user may open. DIR has directories
 * "point" and "empty". FILE, in /tmp, is mapped as code before the mount hides it; whoever looks
 * for it by its path waits, if its name begins with "perf-"; such a process sleeps. Prints "runs
 * PID" for each process, and "asked PID" at the first question that it keeps waiting. Ends at the
 * end of its standard input. Exit code 77: not possible here.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOBODY        65534
#define REQUEST_BYTES 65536
#define WAITED_NAME   "perf-"
#define RUN_US        2000
#define REST_NS       400000000

static unsigned int seconds;

static void say(const char *what, int pid)
{
	char line[64];
	int nr = snprintf(line, sizeof(line), "%s %d\n", what, pid);

	if (write(STDOUT_FILENO, line, (size_t)nr) != nr)
		_exit(1);
}

static void cannot(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	_exit(77);
}

/* ---- the server ---- */

static void reply(int fd, const struct fuse_in_header *in, int error, const void *body, size_t nr_bytes)
{
	char bytes[REQUEST_BYTES];
	struct fuse_out_header out = { .len = (uint32_t)(sizeof(out) + nr_bytes), .error = error, .unique = in->unique };

	memcpy(bytes, &out, sizeof(out));
	if (nr_bytes)
		memcpy(bytes + sizeof(out), body, nr_bytes);
	if (write(fd, bytes, out.len) < 0 && errno != ENOENT && errno != ENODEV)
		_exit(1);
}

static void answer(int fd, const struct fuse_in_header *in, int pid)
{
	static bool has_said;
	const struct fuse_init_out init = { .major = 7, .minor = 31, .max_write = 4096, .max_background = 16 };
	const struct fuse_attr_out attributes = { .attr = { .ino = FUSE_ROOT_ID, .mode = S_IFDIR | 0755, .nlink = 2 } };
	const struct fuse_open_out opened = { 0 };
	const struct fuse_statfs_out space = { .st = { .bsize = 4096, .namelen = 255 } };

	switch (in->opcode) {
	case FUSE_INIT:
		reply(fd, in, 0, &init, sizeof(init));
		break;
	case FUSE_GETATTR:
		reply(fd, in, 0, &attributes, sizeof(attributes));
		break;
	case FUSE_OPENDIR:
		reply(fd, in, 0, &opened, sizeof(opened));
		break;
	case FUSE_STATFS:
		reply(fd, in, 0, &space, sizeof(space));
		break;
	case FUSE_READDIR:
	case FUSE_RELEASEDIR:
		reply(fd, in, 0, NULL, 0);
		break;
	case FUSE_LOOKUP:
		if (!strncmp((const char *)(in + 1), WAITED_NAME, strlen(WAITED_NAME))) {
			if (!has_said)
				say("asked", pid);
			has_said = true;
			if (!seconds)
				break;
			sleep(seconds);
		}
		reply(fd, in, -ENOENT, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(fd, in, -ENOSYS, NULL, 0);
	}
}

static void serve(int fd, int pid)
{
	static union {
		struct fuse_in_header head;
		char bytes[REQUEST_BYTES];
	} request;

	while (read(fd, &request, sizeof(request)) > 0 || errno == EINTR || errno == EAGAIN)
		answer(fd, &request.head, pid);
	_exit(0);
}

/* ---- the process ---- */

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		cannot(path);
	close(fd);
}

static void leave_host(void)
{
	uid_t uid = geteuid() ? geteuid() : NOBODY;
	gid_t gid = geteuid() ? getegid() : NOBODY;
	char map[64];

	if (!geteuid() && (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0))
		cannot("cannot become another user");
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		cannot("unshare");
	put("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	put("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	put("/proc/self/gid_map", map);
}

/* So that many of them leave CPU time to others: the wait for a file system is what hurts. */
static void rest(int number)
{
	const struct timespec pause = { .tv_nsec = REST_NS };

	(void)number;
	nanosleep(&pause, NULL);
}

/* Code without a file that runs for ever, but rests after each RUN_US of CPU time. */
static void run_code(void)
{
	const struct itimerval each = { .it_interval = { .tv_usec = RUN_US }, .it_value = { .tv_usec = RUN_US } };
#if defined(__x86_64__) || defined(__i386__)
	static const unsigned char loop[] = { 0xeb, 0xfe };
#elif defined(__aarch64__)
	static const unsigned char loop[] = { 0x00, 0x00, 0x00, 0x14 };
#else
	static const unsigned char loop[] = { 0 };
	cannot("no code for this machine");
#endif
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*code)(void);

	if (memory == MAP_FAILED)
		cannot("mmap");
	memcpy(memory, loop, sizeof(loop));
	memcpy(&code, &memory, sizeof(code));
	if (signal(SIGPROF, rest) == SIG_ERR || setitimer(ITIMER_PROF, &each, NULL) < 0)
		cannot("no timer");
	say("runs", getpid());
	code();
}

static void map_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		cannot(path);
	close(fd);
}

static void be_one(const char *node, const char *directory, const char *mapped)
{
	char point[512], options[1024];
	int pid = getpid(), fd;
	pid_t server;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	leave_host();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = open(node, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		cannot(node);
	server = fork();
	if (!server) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read(fd, options, 0) < 0 && errno == EPERM) /* not mounted yet */
			usleep(1000);
		serve(fd, pid);
	}
	snprintf(point, sizeof(point), "%s/point", directory);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("opd-test", point, "fuse", 0, options) < 0)
		cannot("cannot mount fuse");
	close(fd);
	if (mapped)
		map_file(mapped);
	snprintf(options, sizeof(options), "userxattr,lowerdir=%s/point:%s/empty", directory, directory);
	if (mount("opd-test", "/tmp", "overlay", 0, options) < 0)
		cannot("cannot mount overlay");
	if (nice(10) < 0)
		cannot("nice");
	if (!mapped)
		run_code();
	say("runs", getpid());
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	char c;
	int status = 0;

	if (argc != 5 && argc != 6)
		return 2;
	seconds = (unsigned int)strtoul(argv[4], NULL, 10);
	for (unsigned long i = 0; i < strtoul(argv[3], NULL, 10); i++) {
		pid_t pid = fork();

		if (!pid) {
			be_one(argv[1], argv[2], argv[5]);
			_exit(1);
		}
	}
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	while (waitpid(-1, &status, WNOHANG) > 0)
		if (WIFEXITED(status) && WEXITSTATUS(status))
			return WEXITSTATUS(status);
	return 0;
}
