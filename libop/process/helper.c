/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/process/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/grow.h"
#include "libop/process/pass.h"
#include "libop/base/sys.h"

#define SOCKET_FD          OP_HELPER_SOCKET_FD
#define PARTS_MAX          8
#define QUESTION_MAX_BYTES (1u << 20)
#define ANSWER_MAX_BYTES   (16u << 20)
#define CHUNK_BYTES        65536u
#define USUAL_BYTES        16384u /* of most questions and answers: paths, and some numbers */

/* Goes ahead of a question, with its length, and of an answer. */
struct header {
	uint32_t nr_bytes;
	int32_t result;
	uint64_t slept_ns; /* see op_helper_slept_ns */
};

struct op_helper {
	int fd;
	pid_t pid;
	uint64_t timeout_ns; /* of receiving, as the socket has it; 0: none yet */
	bool is_waiting;     /* a question has no answer yet */
	/* of the answer that is being received */
	struct header header;
	size_t header_bytes; /* received so far */
	struct op_text body;
};

/* ---- the helper ---- */

/* A question with its header, and with a NUL behind it. */
struct inbox {
	char *bytes;
	size_t capacity;
};

/*
 * Mostly one call receives all. Nothing follows before the answer was sent. 0, or -EPIPE at the
 * end.
 */
static int receive_question(struct inbox *inbox, struct header *ret_header, int *ret_fd)
{
	size_t wanted = sizeof(*ret_header), nr_bytes = 0;

	while (nr_bytes < wanted) {
		ssize_t nr;

		if (!op_grow(&inbox->bytes, &inbox->capacity, op_max_u64(wanted + 1, USUAL_BYTES)))
			return -ENOMEM;
		nr = op_pass_receive(SOCKET_FD, inbox->bytes + nr_bytes, inbox->capacity - 1 - nr_bytes, ret_fd);
		if (nr <= 0)
			return -EPIPE;
		nr_bytes += (size_t)nr;
		if (nr_bytes < sizeof(*ret_header))
			continue;
		memcpy(ret_header, inbox->bytes, sizeof(*ret_header));
		if (ret_header->nr_bytes > QUESTION_MAX_BYTES)
			return -EPIPE;
		wanted = sizeof(*ret_header) + ret_header->nr_bytes;
	}
	inbox->bytes[wanted] = '\0';
	return 0;
}

/* A helper that only waits for a CPU does not sleep. */
static long nr_sleeps(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) < 0 ? 0 : usage.ru_nvcsw;
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
	nr = op_pass_send(SOCKET_FD, parts, op_array_size(parts), -1, 0);
	if (nr < (ssize_t)sizeof(header))
		return -EPIPE;
	sent = (size_t)nr - sizeof(header);
	return sent < header.nr_bytes ? op_sys_write_all(SOCKET_FD, text->data + sent, header.nr_bytes - sent) : 0;
}

/* Answers a question. 0, or -EPIPE. */
static int serve_one(const struct op_helper_kind *kind, const char *question, size_t nr_bytes, int fd, struct op_text *answer)
{
	uint64_t begin_ns = op_now_ns(), took_ns;
	long sleeps = nr_sleeps();
	int result = kind->answer(question, nr_bytes, fd, answer);

	took_ns = op_now_ns() - begin_ns;
	return send_answer(result, took_ns >= OP_HELPER_QUICK_NS && nr_sleeps() > sleeps ? took_ns : 0, answer);
}

void op_helper_serve(const struct op_helper_kind *kind)
{
	struct op_text answer = { 0 };
	struct inbox inbox = { 0 };
	struct header header;
	int fd = -1, err = 0;

	if (kind->begin && kind->begin() < 0)
		return;
	while (!err && !receive_question(&inbox, &header, &fd)) {
		err = serve_one(kind, inbox.bytes + sizeof(header), header.nr_bytes, fd, &answer);
		if (fd >= 0)
			close(fd);
		fd = -1;
		if (answer.failed || answer.capacity > USUAL_BYTES)
			op_text_free(&answer);
		else
			op_text_truncate(&answer, 0);
	}
}

/* ---- the program ---- */

/* 0, or -ETIMEDOUT. until_ns: OP_CLOCK. */
static int wait_until(int fd, uint64_t until_ns)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	uint64_t now_ns = op_now_ns(), left_ns = until_ns - op_min_u64(until_ns, now_ns);
	struct timespec left = { .tv_sec = (time_t)(left_ns / OP_NS_PER_S), .tv_nsec = (long)(left_ns % OP_NS_PER_S) };

	return ppoll(&poll_fd, 1, &left, NULL) > 0 || op_now_ns() < until_ns ? 0 : -ETIMEDOUT;
}

struct op_helper *op_helper_new(int fd, pid_t pid)
{
	struct op_helper *helper = calloc(1, sizeof(*helper));

	if (helper) {
		helper->fd = fd;
		helper->pid = pid;
	}
	return helper;
}

static void forget_answer(struct op_helper *helper)
{
	op_text_free(&helper->body);
	helper->header_bytes = 0;
	helper->is_waiting = false;
}

