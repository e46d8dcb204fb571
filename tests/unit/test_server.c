/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "daemon/server.h"
#include "tests/unit/test_box.h"

#define NOBODY    65534
#define GROUP     54321
#define HOUR_USEC UINT64_C(3600000000)

/* The time that the server waits for a client. The tests replace it, so that none waits as long. */
static uint64_t patience_usec;

int __real_sd_event_add_time_relative(sd_event *loop, sd_event_source **ret_source, clockid_t clock, uint64_t usec,
				      uint64_t accuracy, sd_event_time_handler_t handler, void *userdata);
int __wrap_sd_event_add_time_relative(sd_event *loop, sd_event_source **ret_source, clockid_t clock, uint64_t usec,
				      uint64_t accuracy, sd_event_time_handler_t handler, void *userdata);
int __real_sd_event_source_set_time_relative(sd_event_source *source, uint64_t usec);
int __wrap_sd_event_source_set_time_relative(sd_event_source *source, uint64_t usec);

int __wrap_sd_event_add_time_relative(sd_event *loop, sd_event_source **ret_source, clockid_t clock, uint64_t usec OP_UNUSED,
				      uint64_t accuracy OP_UNUSED, sd_event_time_handler_t handler, void *userdata)
{
	return __real_sd_event_add_time_relative(loop, ret_source, clock, patience_usec, 1, handler, userdata);
}

int __wrap_sd_event_source_set_time_relative(sd_event_source *source, uint64_t usec OP_UNUSED)
{
	return __real_sd_event_source_set_time_relative(source, patience_usec);
}

/* Whether the host has a group opd. */
static bool has_group;

/* The path of a socket, in whose place a link to another file is put; NULL: none. */
static const char *replaced;
static char secret[64];

struct group *__wrap_getgrnam(const char *name);

struct group *__wrap_getgrnam(const char *name)
{
	static struct group group = { .gr_gid = GROUP };

	assert_string_equal(name, OPD_SERVER_GROUP);
	if (replaced) {
		assert_int_equal(unlink(replaced), 0);
		assert_int_equal(symlink(secret, replaced), 0);
		replaced = NULL;
	}
	return has_group ? &group : NULL;
}

struct harness {
	struct box *box;
	char path[64];
	sd_event *loop;
	struct opd_server *server;
	struct opd_client last;
	enum op_control_command last_command;
	size_t nr_requests;
	bool answer_at_once, answer_in_form;
};

static void on_request(void *context, struct opd_client client, enum op_control_command command, const char *name OP_UNUSED)
{
	static const struct op_status status;
	struct harness *h = context;

	h->last = client;
	h->last_command = command;
	h->nr_requests++;
	if (h->answer_in_form)
		assert_int_equal(opd_server_reply(h->server, client, 0, &status, command == OP_CONTROL_STATUS ? sizeof(status) : 0),
				 0);
	else if (h->answer_at_once)
		assert_int_equal(opd_server_reply(h->server, client, 0, "hello", 5), 0);
}

static int server_setup(void **state)
{
	struct harness *h = test_calloc(1, sizeof(*h));
	void *box;
	int fd;

	patience_usec = HOUR_USEC;
	if (box_setup(&box) < 0)
		return -1;
	h->box = box;
	snprintf(h->path, sizeof(h->path), "%s/control", h->box->path);
	assert_int_equal(sd_event_new(&h->loop), 0);
	assert_int_equal(opd_server_listen(h->path, &fd), 0);
	assert_int_equal(opd_server_open(h->loop, fd, h->path, on_request, h, &h->server), 0);
	h->answer_at_once = true;
	*state = h;
	return 0;
}

static int server_teardown(void **state)
{
	struct harness *h = *state;
	void *box = h->box;
	int err;

	opd_server_close(h->server);
	sd_event_unref(h->loop);
	err = box_teardown(&box);
	test_free(h);
	return err;
}

/* Lets the loop do everything that is ready now. */
static void settle(struct harness *h)
{
	while (sd_event_run(h->loop, 0) > 0)
		;
}

