/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/base/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"

/* in the nursery and in a helper: the only descriptor above the first three */
#define SOCKET_FD          3
#define PARTS_MAX          8
#define QUESTION_MAX_BYTES (1u << 20)
#define ANSWER_MAX_BYTES   (16u << 20)
#define START_NS           ((uint64_t)OP_NS_PER_S) /* a fork takes less, also on a busy machine */
#define CHUNK_BYTES        65536u
#define PATIENCE           10u /* times that a helper which is not blocked gets the time again */

struct op_nursery {
	int fd;
	pid_t pid;
	uint32_t serial; /* of the last order */
};

/* What the nursery is told. */
struct order {
	uint32_t serial, kind;
};

/* Goes ahead of a question, with its length, and of an answer. */
struct header {
	uint32_t nr_bytes;
	int32_t result;
	uint64_t slept_ns; /* how long the answer took, when the helper slept; else 0 */
};

/* What the nursery answers, with a socket when pid is positive. */
struct started {
	uint32_t serial; /* of the order */
	int32_t pid;     /* or -errno */
};

struct op_helper {
	int fd;
	pid_t pid;
	bool is_waiting; /* a question has no answer yet */
	/* of the answer that is being received */
	struct header header;
	size_t header_bytes; /* received so far */
	struct op_text body;
};

/* ---- descriptors ---- */

static ssize_t send_parts(int socket_fd, struct iovec *parts, size_t nr_parts, int fd, int flags)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = nr_parts };
	ssize_t nr;

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	do
		nr = sendmsg(socket_fd, &message, flags | MSG_NOSIGNAL);
	while (nr < 0 && errno == EINTR);
	return nr < 0 ? -errno : nr;
}

/* *ret_fd: a descriptor that came along, else unchanged. */
static ssize_t receive(int socket_fd, void *bytes, size_t nr_bytes, int *ret_fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { bytes, nr_bytes };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	const struct cmsghdr *head;
	ssize_t nr;

	do
		nr = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
	while (nr < 0 && errno == EINTR);
	if (nr < 0)
		return -errno;
	head = CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(int))) {
		if (*ret_fd >= 0)
			close(*ret_fd);
		memcpy(ret_fd, CMSG_DATA(head), sizeof(*ret_fd));
	}
	return nr;
}

/* ---- the helper ---- */

/* 0, or -EPIPE at the end. */
static int receive_all(void *bytes, size_t nr_bytes, int *ret_fd)
{
	while (nr_bytes) {
		ssize_t nr = receive(SOCKET_FD, bytes, nr_bytes, ret_fd);

		if (nr <= 0)
			return -EPIPE;
		bytes = (char *)bytes + nr;
		nr_bytes -= (size_t)nr;
	}
	return 0;
}

/* A helper that only waits for a CPU does not sleep. */
static long nr_sleeps(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) < 0 ? 0 : usage.ru_nvcsw;
}

static int send_answer(int result, uint64_t slept_ns, const struct op_text *text)
{
	struct header header = { .nr_bytes = (uint32_t)text->length, .result = result, .slept_ns = slept_ns };
	struct iovec parts[] = { { &header, sizeof(header) }, { text->data, text->length } };
	size_t sent;
	ssize_t nr;

	if (text->failed || text->length > ANSWER_MAX_BYTES) {
		header = (struct header){ .result = text->failed ? -ENOMEM : -EFBIG, .slept_ns = slept_ns };
		parts[1].iov_len = 0;
	}
	/* Mostly one call sends all, and the other side wakes up once. */
	nr = send_parts(SOCKET_FD, parts, op_array_size(parts), -1, 0);
	if (nr < (ssize_t)sizeof(header))
		return -EPIPE;
	sent = (size_t)nr - sizeof(header);
	return sent < header.nr_bytes ? op_sys_write_all(SOCKET_FD, text->data + sent, header.nr_bytes - sent) : 0;
}

/* Answers questions until the program closes its end. */
static void serve(const struct op_helper_kind *kind)
{
	struct op_text answer = { 0 };
	struct header header;
	char *question = NULL;
	int fd = -1;

	if (kind->begin && kind->begin() < 0)
		return;
	while (!receive_all(&header, sizeof(header), &fd) && header.nr_bytes <= QUESTION_MAX_BYTES) {
		uint64_t begin_ns;
		long sleeps;
		int result;

		free(question);
		question = malloc(header.nr_bytes + 1);
		if (!question || receive_all(question, header.nr_bytes, &fd) < 0)
			break;
		question[header.nr_bytes] = '\0';
		begin_ns = op_now_ns();
		sleeps = nr_sleeps();
		result = kind->answer(question, header.nr_bytes, fd, &answer);
		if (send_answer(result, nr_sleeps() > sleeps ? op_now_ns() - begin_ns : 0, &answer) < 0)
			break;
		if (fd >= 0)
			close(fd);
		fd = -1;
		op_text_free(&answer);
	}
}

