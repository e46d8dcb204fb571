/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/process/nursery.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "libop/process/pass.h"

#define SOCKET_FD    OP_HELPER_SOCKET_FD
#define SPARE        UINT32_MAX /* the kind of a nursery */
#define GIVE_UP_NS   (5u * (uint64_t)OP_NS_PER_S) /* an order without an answer */
#define RESTART_NS   ((uint64_t)OP_NS_PER_S)
#define OOM_PATH     "/proc/self/oom_score_adj"
#define OOM_FIRST    "1000"

/* What a nursery is told. */
struct order {
	uint32_t kind;
};

/* What it answers, with a socket when pid is positive. */
struct started {
	uint32_t kind;
	int32_t pid; /* or -errno */
};

struct process {
	int fd; /* -1: there is none */
	pid_t pid;
};

/* A helper that was ordered. */
struct ordered {
	bool is_ordered, has_answer;
	struct process process; /* or an error in its pid */
};

struct op_nursery {
	struct process now, spare;
	bool is_spare_ordered;
	struct ordered kinds[OP_NURSERY_KINDS_MAX];
	uint64_t asked_ns;   /* the first order that has no answer; 0: all have one */
	uint64_t restart_ns; /* no process is started in the place of another one before */
	uint64_t nr_ended;
	pid_t unreaped; /* ended, or will */
	pid_t (*last_resort)(int fd);
};

/* ---- in the nursery ---- */

static void keep_no_descriptors(int fd)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int standard = 0; standard < SOCKET_FD; standard++)
		if (null_fd < 0 || dup2(null_fd, standard) < 0)
			close(standard);
	if (fd != SOCKET_FD && dup2(fd, SOCKET_FD) < 0)
		_exit(1);
	closefrom(SOCKET_FD + 1);
}

/* The file belongs to root while the process cannot be dumped. */
static void end_before_others(void)
{
	int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), fd;

	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	fd = op_sys_openat(AT_FDCWD, OOM_PATH, O_WRONLY | O_CLOEXEC, 0);
	if (fd >= 0)
		(void)!op_sys_write_all(fd, OOM_FIRST, strlen(OOM_FIRST));
	if (fd >= 0)
		close(fd);
	prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0);
}

/* True in the process that was started; its socket is `ends[1]`. */
static bool fork_one(uint32_t kind, int type, int ends[2])
{
	int err = socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) < 0 ? -errno : 0;
	struct started started = { .kind = kind, .pid = err };
	struct iovec part = { &started, sizeof(started) };

	if (!err) {
		started.pid = fork();
		if (!started.pid)
			return true;
	}
	if (started.pid < 0)
		started.pid = -EAGAIN;
	if (op_pass_send(SOCKET_FD, &part, 1, started.pid > 0 ? ends[0] : -1, 0) < 0)
		_exit(1);
	if (!err) {
		close(ends[0]);
		close(ends[1]);
	}
	return false;
}

static void be_helper(const struct op_helper_kind *kind, int fd)
{
	if (dup2(fd, SOCKET_FD) == SOCKET_FD) {
		closefrom(SOCKET_FD + 1);
		prctl(PR_SET_NAME, kind->name);
		op_helper_serve(kind);
	}
	_exit(0);
}

/* Signals to the whole group or service are for the program. It ends when the program does. */
_Noreturn void op_nursery_serve(const struct op_helper_kind *kinds, size_t nr_kinds)
{
	static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD };
	struct order order;
	sigset_t none;
	int ends[2];

	for (size_t i = 0; i < op_array_size(ignored); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	keep_no_descriptors(SOCKET_FD);
	if (chdir("/") < 0)
		_exit(1);
	prctl(PR_SET_NAME, OP_NURSERY_NAME);
	end_before_others();
	while (op_sys_read(SOCKET_FD, &order, sizeof(order)) == sizeof(order)) {
		if (order.kind == SPARE && fork_one(SPARE, SOCK_SEQPACKET, ends)) {
			keep_no_descriptors(ends[1]); /* the spare goes on here */
		} else if (order.kind < nr_kinds) {
			if (fork_one(order.kind, SOCK_STREAM, ends))
				be_helper(&kinds[order.kind], ends[1]);
		} else if (order.kind != SPARE) {
			break;
		}
	}
	_exit(0);
}

/* ---- in the program ---- */