static int connect_client(const struct harness *h)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(address.sun_path, h->path, strlen(h->path) + 1);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void send_command(int fd, unsigned int command)
{
	struct op_control_request request = { .magic = OP_CONTROL_MAGIC,
					      .version = OP_CONTROL_VERSION,
					      .command = (uint16_t)command };

	assert_int_equal(send(fd, &request, sizeof(request), MSG_NOSIGNAL), sizeof(request));
}

/* The last message that receive() got: a reply and its payload. */
static union {
	struct op_control_reply reply;
	char bytes[OP_CONTROL_MAX_REPLY];
} got;

static ssize_t receive(int fd)
{
	ssize_t nr = recv(fd, &got, sizeof(got), MSG_TRUNC);

	return nr < 0 ? -errno : nr;
}

static void test_answers(void **state)
{
	struct harness *h = *state;
	int fd = connect_client(h);

	for (unsigned int i = 0; i < 3; i++) {
		send_command(fd, OP_CONTROL_DUMP);
		settle(h);
		assert_int_equal(receive(fd), sizeof(got.reply) + 5);
		assert_int_equal(got.reply.magic, OP_CONTROL_MAGIC);
		assert_int_equal(got.reply.command, OP_CONTROL_DUMP);
		assert_int_equal(got.reply.error, 0);
		assert_int_equal(got.reply.payload_bytes, 5);
		assert_memory_equal(&got.reply + 1, "hello", 5);
	}
	assert_int_equal(h->nr_requests, 3);
	assert_int_equal(opd_server_nr_dropped(h->server), 0);
	close(fd);
	settle(h);
	assert_int_equal(opd_server_nr_clients(h->server), 0);
}

static void test_answer_later(void **state)
{
	struct harness *h = *state;
	int a = connect_client(h), b = connect_client(h);
	struct opd_client first;

	h->answer_at_once = false;
	send_command(a, OP_CONTROL_DUMP);
	send_command(a, OP_CONTROL_STATUS);
	settle(h);
	assert_int_equal(h->nr_requests, 1);
	first = h->last;
	send_command(b, OP_CONTROL_STATUS);
	settle(h);
	assert_int_equal(h->nr_requests, 2);
	assert_int_equal(receive(a), -EAGAIN);
	assert_int_equal(opd_server_reply_error(h->server, h->last, -ENOSPC, "full"), 0);
	assert_int_equal(receive(b), sizeof(got.reply) + 4);
	assert_int_equal(got.reply.error, -ENOSPC);
	assert_int_equal(opd_server_reply(h->server, first, 0, NULL, 0), 0);
	assert_int_equal(receive(a), sizeof(got.reply));
	assert_int_equal(opd_server_reply(h->server, first, 0, "twice", 5), 0);
	assert_int_equal(receive(a), -EAGAIN);
	settle(h);
	assert_int_equal(h->nr_requests, 3);
	assert_int_equal(h->last_command, OP_CONTROL_STATUS);
	close(a);
	close(b);
}

/* The client has gone, and another one has its slot: nobody gets the late reply. */
static void test_answer_to_nobody(void **state)
{
	struct harness *h = *state;
	int a = connect_client(h), b;
	struct opd_client gone;

	h->answer_at_once = false;
	send_command(a, OP_CONTROL_DUMP);
	settle(h);
	gone = h->last;
	close(a);
	settle(h);
	assert_int_equal(opd_server_nr_clients(h->server), 1);
	assert_int_equal(opd_server_reply(h->server, gone, 0, NULL, 0), 0);
	assert_int_equal(opd_server_nr_clients(h->server), 0);
	b = connect_client(h);
	send_command(b, OP_CONTROL_DUMP);
	settle(h);
	assert_int_equal(h->last.slot, gone.slot);
	assert_int_equal(opd_server_reply(h->server, gone, 0, NULL, 0), 0);
	assert_int_equal(receive(b), -EAGAIN);
	assert_int_equal(opd_server_reply(h->server, (struct opd_client){ 1u << 30, 0 }, 0, NULL, 0), 0);
	assert_int_equal(opd_server_reply(h->server, h->last, 0, NULL, 0), 0);
	close(b);
}

/*
 * However many clients ask and leave at once, the handler has no more requests than there are
 * slots, and an answer frees its slot.
 */
