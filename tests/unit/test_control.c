/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "libop/control/protocol.h"
#include "tests/unit/test_box.h"

struct answer {
	enum op_control_command command; /* 0: DUMP */
	struct op_control_reply reply;
	const void *payload;
	size_t payload_bytes; /* bytes that are sent, whatever the header says */
	size_t nr_bytes;      /* 0: whole; else the message is cut here */
	bool close_at_once, silent;
};

static enum op_control_command command_of(const struct answer *answer)
{
	return answer->command ? answer->command : OP_CONTROL_DUMP;
}

static struct op_control_reply good_reply(size_t payload_bytes, int error)
{
	return (struct op_control_reply){ OP_CONTROL_MAGIC, OP_CONTROL_VERSION, OP_CONTROL_DUMP, error, (uint32_t)payload_bytes };
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* Serves one client. Exit code 0 when its request was right. */
OP_NORETURN static void be_daemon(int listen_fd, const struct answer *answer)
{
	static char message[OP_CONTROL_MAX_REPLY + 1000];
	struct op_control_request request;
	int fd = accept(listen_fd, NULL, NULL), room = 4 * OP_CONTROL_MAX_REPLY;
	ssize_t nr;

	alarm(60);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	if (answer->close_at_once)
		_exit(0);
	nr = recv(fd, &request, sizeof(request), MSG_TRUNC);
	if (nr != sizeof(request) || request.magic != OP_CONTROL_MAGIC || request.version != OP_CONTROL_VERSION ||
	    request.command != command_of(answer) || request.reserved[0] || request.reserved[1])
		_exit(1);
	if (!answer->silent) {
		memcpy(message, &answer->reply, sizeof(answer->reply));
		if (answer->payload_bytes)
			memcpy(message + sizeof(answer->reply), answer->payload, answer->payload_bytes);
		nr = (ssize_t)(answer->nr_bytes ? answer->nr_bytes : sizeof(answer->reply) + answer->payload_bytes);
		if (send(fd, message, (size_t)nr, 0) != nr)
			_exit(2);
	}
	_exit(recv(fd, &request, sizeof(request), 0) == 0 ? 0 : 3);
}

struct result {
	int err;
	char *payload, *message;
	size_t nr_bytes;
};

/* Runs the call against a daemon with this reply. */
static struct result call(const struct box *box, const struct answer *answer, int timeout_ms)
{
	struct result result = { 0 };
	void *payload = NULL;
	char path[64];
	int fd, status;
	pid_t child;