static int send_order(struct op_nursery *nursery, uint32_t kind)
{
	struct order order = { .kind = kind };
	struct iovec part = { &order, sizeof(order) };
	ssize_t nr = op_pass_send(nursery->now.fd, &part, 1, -1, MSG_DONTWAIT);

	if (nr < 0)
		return (int)nr;
	if (!nursery->asked_ns)
		nursery->asked_ns = op_now_ns();
	return 0;
}

static void order_spare(struct op_nursery *nursery)
{
	if (nursery->now.fd >= 0 && nursery->spare.fd < 0 && !nursery->is_spare_ordered)
		nursery->is_spare_ordered = !send_order(nursery, SPARE);
}

static bool awaits_answer(const struct op_nursery *nursery)
{
	for (size_t i = 0; i < OP_NURSERY_KINDS_MAX; i++)
		if (nursery->kinds[i].is_ordered)
			return true;
	return nursery->is_spare_ordered;
}

/* 0: there was an answer; -EAGAIN: none yet; -EPIPE: the nursery has ended. */
static int receive_started(struct op_nursery *nursery)
{
	struct started started;
	struct ordered *ordered;
	struct pollfd poll_fd = { .fd = nursery->now.fd, .events = POLLIN };
	int fd = -1;

	if (poll(&poll_fd, 1, 0) <= 0)
		return -EAGAIN;
	if (op_pass_receive(nursery->now.fd, &started, sizeof(started), &fd) != sizeof(started))
		return -EPIPE;
	if (started.pid > 0 && fd < 0)
		started.pid = -EMFILE;
	if (started.kind == SPARE) {
		nursery->spare = (struct process){ .fd = fd, .pid = started.pid };
		nursery->is_spare_ordered = false;
	} else if (started.kind < OP_NURSERY_KINDS_MAX) {
		ordered = &nursery->kinds[started.kind];
		*ordered = (struct ordered){ .has_answer = true, .process = { fd, started.pid } };
	}
	nursery->asked_ns = awaits_answer(nursery) ? op_now_ns() : 0;
	return 0;
}

/* A process that this program has not forked is another one's to reap. */
static void reap(struct op_nursery *nursery)
{
	if (nursery->unreaped && waitpid(nursery->unreaped, NULL, WNOHANG))
		nursery->unreaped = 0;
}

/* It ends at once, or when it is thawed. */
static void give_up(struct op_nursery *nursery, struct process *process)
{
	nursery->nr_ended++;
	close(process->fd);
	kill(process->pid, SIGKILL);
	reap(nursery);
	nursery->unreaped = process->pid;
	reap(nursery);
	process->fd = -1;
}

static void lose_nursery(struct op_nursery *nursery)
{
	give_up(nursery, &nursery->now);
	for (size_t i = 0; i < OP_NURSERY_KINDS_MAX; i++)
		nursery->kinds[i].is_ordered = false;
	nursery->is_spare_ordered = false;
	nursery->asked_ns = 0;
}