static void test_requests_of_the_gone(void **state)
{
	struct harness *h = *state;
	struct opd_client first;
	int fd;

	h->answer_at_once = false;
	for (size_t i = 0; i < 3 * OPD_SERVER_MAX_CLIENTS; i++) {
		fd = connect_client(h);
		send_command(fd, i % 2 ? OP_CONTROL_STATUS : OP_CONTROL_DUMP);
		close(fd);
		settle(h);
		if (!i)
			first = h->last;
	}
	assert_int_equal(h->nr_requests, OPD_SERVER_MAX_CLIENTS);
	assert_int_equal(opd_server_nr_clients(h->server), OPD_SERVER_MAX_CLIENTS);
	assert_int_equal(opd_server_reply(h->server, first, -ENOSPC, "full", 4), 0);
	assert_int_equal(opd_server_reply(h->server, h->last, 0, NULL, OP_CONTROL_MAX_REPLY), -EMSGSIZE);
	assert_int_equal(opd_server_nr_clients(h->server), OPD_SERVER_MAX_CLIENTS - 2);
	h->answer_at_once = true;
	fd = connect_client(h);
	send_command(fd, OP_CONTROL_DUMP);
	settle(h);
	assert_int_equal(receive(fd), sizeof(got.reply) + 5);
	close(fd);
}

/*
 * A request of another version, of any length, gets an answer of our version before the connection
 * ends.
 */
static void test_other_version(void **state)
{
	struct {
		struct op_control_request request;
		char more[100];
	} message = { .request = { .magic = OP_CONTROL_MAGIC, .command = 77 } };
	static const size_t lengths[] = { 8, 100, sizeof(message.request), sizeof(message) };
	struct harness *h = *state;

	for (size_t i = 0; i < op_array_size(lengths); i++) {
		int fd = connect_client(h);
		ssize_t nr;

		message.request.version = (uint16_t)(OP_CONTROL_VERSION + (i % 2 ? -1 : 1));
		assert_int_equal(send(fd, &message, lengths[i], 0), lengths[i]);
		settle(h);
		nr = receive(fd);
		assert_int_equal(nr, sizeof(got.reply) + got.reply.payload_bytes);
		assert_int_equal(got.reply.magic, OP_CONTROL_MAGIC);
		assert_int_equal(got.reply.version, OP_CONTROL_VERSION);
		assert_int_equal(got.reply.command, 77);
		assert_int_equal(got.reply.error, -EPROTO);
		assert_memory_equal(&got.reply + 1, "opd speaks version", 18);
		assert_int_equal(receive(fd), 0);
		close(fd);
	}
	assert_int_equal(h->nr_requests, 0);
	assert_int_equal(opd_server_nr_dropped(h->server), op_array_size(lengths));
}

static void test_garbage_is_dropped(void **state)
{
	static const struct op_control_request good = { .magic = OP_CONTROL_MAGIC,
							.version = OP_CONTROL_VERSION,
							.command = OP_CONTROL_DUMP };
	struct {
		struct op_control_request request;
		char more[4000];
	} message;
	static const size_t lengths[] = { 1, 15, 17, sizeof(message) };
	struct harness *h = *state;
	struct op_control_request bad[6];
	int innocent = connect_client(h);

	for (size_t i = 0; i < op_array_size(lengths); i++) {
		int fd = connect_client(h);

		memset(&message, 0, sizeof(message));
		message.request = good;
		assert_int_equal(send(fd, &message, lengths[i], 0), lengths[i]);
		settle(h);
		assert_int_equal(receive(fd), 0);
		close(fd);
	}
	for (size_t i = 0; i < op_array_size(bad); i++)
		bad[i] = good;
	bad[0].magic++;
	bad[1].name[207] = 'x';
	bad[2].command = 0;
	bad[3].command = 999;
	bad[4].reserved[1] = 1;
	bad[5].name[0] = 'x';
	for (size_t i = 0; i < op_array_size(bad); i++) {
		int fd = connect_client(h);

		assert_int_equal(send(fd, &bad[i], sizeof(bad[i]), 0), sizeof(bad[i]));
		settle(h);
		assert_int_equal(receive(fd), 0);
		close(fd);
	}
	assert_int_equal(h->nr_requests, 0);
	assert_int_equal(opd_server_nr_dropped(h->server), op_array_size(lengths) + op_array_size(bad));
	send_command(innocent, OP_CONTROL_START);
	settle(h);
	assert_int_equal(h->nr_requests, 1);
	close(innocent);
}