/* `flags`: MSG_DONTWAIT, or 0 to wait. 0: the answer is complete; -EAGAIN: not yet; -EPIPE. */
static int receive_part(struct op_helper *helper, int flags)
{
	char chunk[CHUNK_BYTES];
	size_t head_bytes = sizeof(helper->header) - helper->header_bytes;
	struct iovec parts[] = { { (char *)&helper->header + helper->header_bytes, head_bytes }, { chunk, sizeof(chunk) } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = op_array_size(parts) };
	ssize_t nr = recvmsg(helper->fd, &message, flags);

	if (nr <= 0)
		return nr < 0 && (errno == EAGAIN || errno == EINTR) ? -EAGAIN : -EPIPE;
	helper->header_bytes += op_min_u64((size_t)nr, head_bytes);
	if (helper->header_bytes < sizeof(helper->header))
		return -EAGAIN;
	op_text_add_bytes(&helper->body, chunk, (size_t)nr - op_min_u64((size_t)nr, head_bytes));
	/* What follows an answer that is too long would be taken for another one. */
	if (helper->body.failed || helper->header.nr_bytes > ANSWER_MAX_BYTES || helper->body.length > helper->header.nr_bytes)
		return -EPIPE;
	return helper->body.length == helper->header.nr_bytes ? 0 : -EAGAIN;
}

/* Receives what is there. */
static int receive_rest(struct op_helper *helper)
{
	size_t nr_bytes;
	int err;

	do {
		nr_bytes = helper->header_bytes + helper->body.length;
		err = receive_part(helper, MSG_DONTWAIT);
	} while (err == -EAGAIN && helper->header_bytes + helper->body.length > nr_bytes);
	return err;
}

bool op_helper_is_idle(struct op_helper *helper)
{
	if (helper->is_waiting && receive_rest(helper) != -EAGAIN)
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
	nr = op_pass_send(helper->fd, all, nr_parts + 1, fd, MSG_DONTWAIT);
	/* A helper without work has room for a whole question in its socket. */
	return nr == (ssize_t)(sizeof(header) + header.nr_bytes) ? 0 : -EPIPE;
}

char op_process_state(pid_t pid)
{
	char path[64], text[256];
	const char *end;
	ssize_t nr;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = op_sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	nr = fd < 0 ? fd : op_sys_read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (nr <= 0)
		return '?';
	text[nr] = '\0';
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : '?';
}

bool op_helper_is_blocked(const struct op_helper *helper)
{
	return op_process_state(helper->pid) != 'R';
}

bool op_helper_is_stopped(const struct op_helper *helper)
{
	return op_process_state(helper->pid) == 'T';
}

bool op_helper_has_ended(const struct op_helper *helper)
{
	char byte;

	return !recv(helper->fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
}

/* How long receiving waits. Mostly it waits as long as for the last question. */
static void set_timeout(struct op_helper *helper, uint64_t wait_ns)
{
	struct timeval timeout = { .tv_sec = (time_t)(wait_ns / OP_NS_PER_S),
				   .tv_usec = (suseconds_t)(wait_ns % OP_NS_PER_S / 1000) };

	if (helper->timeout_ns == wait_ns)
		return;
	if (!timeout.tv_sec && !timeout.tv_usec)
		timeout.tv_usec = 1; /* 0 is without end */
	if (!setsockopt(helper->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)))
		helper->timeout_ns = wait_ns;
}

/* 0; -ETIMEDOUT; -EPIPE. */
static int await_answer(struct op_helper *helper, uint64_t wait_ns)
{
	uint64_t until_ns = op_now_ns() + wait_ns, now_ns;
	int err;

	set_timeout(helper, wait_ns);
	while ((err = receive_part(helper, 0)) == -EAGAIN) {
		now_ns = op_now_ns();
		if (now_ns >= until_ns)
			return -ETIMEDOUT;
		set_timeout(helper, until_ns - now_ns);
	}
	return err;
}

int op_helper_send(struct op_helper *helper, const struct iovec *parts, size_t nr_parts, int fd)
{
	int err = op_helper_is_idle(helper) ? send_question(helper, parts, nr_parts, fd) : -EBUSY;

	helper->is_waiting |= !err;
	return err;
}

static void take_answer(struct op_helper *helper, int *ret_result, struct op_text *ret_answer)
{
	*ret_result = helper->header.result;
	op_text_free(ret_answer);
	*ret_answer = helper->body;
	helper->body = (struct op_text){ 0 };
}

int op_helper_take(struct op_helper *helper, int *ret_result, struct op_text *ret_answer)
{
	int err = helper->is_waiting ? receive_rest(helper) : -EPIPE;

	if (err == -EAGAIN)
		return err;
	if (!err)
		take_answer(helper, ret_result, ret_answer);
	forget_answer(helper);
	return err;
}

int op_helper_ask(struct op_helper *helper, const struct iovec *parts, size_t nr_parts, int fd, uint64_t wait_ns,
		  int *ret_result, struct op_text *ret_answer)
{
	int err = op_helper_send(helper, parts, nr_parts, fd);

	if (err)
		return err;
	for (unsigned int i = 0; i < OP_HELPER_PATIENCE; i++) {
		err = await_answer(helper, wait_ns);
		if (err != -ETIMEDOUT || op_helper_is_blocked(helper))
			break;
	}
	if (err == -ETIMEDOUT)
		return err;
	if (!err)
		take_answer(helper, ret_result, ret_answer);
	forget_answer(helper);
	return err;
}

int op_helper_fd(const struct op_helper *helper)
{
	return helper->fd;
}

void op_helper_end(struct op_helper *helper)
{
	(void)shutdown(helper->fd, SHUT_WR);
}

uint64_t op_helper_slept_ns(const struct op_helper *helper)
{
	return helper->header.slept_ns;
}

pid_t op_helper_pid(const struct op_helper *helper)
{
	return helper->pid;
}

void op_helper_leave(struct op_helper *helper)
{
	close(helper->fd);
	op_text_free(&helper->body);
	free(helper);
}

void op_helper_stop(struct op_helper *helper, uint64_t until_ns)
{
	if (!helper)
		return;
	if (op_helper_is_idle(helper) && !shutdown(helper->fd, SHUT_WR))
		(void)wait_until(helper->fd, until_ns);
	op_helper_leave(helper);
}