static bool has_ended(const struct process *process)
{
	char byte;

	return process->fd >= 0 && !recv(process->fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
}

/* A nursery that is not blocked only waits for a CPU. */
static bool is_silent(const struct op_nursery *nursery)
{
	return nursery->asked_ns && op_now_ns() - nursery->asked_ns > GIVE_UP_NS && op_process_state(nursery->now.pid) != 'R';
}

static void start_last_resort(struct op_nursery *nursery)
{
	int ends[2];
	pid_t pid;

	if (!nursery->last_resort || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return;
	pid = nursery->last_resort(ends[1]);
	close(ends[1]);
	if (pid > 0)
		nursery->now = (struct process){ ends[0], pid };
	else
		close(ends[0]);
}

void op_nursery_watch(struct op_nursery *nursery)
{
	uint64_t now_ns = op_now_ns();
	int err = 0;

	reap(nursery);
	while (nursery->now.fd >= 0 && !err)
		err = receive_started(nursery);
	if (nursery->now.fd >= 0 && (err == -EPIPE || is_silent(nursery)))
		lose_nursery(nursery);
	if (has_ended(&nursery->spare))
		give_up(nursery, &nursery->spare);
	if ((nursery->now.fd >= 0 && (nursery->spare.fd >= 0 || nursery->is_spare_ordered)) || now_ns < nursery->restart_ns)
		return;
	nursery->restart_ns = now_ns + RESTART_NS;
	if (nursery->now.fd < 0 && nursery->spare.fd >= 0) {
		nursery->now = nursery->spare;
		nursery->spare.fd = -1;
	} else if (nursery->now.fd < 0) {
		start_last_resort(nursery);
	}
	order_spare(nursery);
}

int op_nursery_start(const struct op_helper_kind *kinds, size_t nr_kinds, struct op_nursery **ret_nursery)
{
	struct op_nursery *nursery = calloc(1, sizeof(*nursery));
	int ends[2];
	pid_t pid;

	if (!nursery)
		return -ENOMEM;
	if (nr_kinds > OP_NURSERY_KINDS_MAX || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
		free(nursery);
		return nr_kinds > OP_NURSERY_KINDS_MAX ? -EINVAL : -errno;
	}
	pid = fork();
	if (!pid) {
		keep_no_descriptors(ends[1]);
		op_nursery_serve(kinds, nr_kinds);
	}
	close(ends[1]);
	if (pid < 0) {
		int err = -errno;

		close(ends[0]);
		free(nursery);
		return err;
	}
	nursery->now = (struct process){ ends[0], pid };
	nursery->spare.fd = -1;
	order_spare(nursery);
	*ret_nursery = nursery;
	return 0;
}

void op_nursery_set_last_resort(struct op_nursery *nursery, pid_t (*start)(int fd))
{
	nursery->last_resort = start;
}

uint64_t op_nursery_nr_ended(const struct op_nursery *nursery)
{
	return nursery->nr_ended;
}

/* Nobody waits for one that is frozen. Else it makes no call that could hang, and ends at once. */
void op_nursery_stop(struct op_nursery *nursery)
{
	if (!nursery)
		return;
	op_nursery_watch(nursery);
	for (size_t i = 0; i < OP_NURSERY_KINDS_MAX; i++)
		if (nursery->kinds[i].has_answer && nursery->kinds[i].process.fd >= 0)
			close(nursery->kinds[i].process.fd);
	for (int i = 0; i < 2; i++) {
		struct process *process = i ? &nursery->spare : &nursery->now;
		struct pollfd end = { .fd = process->fd };

		if (process->fd < 0)
			continue;
		kill(process->pid, SIGKILL);
		if (poll(&end, 1, (int)(RESTART_NS / OP_NS_PER_MS)) > 0)
			waitpid(process->pid, NULL, 0);
		close(process->fd);
	}
	free(nursery);
}

/* Waits for the answer to an order that was just sent. */
static int await_started(struct op_nursery *nursery, const struct ordered *ordered, uint64_t wait_ns)
{
	struct timespec wait = { .tv_sec = (time_t)(wait_ns / OP_NS_PER_S), .tv_nsec = (long)(wait_ns % OP_NS_PER_S) };
	int err = 0;

	for (unsigned int i = 0; wait_ns && i < OP_HELPER_PATIENCE && !ordered->has_answer && err != -EPIPE; i++) {
		struct pollfd poll_fd = { .fd = nursery->now.fd, .events = POLLIN };

		if (ppoll(&poll_fd, 1, &wait, NULL) == 0 && op_process_state(nursery->now.pid) != 'R')
			break;
		do
			err = receive_started(nursery);
		while (!err && !ordered->has_answer);
	}
	return ordered->has_answer ? 0 : err == -EPIPE ? err : -EAGAIN;
}

int op_helper_start(struct op_nursery *nursery, size_t kind, uint64_t wait_ns, struct op_helper **ret_helper)
{
	struct ordered *ordered = &nursery->kinds[kind];
	struct op_helper *helper;
	struct process started;
	int err = 0;

	op_nursery_watch(nursery);
	if (nursery->now.fd < 0)
		return -EPIPE;
	if (!ordered->has_answer && ordered->is_ordered)
		return -EAGAIN;
	if (!ordered->has_answer) {
		err = send_order(nursery, (uint32_t)kind);
		ordered->is_ordered = !err;
		if (!err)
			err = await_started(nursery, ordered, wait_ns);
	}
	if (err)
		return err;
	started = ordered->process;
	*ordered = (struct ordered){ 0 };
	if (started.pid < 0)
		return started.pid;
	helper = op_helper_new(started.fd, started.pid);
	if (!helper) {
		close(started.fd);
		return -ENOMEM;
	}
	*ret_helper = helper;
	return 0;
}