static void test_largest_reply(void **state)
{
	struct harness *h = *state;
	size_t nr_bytes = OP_CONTROL_MAX_REPLY - sizeof(struct op_control_reply);
	char *payload = test_calloc(1, nr_bytes + 1);
	int fd = connect_client(h);

	h->answer_at_once = false;
	send_command(fd, OP_CONTROL_STATUS);
	settle(h);
	assert_int_equal(opd_server_reply(h->server, h->last, 0, payload, nr_bytes), 0);
	assert_int_equal(receive(fd), OP_CONTROL_MAX_REPLY);
	close(fd);
	test_free(payload);
}

/* A client whose answer is too large gets an error, and its next request is read. */
static void test_reply_too_large(void **state)
{
	struct harness *h = *state;
	size_t nr_bytes = OP_CONTROL_MAX_REPLY - sizeof(struct op_control_reply);
	char *payload = test_calloc(1, nr_bytes + 1);
	int fd = connect_client(h);

	memset(payload, 'x', nr_bytes + 1);
	h->answer_at_once = false;
	send_command(fd, OP_CONTROL_STATUS);
	settle(h);
	assert_int_equal(opd_server_reply(h->server, h->last, 0, payload, nr_bytes + 1), -EMSGSIZE);
	assert_true(receive(fd) > (ssize_t)sizeof(got.reply));
	assert_int_equal(got.reply.error, -EMSGSIZE);
	assert_non_null(memmem(&got.reply + 1, got.reply.payload_bytes, "more than a reply can hold", 26));
	send_command(fd, OP_CONTROL_DUMP);
	settle(h);
	assert_int_equal(opd_server_reply(h->server, h->last, -EIO, payload, nr_bytes + 1), 0);
	assert_int_equal(receive(fd), OP_CONTROL_MAX_REPLY);
	assert_int_equal(got.reply.error, -EIO);
	assert_int_equal(opd_server_reply(h->server, h->last, 0, payload, nr_bytes + 1), -EMSGSIZE);
	assert_int_equal(receive(fd), -EAGAIN);
	assert_int_equal(opd_server_nr_dropped(h->server), 0);
	close(fd);
	test_free(payload);
}

/*
 * Replies fill the socket: then the rest waits, other clients do not, and every reply arrives once
 * the client reads again.
 */
static void test_slow_reader(void **state)
{
	struct harness *h = *state;
	size_t nr_bytes = OP_CONTROL_MAX_REPLY / 2, nr_sent = 0, nr_read = 0;
	char *payload = test_calloc(1, nr_bytes);
	int slow = connect_client(h), other;

	h->answer_at_once = false;
	for (size_t before = 0;; nr_sent++) {
		send_command(slow, OP_CONTROL_STATUS);
		settle(h);
		if (h->nr_requests == before)
			break;
		before = h->nr_requests;
		assert_in_range(nr_sent, 0, 100);
		assert_int_equal(opd_server_reply(h->server, h->last, 0, payload, nr_bytes), 0);
	}
	assert_in_range(nr_sent, 2, 100);
	other = connect_client(h);
	send_command(other, OP_CONTROL_STATUS);
	settle(h);
	assert_int_equal(h->nr_requests, nr_sent + 1);
	assert_int_equal(opd_server_reply(h->server, h->last, 0, NULL, 0), 0);
	assert_int_equal(receive(other), sizeof(got.reply));
	while (receive(slow) == (ssize_t)(sizeof(got.reply) + nr_bytes)) {
		nr_read++;
		settle(h);
	}
	assert_int_equal(nr_read, nr_sent);
	assert_int_equal(h->nr_requests, nr_sent + 2);
	close(slow);
	close(other);
	test_free(payload);
}