/* ---- the nursery ---- */

/* Does not return in the helper. */
static void start_one(const struct op_helper_kind *kind, uint32_t serial)
{
	int ends[2], err = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0 ? -errno : 0;
	struct started started = { .serial = serial, .pid = err };
	struct iovec part = { &started, sizeof(started) };

	if (!err)
		started.pid = fork();
	if (!err && !started.pid) {
		if (dup2(ends[1], SOCKET_FD) == SOCKET_FD) {
			closefrom(SOCKET_FD + 1);
			prctl(PR_SET_NAME, kind->name);
			serve(kind);
		}
		_exit(0);
	}
	if (started.pid < 0)
		started.pid = -EAGAIN;
	if (send_parts(SOCKET_FD, &part, 1, started.pid > 0 ? ends[0] : -1, 0) < 0)
		_exit(1);
	if (!err) {
		close(ends[0]);
		close(ends[1]);
	}
}

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

/*
 * Signals to the whole group or service are for the program. The nursery ends when the program
 * does.
 */
static void run_nursery(int fd, const struct op_helper_kind *kinds, size_t nr_kinds)
{
	static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD };
	struct order order;
	sigset_t none;

	for (size_t i = 0; i < op_array_size(ignored); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	keep_no_descriptors(fd);
	if (chdir("/") < 0)
		_exit(1);
	prctl(PR_SET_NAME, "opd-nursery");
	while (op_sys_read(SOCKET_FD, &order, sizeof(order)) == sizeof(order) && order.kind < nr_kinds)
		start_one(&kinds[order.kind], order.serial);
	_exit(0);
}

/* ---- the program ---- */

int op_nursery_start(const struct op_helper_kind *kinds, size_t nr_kinds, struct op_nursery **ret_nursery)
{
	struct op_nursery *nursery = malloc(sizeof(*nursery));
	int ends[2];
	pid_t pid;

	if (!nursery)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
		free(nursery);
		return -errno;
	}
	pid = fork();
	if (!pid)
		run_nursery(ends[1], kinds, nr_kinds);
	close(ends[1]);
	if (pid < 0) {
		int err = -errno;

		close(ends[0]);
		free(nursery);
		return err;
	}
	nursery->fd = ends[0];
	nursery->pid = pid;
	*ret_nursery = nursery;
	return 0;
}