	snprintf(path, sizeof(path), "%s/control", box->path);
	fd = listen_at(path);
	child = fork();
	if (!child)
		be_daemon(fd, answer);
	close(fd);
	result.err = op_control_call_within(path, command_of(answer), timeout_ms, &payload, &result.nr_bytes, &result.message);
	result.payload = payload;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	unlink(path);
	return result;
}

static void forget(struct result *result)
{
	free(result->payload);
	free(result->message);
}

static void test_success(void **state)
{
	struct answer plain = { .reply = good_reply(0, 0) };
	struct op_status status = { .pid = 4711 };
	struct answer with_payload = { .command = OP_CONTROL_STATUS,
				       .reply = good_reply(sizeof(status), 0),
				       .payload = &status,
				       .payload_bytes = sizeof(status) };
	struct result result = call(*state, &plain, -1);

	assert_int_equal(result.err, 0);
	assert_null(result.payload);
	assert_int_equal(result.nr_bytes, 0);
	forget(&result);
	with_payload.reply.command = OP_CONTROL_STATUS;
	result = call(*state, &with_payload, 60000);
	assert_int_equal(result.err, 0);
	assert_int_equal(result.nr_bytes, sizeof(status));
	assert_memory_equal(result.payload, &status, sizeof(status));
	assert_null(result.message);
	forget(&result);
}

static void test_daemons_error(void **state)
{
	struct answer told = { .reply = good_reply(10, -ENOSPC), .payload = "disk\nfull\t", .payload_bytes = 10 };
	struct answer silent = { .reply = good_reply(0, -EIO) };
	struct result result = call(*state, &told, -1);

	assert_int_equal(result.err, -ENOSPC);
	assert_null(result.payload);
	assert_string_equal(result.message, "disk full ");
	forget(&result);
	result = call(*state, &silent, -1);
	assert_int_equal(result.err, -EIO);
	assert_non_null(strstr(result.message, "Input/output error"));
	forget(&result);
}

/* An error in a reply is not taken for a missing reply. */
static void test_daemons_error_is_not_the_calls(void **state)
{
	static const int errors[] = { ENOENT, ECONNREFUSED, ECONNRESET, EPIPE, ETIMEDOUT, EPROTO, EPROTONOSUPPORT, EAGAIN };

	for (size_t i = 0; i < op_array_size(errors); i++) {
		struct answer told = { .reply = good_reply(9, -errors[i]), .payload = "no stats\n", .payload_bytes = 9 };
		struct answer silent = { .reply = good_reply(0, -errors[i]) };
		struct result result = call(*state, &told, -1);

		assert_int_equal(result.err, -EREMOTEIO);
		assert_string_equal(result.message, "no stats ");
		forget(&result);
		result = call(*state, &silent, -1);
		assert_int_equal(result.err, -EREMOTEIO);
		assert_string_equal(result.message, strerror(errors[i]));
		forget(&result);
	}
}

static void test_unsound_replies(void **state)
{
	static const char big[OP_CONTROL_MAX_REPLY];
	struct answer answers[9];

	for (size_t i = 0; i < op_array_size(answers); i++)
		answers[i] = (struct answer){ .reply = good_reply(5, 0), .payload = "hello", .payload_bytes = 5 };
	answers[0].reply.magic++;
	answers[1].reply.version++; /* but its length is not the one that it states */
	answers[1].reply.payload_bytes = 6;
	answers[2].reply.command = OP_CONTROL_STATUS;
	answers[3].reply.error = 5;
	answers[4].reply.payload_bytes = 4;
	answers[5].reply.payload_bytes = UINT32_MAX;
	answers[6].nr_bytes = 15;
	answers[7].nr_bytes = 1;
	answers[8].payload = big;
	answers[8].payload_bytes = sizeof(big);
	answers[8].reply.payload_bytes = sizeof(big);
	for (size_t i = 0; i < op_array_size(answers); i++) {
		struct result result = call(*state, &answers[i], -1);

		assert_int_equal(result.err, -EPROTO);
		assert_null(result.payload);
		assert_non_null(strstr(result.message, "not opd"));
		forget(&result);
	}
}

/* The lengths in the table: DUMP has no payload, STATUS has one entry for each event and CPU. */
static void test_payload_of_another_length(void **state)
{
	struct op_status status = { .nr_cpus = 1 };
	struct answer dump = { .reply = good_reply(5, 0), .payload = "hello", .payload_bytes = 5 };
	struct answer short_one = { .command = OP_CONTROL_STATUS,
				    .reply = good_reply(sizeof(status), 0),
				    .payload = &status,
				    .payload_bytes = sizeof(status) };
	struct result result = call(*state, &dump, -1);

	assert_int_equal(result.err, -EPROTO);
	forget(&result);
	short_one.reply.command = OP_CONTROL_STATUS;
	result = call(*state, &short_one, -1);
	assert_int_equal(result.err, -EPROTO);
	forget(&result);
}

/*
 * An older or newer daemon, with an error of opd's own or with an unknown code: the message has its
 * version.
 */
static void test_other_version(void **state)
{
	struct answer older = { .reply = good_reply(4, -EPROTO), .payload = "what", .payload_bytes = 4 };
	struct answer younger = { .reply = good_reply(5, 0), .payload = "hello", .payload_bytes = 5 };
	struct result result;

	older.reply.version = 1;
	result = call(*state, &older, -1);
	assert_int_equal(result.err, -EPROTONOSUPPORT);
	assert_non_null(strstr(result.message, "speaks version 1 "));
	assert_non_null(strstr(result.message, "restart"));
	forget(&result);
	younger.reply.version = 777;
	result = call(*state, &younger, -1);
	assert_int_equal(result.err, -EPROTONOSUPPORT);
	assert_non_null(strstr(result.message, "speaks version 777 "));
	assert_null(result.payload);
	forget(&result);
}

static void test_no_answer(void **state)
{
	struct answer gone = { .close_at_once = true }, silent = { .silent = true };
	struct result result = call(*state, &gone, -1);

	assert_true(result.err == -ECONNRESET || result.err == -EPIPE);
	assert_non_null(strstr(result.message, "without an answer"));
	forget(&result);
	result = call(*state, &silent, 50);
	assert_int_equal(result.err, -ETIMEDOUT);
	assert_non_null(strstr(result.message, "does not answer"));
	forget(&result);
}

/* Other clients wait at a stopped daemon: its queue is full. */
static void test_full_queue(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct box *box = *state;
	int listen_fd, waiting[8], nr = 0;
	char *message = NULL;
	void *payload = NULL;
	size_t nr_bytes;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", box->path);
	listen_fd = listen_at(address.sun_path);
	do {
		assert_int_not_equal(nr, op_array_size(waiting));
		waiting[nr] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	} while (!connect(waiting[nr++], (const struct sockaddr *)&address, sizeof(address)));
	assert_int_equal(errno, EAGAIN);
	alarm(60);
	assert_int_equal(op_control_call_within(address.sun_path, OP_CONTROL_STATUS, 50, &payload, &nr_bytes, &message),
			 -ETIMEDOUT);
	alarm(0);
	assert_non_null(strstr(message, "does not answer"));
	free(message);
	while (nr)
		close(waiting[--nr]);
	close(listen_fd);
	unlink(address.sun_path);
}

static void test_no_daemon(void **state)
{
	struct box *box = *state;
	char path[64], *message = NULL, *long_path;
	void *payload = NULL;
	size_t nr_bytes;

	snprintf(path, sizeof(path), "%s/control", box->path);
	assert_int_equal(op_control_call(path, OP_CONTROL_START, &payload, &nr_bytes, &message), -ENOENT);
	assert_non_null(strstr(message, path));
	assert_non_null(strstr(message, "not running"));
	free(message);
	close(listen_at(path));
	assert_int_equal(op_control_call(path, OP_CONTROL_START, &payload, &nr_bytes, &message), -ECONNREFUSED);
	assert_non_null(strstr(message, "not running"));
	free(message);
	long_path = test_calloc(1, 200);
	memset(long_path, 'x', 199);
	assert_int_equal(op_control_call(long_path, OP_CONTROL_START, &payload, &nr_bytes, &message), -ENAMETOOLONG);
	free(message);
	test_free(long_path);
	assert_null(payload);
}

static void test_commands(void **state)
{
	(void)state;
	assert_string_equal(op_control_name(OP_CONTROL_STATUS), "STATUS");
	assert_string_equal(op_control_name(6), "SHUTDOWN");
	assert_null(op_control_name(0));
	assert_null(op_control_name(8));
	assert_true(op_control_group_may(OP_CONTROL_STATUS));
	assert_true(op_control_group_may(OP_CONTROL_DUMP));
	assert_false(op_control_group_may(OP_CONTROL_START));
	assert_false(op_control_group_may(OP_CONTROL_SHUTDOWN));
	assert_false(op_control_group_may(999));
}

struct status_payload {
	struct op_status status;
	struct op_ledger_event events[2];
	struct op_ledger_cpu cpus[3];
};

static void test_status_parts(void **state)
{
	struct status_payload *payload = test_calloc(1, sizeof(*payload) + 8);
	const struct op_ledger_event *events = NULL;
	const struct op_ledger_cpu *cpus = NULL;
	const struct op_status *status = NULL;

	(void)state;
	payload->status.nr_events = 2;
	payload->status.nr_cpus = 3;
	assert_int_equal(op_control_status_parts(payload, sizeof(*payload) - 1, &status, &events, &cpus), -EPROTO);
	assert_int_equal(op_control_status_parts(payload, sizeof(*payload) + 8, &status, &events, &cpus), -EPROTO);
	assert_int_equal(op_control_status_parts(payload, sizeof(payload->status), &status, &events, &cpus), -EPROTO);
	assert_int_equal(op_control_status_parts(payload, 10, &status, &events, &cpus), -EPROTO);
	payload->status.nr_cpus = UINT32_MAX;
	assert_int_equal(op_control_status_parts(payload, sizeof(*payload), &status, &events, &cpus), -EPROTO);
	payload->status.nr_cpus = 3;
	memset(payload->events[1].name, 'x', sizeof(payload->events[1].name));
	assert_int_equal(op_control_status_parts(payload, sizeof(*payload), &status, &events, &cpus), -EPROTO);
	payload->events[1].name[5] = '\0';
	memset(payload->status.kernel_note, 'x', sizeof(payload->status.kernel_note));
	assert_int_equal(op_control_status_parts(payload, sizeof(*payload), &status, &events, &cpus), -EPROTO);
	assert_null(status);
	payload->status.kernel_note[0] = '\0';
	assert_int_equal(op_control_status_parts(payload, sizeof(*payload), &status, &events, &cpus), 0);
	assert_ptr_equal(status, &payload->status);
	assert_ptr_equal(events, payload->events);
	assert_ptr_equal(cpus, payload->cpus);
	test_free(payload);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		box_test(test_success),
		box_test(test_daemons_error),
		box_test(test_daemons_error_is_not_the_calls),
		box_test(test_unsound_replies),
		box_test(test_payload_of_another_length),
		box_test(test_other_version),
		box_test(test_no_answer),
		box_test(test_full_queue),
		box_test(test_no_daemon),
		cmocka_unit_test(test_commands),
		cmocka_unit_test(test_status_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