/* A silent client is dropped. A client whose request is being handled may wait. */
static void test_silent_is_dropped(void **state)
{
	struct harness *h = *state;
	int waiting = connect_client(h), silent;

	settle(h);
	h->answer_at_once = false;
	patience_usec = 0;
	send_command(waiting, OP_CONTROL_STATUS);
	settle(h);
	assert_int_equal(h->nr_requests, 1);
	silent = connect_client(h);
	while (!opd_server_nr_dropped(h->server))
		assert_true(sd_event_run(h->loop, UINT64_MAX) >= 0);
	assert_int_equal(receive(silent), 0);
	settle(h);
	assert_int_equal(opd_server_nr_dropped(h->server), 1);
	patience_usec = HOUR_USEC;
	assert_int_equal(opd_server_reply(h->server, h->last, 0, "hello", 5), 0);
	assert_int_equal(receive(waiting), sizeof(got.reply) + 5);
	close(silent);
	close(waiting);
}

/* More silent clients than there are slots: a client with a request is served all the same. */
static void test_crowd(void **state)
{
	struct harness *h = *state;
	int silent[OPD_SERVER_MAX_CLIENTS], fd;

	for (size_t i = 0; i < OPD_SERVER_MAX_CLIENTS; i++) {
		silent[i] = connect_client(h);
		settle(h);
	}
	assert_int_equal(opd_server_nr_clients(h->server), OPD_SERVER_MAX_CLIENTS);
	fd = connect_client(h);
	settle(h);
	assert_int_equal(opd_server_nr_clients(h->server), OPD_SERVER_MAX_CLIENTS);
	send_command(fd, OP_CONTROL_DUMP);
	settle(h);
	assert_int_equal(receive(fd), sizeof(got.reply) + 5);
	assert_int_equal(receive(silent[0]), 0);
	assert_int_equal(receive(silent[1]), -EAGAIN);
	for (size_t i = 0; i < OPD_SERVER_MAX_CLIENTS; i++)
		close(silent[i]);
	close(fd);
	settle(h);
	assert_int_equal(opd_server_nr_clients(h->server), 0);
}

/* The user, and the commands that are answered without error, one bit each. */
static const struct access_row {
	uid_t uid;
	gid_t gid;
	size_t nr_groups;
	gid_t groups[3];
	bool without_group; /* the host has none */
	int may;
} access_rows[] = {
	{ .uid = NOBODY, .gid = NOBODY },
	{ .uid = NOBODY, .gid = NOBODY, .nr_groups = 3, .groups = { 1, 2, 3 } },
	{ .uid = NOBODY, .gid = GROUP, .may = 1 << OP_CONTROL_STATUS | 1 << OP_CONTROL_DUMP },
	{ .uid = NOBODY,
	  .gid = NOBODY,
	  .nr_groups = 3,
	  .groups = { 1, 2, GROUP },
	  .may = 1 << OP_CONTROL_STATUS | 1 << OP_CONTROL_DUMP },
	{ .uid = NOBODY, .gid = 0 },
	{ .uid = NOBODY, .gid = 0, .without_group = true },
	{ .uid = NOBODY, .gid = GROUP, .without_group = true },
	{ .uid = 0, .gid = NOBODY, .may = 0xfe },
};

/* An exit code with the bits. */
static int call_as(const struct access_row *row, const char *path)
{
	int answered = 0;

	if (setgroups(row->nr_groups, row->groups) < 0 || setgid(row->gid) < 0 || setuid(row->uid) < 0)
		return 255;
	for (unsigned int command = OP_CONTROL_STATUS; command <= OP_CONTROL_SAVE; command++) {
		const char *reason = row->may ? op_control_name(command) : "members of the group";
		char *message = NULL;
		void *payload = NULL;
		size_t nr_bytes;
		int err = op_control_call(path, (enum op_control_command)command, &payload, &nr_bytes, &message);

		if (!err)
			answered |= 1 << command;
		else if (err != -EPERM || !strstr(message, "only root") || !strstr(message, reason))
			return 253;
		free(payload);
		free(message);
	}
	return answered;
}

/* Everybody may connect: the mode of the socket does not decide what each may do. */
static void test_access(void **state)
{
	struct harness *h = *state;
	int status, fd;
	pid_t child;

	if (geteuid() != 0) {
		print_message("needs root to become somebody else\n");
		skip();
	}
	h->answer_in_form = true;
	assert_int_equal(chmod(h->box->path, 0755), 0);
	for (size_t i = 0; i < op_array_size(access_rows); i++) {
		opd_server_close(h->server);
		has_group = !access_rows[i].without_group;
		assert_int_equal(opd_server_listen(h->path, &fd), 0);
		assert_int_equal(opd_server_open(h->loop, fd, h->path, on_request, h, &h->server), 0);
		assert_int_equal(chmod(h->path, 0666), 0);
		child = fork();
		if (!child)
			_exit(call_as(&access_rows[i], h->path));
		while (!waitpid(child, &status, WNOHANG))
			sd_event_run(h->loop, 1000);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), access_rows[i].may);
	}
	has_group = false;
}