/* It makes no call that could hang, so it ends at once. */
void op_nursery_stop(struct op_nursery *nursery)
{
	if (!nursery)
		return;
	close(nursery->fd);
	kill(nursery->pid, SIGKILL);
	while (waitpid(nursery->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	free(nursery);
}

/* 0, or -ETIMEDOUT. until_ns: OP_CLOCK. */
static int wait_until(int fd, uint64_t until_ns)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	uint64_t now_ns = op_now_ns(), left_ns = until_ns - op_min_u64(until_ns, now_ns);
	struct timespec left = { .tv_sec = (time_t)(left_ns / OP_NS_PER_S), .tv_nsec = (long)(left_ns % OP_NS_PER_S) };

	return ppoll(&poll_fd, 1, &left, NULL) > 0 || op_now_ns() < until_ns ? 0 : -ETIMEDOUT;
}

/* The answer to an earlier order may come first, when that had been given up. */
static int receive_started(struct op_nursery *nursery, struct started *ret_started, int *ret_fd)
{
	uint64_t until_ns = op_now_ns() + START_NS;
	int err;

	do {
		err = wait_until(nursery->fd, until_ns);
		if (!err && receive(nursery->fd, ret_started, sizeof(*ret_started), ret_fd) != sizeof(*ret_started))
			err = -EPIPE;
	} while (!err && ret_started->serial != nursery->serial);
	return err;
}

int op_helper_start(struct op_nursery *nursery, size_t kind, struct op_helper **ret_helper)
{
	struct op_helper *helper = calloc(1, sizeof(*helper));
	struct order order = { .serial = ++nursery->serial, .kind = (uint32_t)kind };
	struct iovec part = { &order, sizeof(order) };
	struct started started = { 0 };
	ssize_t nr = helper ? send_parts(nursery->fd, &part, 1, -1, MSG_DONTWAIT) : -ENOMEM;
	int fd = -1, err = nr < 0 ? (int)nr : receive_started(nursery, &started, &fd);

	if (!err && (started.pid < 0 || fd < 0))
		err = started.pid < 0 ? started.pid : -EMFILE;
	if (err) {
		if (fd >= 0)
			close(fd);
		free(helper);
		return err;
	}
	helper->fd = fd;
	helper->pid = started.pid;
	*ret_helper = helper;
	return 0;
}

static void forget_answer(struct op_helper *helper)
{
	op_text_free(&helper->body);
	helper->header_bytes = 0;
	helper->is_waiting = false;
}

/* Receives what is there. 0: the answer is complete; -EAGAIN: not yet; -EPIPE. */
static int receive_some(struct op_helper *helper)
{
	char chunk[CHUNK_BYTES];
	ssize_t nr;

	for (;;) {
		bool in_header = helper->header_bytes < sizeof(helper->header);
		size_t wanted = in_header ? sizeof(helper->header) - helper->header_bytes
					  : helper->header.nr_bytes - helper->body.length;

		if (!wanted)
			return 0;
		nr = recv(helper->fd, chunk, op_min_u64(wanted, sizeof(chunk)), MSG_DONTWAIT);
		if (nr < 0 && errno == EINTR)
			continue;
		if (nr <= 0)
			return nr < 0 && errno == EAGAIN ? -EAGAIN : -EPIPE;
		if (!in_header) {
			op_text_add_bytes(&helper->body, chunk, (size_t)nr);
			if (helper->body.failed)
				return -EPIPE; /* what follows would be taken for something else */
			continue;
		}
		memcpy((char *)&helper->header + helper->header_bytes, chunk, (size_t)nr);
		helper->header_bytes += (size_t)nr;
		if (helper->header_bytes == sizeof(helper->header) && helper->header.nr_bytes > ANSWER_MAX_BYTES)
			return -EPIPE;
	}
}

bool op_helper_is_idle(struct op_helper *helper)
{
	if (helper->is_waiting && receive_some(helper) != -EAGAIN)
		forget_answer(helper);
	return !helper->is_waiting;
}

static int send_question(struct op_helper *helper, const struct iovec *parts, size_t nr_parts, int fd)
{
	struct header header = { 0 };
	struct iovec all[PARTS_MAX + 1] = { { &header, sizeof(header) } };
	ssize_t nr;

	if (nr_parts > PARTS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < nr_parts; i++) {
		all[i + 1] = parts[i];
		header.nr_bytes += (uint32_t)parts[i].iov_len;
	}
	nr = send_parts(helper->fd, all, nr_parts + 1, fd, MSG_DONTWAIT);
	/* A helper without work has room for a whole question in its socket. */
	return nr == (ssize_t)(sizeof(header) + header.nr_bytes) ? 0 : -EPIPE;
}

/* The state is the letter behind the name in /proc/PID/stat. R: it runs or waits for a CPU. */
bool op_helper_is_blocked(const struct op_helper *helper)
{
	char path[64], text[256];
	const char *state;
	ssize_t nr;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)helper->pid);
	fd = op_sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	nr = fd < 0 ? fd : op_sys_read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (nr <= 0)
		return true;
	text[nr] = '\0';
	state = strrchr(text, ')');
	return !state || strncmp(state, ") R", 3) != 0;
}

static int await_answer(struct op_helper *helper, uint64_t until_ns)
{
	int err;

	do {
		err = wait_until(helper->fd, until_ns);
		if (!err)
			err = receive_some(helper);
	} while (err == -EAGAIN);
	return err;
}

int op_helper_ask(struct op_helper *helper, const struct iovec *parts, size_t nr_parts, int fd, uint64_t wait_ns,
		  int *ret_result, struct op_text *ret_answer)
{
	int err;

	if (!op_helper_is_idle(helper))
		return -EBUSY;
	err = send_question(helper, parts, nr_parts, fd);
	if (err)
		return err;
	helper->is_waiting = true;
	for (unsigned int i = 0; i < PATIENCE; i++) {
		err = await_answer(helper, op_now_ns() + wait_ns);
		if (err != -ETIMEDOUT || op_helper_is_blocked(helper))
			break;
	}
	if (err == -ETIMEDOUT)
		return err;
	if (!err) {
		*ret_result = helper->header.result;
		op_text_free(ret_answer);
		*ret_answer = helper->body;
		helper->body = (struct op_text){ 0 };
	}
	forget_answer(helper);
	return err;
}

uint64_t op_helper_slept_ns(const struct op_helper *helper)
{
	return helper->header.slept_ns;
}

pid_t op_helper_pid(const struct op_helper *helper)
{
	return helper->pid;
}

void op_helper_stop(struct op_helper *helper)
{
	if (!helper)
		return;
	if (op_helper_is_idle(helper) && !shutdown(helper->fd, SHUT_WR))
		(void)wait_until(helper->fd, op_now_ns() + START_NS);
	close(helper->fd);
	op_text_free(&helper->body);
	free(helper);
}