static void test_socket_file(void **state)
{
	struct harness *h = *state;
	char other[80];
	struct stat st;
	int fd = -1;

	assert_int_equal(lstat(h->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(opd_server_listen(h->path, &fd), -EADDRINUSE);
	assert_int_equal(opd_server_find_listener(h->path), getpid());
	snprintf(other, sizeof(other), "%s/sub/dir/control", h->box->path);
	assert_int_equal(opd_server_listen(other, &fd), 0);
	close(fd);
	assert_int_equal(opd_server_find_listener(other), 0);
	fd = -1;
	assert_int_equal(opd_server_listen(other, &fd), 0);
	close(fd);
	unlink(other);
	snprintf(other, sizeof(other), "%s/sub/dir", h->box->path);
	fd = -1;
	assert_int_equal(opd_server_listen(other, &fd), -ENOTSOCK);
	assert_int_equal(fd, -1);
	rmdir(other);
}

/* A socket file of another owner at the same path is not removed. */
static void test_close_removes_its_own(void **state)
{
	struct harness *h = *state;
	char second[80];
	struct stat st;
	int fd;

	snprintf(second, sizeof(second), "%s/second", h->box->path);
	assert_int_equal(opd_server_listen(second, &fd), 0);
	assert_int_equal(rename(second, h->path), 0);
	opd_server_close(h->server);
	h->server = NULL;
	assert_int_equal(lstat(h->path, &st), 0);
	assert_int_equal(opd_server_open(h->loop, fd, h->path, on_request, h, &h->server), 0);
	opd_server_close(h->server);
	h->server = NULL;
	assert_int_equal(lstat(h->path, &st), -1);
}

/* Before the file gets its mode, the owner of its directory puts a link to another file there. */
static void test_socket_that_is_replaced(void **state OP_UNUSED)
{
	char directory[BOX_PATH_BYTES], path[64];
	struct stat st;
	int fd;

	assert_int_equal(box_make(directory), 0);
	snprintf(path, sizeof(path), "%s/control", directory);
	snprintf(secret, sizeof(secret), "%s/secret", directory);
	fd = open(secret, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	replaced = path;
	has_group = true;
	assert_true(opd_server_listen(path, &fd) < 0);
	has_group = false;
	assert_null(replaced);
	assert_int_equal(stat(secret, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_gid, getegid());
	assert_int_equal(box_remove(directory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answers, server_setup, server_teardown),
		cmocka_unit_test_setup_teardown(test_answer_later, server_setup, server_teardown),
		cmocka_unit_test_setup_teardown(test_answer_to_nobody, server_setup, server_teardown),
		cmocka_unit_test_setup_teardown(test_requests_of_the_gone, server_setup, server_teardown),
		cmocka_unit_test_setup_teardown(test_other_version, server_setup, server_teardown),
		cmocka_unit_test_setup_teardown(test_garbage_is_dropped, server_setup, server_teardown),
		cmocka_unit_test_setup_teardown(test_largest_reply, server_setup, server_teardown),
		cmocka_unit_test_setup_teardown(test_reply_too_large, server_setup, server_teardown),
		cmocka_unit_test_setup_teardown(test_slow_reader, server_setup, server_teardown),
		cmocka_unit_test_setup_teardown(test_silent_is_dropped, server_setup, server_teardown),
		cmocka_unit_test_setup_teardown(test_crowd, server_setup, server_teardown),
		cmocka_unit_test_setup_teardown(test_access, server_setup, server_teardown),
		cmocka_unit_test_setup_teardown(test_socket_file, server_setup, server_teardown),
		cmocka_unit_test_setup_teardown(test_close_removes_its_own, server_setup, server_teardown),
		cmocka_unit_test(test_socket_that_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
