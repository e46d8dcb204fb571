/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/control/protocol.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/session/close.h"

static_assert(sizeof(struct op_control_request) == 224, "on the wire");
static_assert(sizeof(((struct op_control_request *)NULL)->name) > OP_SESSION_NAME_MAX, "room for every name");
static_assert(sizeof(struct op_control_reply) == 16, "on the wire");
static_assert(sizeof(struct op_status) % 8 == 0, "the events follow at once");
static_assert(sizeof(struct op_ledger_event) % 8 == 0, "the CPUs follow at once");

static const struct command {
	unsigned int number;
	const char *name;
	bool group_may, has_name;
	size_t request_bytes, payload_bytes, event_bytes, cpu_bytes;
} commands[] = {
#define X(nr, word, may, named, request, payload, event, cpu) { nr, #word, may, named, request, payload, event, cpu },
	OP_CONTROL_COMMANDS(X)
#undef X
};

#define X(nr, word, may, named, request, payload, event, cpu)                                                                      \
	static_assert((request) == sizeof(struct op_control_request), "all requests are one struct");                              \
	static_assert(!((event) + (cpu)) || (payload) == sizeof(struct op_status), "it has the numbers of events and CPUs");
OP_CONTROL_COMMANDS(X)
#undef X

static const struct command *find_command(unsigned int number)
{
	for (size_t i = 0; i < op_array_size(commands); i++)
		if (commands[i].number == number)
			return &commands[i];
	return NULL;
}

const char *op_control_name(unsigned int command)
{
	const struct command *found = find_command(command);

	return found ? found->name : NULL;
}

bool op_control_group_may(unsigned int command)
{
	const struct command *found = find_command(command);

	return found && found->group_may;
}

/* ---- lengths ---- */

/* The part of a request that all versions have. */
#define REQUEST_HEAD_BYTES (offsetof(struct op_control_request, command) + sizeof(uint16_t))

static bool ends_in_zeros(const char *bytes, size_t from, size_t nr_bytes)
{
	while (from < nr_bytes && !bytes[from])
		from++;
	return from >= nr_bytes;
}

enum op_control_soundness op_control_check_request(const struct op_control_request *request, size_t nr_bytes)
{
	const struct command *command;
	size_t length;

	if (nr_bytes < REQUEST_HEAD_BYTES || request->magic != OP_CONTROL_MAGIC)
		return OP_CONTROL_MALFORMED;
	if (request->version != OP_CONTROL_VERSION)
		return OP_CONTROL_OTHER_VERSION;
	command = find_command(request->command);
	if (!command || nr_bytes != command->request_bytes || request->reserved[0] || request->reserved[1])
		return OP_CONTROL_MALFORMED;
	length = strnlen(request->name, sizeof(request->name));
	if (length == sizeof(request->name) || (length && !command->has_name) ||
	    !ends_in_zeros(request->name, length, sizeof(request->name)))
		return OP_CONTROL_MALFORMED;
	return OP_CONTROL_SOUND;
}

static bool payload_fits(const struct command *command, const void *payload, size_t nr_bytes)
{
	const struct op_status *status = payload;
	uint64_t expected = command->payload_bytes;

	if (nr_bytes < expected)
		return false;
	if (command->event_bytes || command->cpu_bytes)
		expected += status->nr_events * (uint64_t)command->event_bytes + status->nr_cpus * (uint64_t)command->cpu_bytes;
	return nr_bytes == expected;
}

static enum op_control_soundness check_reply(const struct op_control_reply *reply, size_t nr_bytes, unsigned int command)
{
	const struct command *asked = find_command(command);

	if (nr_bytes < sizeof(*reply) || reply->magic != OP_CONTROL_MAGIC || reply->payload_bytes != nr_bytes - sizeof(*reply) ||
	    reply->command != command || reply->error > 0)
		return OP_CONTROL_MALFORMED;
	if (reply->version != OP_CONTROL_VERSION)
		return OP_CONTROL_OTHER_VERSION;
	if (!asked || (!reply->error && !payload_fits(asked, reply + 1, reply->payload_bytes)))
		return OP_CONTROL_MALFORMED;
	return OP_CONTROL_SOUND;
}

/* ---- a call ---- */

/* connect(2) waits while the queue of the daemon is full. */
static int limit_connect(int fd, int timeout_ms)
{
	struct timeval limit = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };

	if (timeout_ms < 0)
		return 0;
	if (!timeout_ms)
		limit.tv_usec = 1; /* 0 would be no limit */
	return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ? -errno : 0;
}

static int connect_to(const char *path, int timeout_ms, int *ret_fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	err = limit_connect(fd, timeout_ms);
	while (!err && connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		if (errno != EINTR)
			err = errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (err)
		close(fd);
	else
		*ret_fd = fd;
	return err;
}

static int send_request(int fd, enum op_control_command command, const char *session)
{
	struct op_control_request request = { .magic = OP_CONTROL_MAGIC,
					      .version = OP_CONTROL_VERSION,
					      .command = (uint16_t)command };
	ssize_t nr;

	if (strlen(session) >= sizeof(request.name))
		return -EINVAL;
	memcpy(request.name, session, strlen(session));
	do
		nr = send(fd, &request, sizeof(request), MSG_NOSIGNAL);
	while (nr < 0 && errno == EINTR);
	return nr < 0 ? -errno : 0;
}

static uint64_t now_ms(void)
{
	return op_now_ns() / OP_NS_PER_MS;
}

/* A signal does not extend the time. */
static int wait_readable(int fd, int timeout_ms)
{
	uint64_t end = now_ms() + (timeout_ms < 0 ? 0 : (uint64_t)timeout_ms);

	for (;;) {
		struct pollfd pollfd = { .fd = fd, .events = POLLIN };
		uint64_t now = now_ms();
		int nr = poll(&pollfd, 1, timeout_ms < 0 ? -1 : end > now ? (int)(end - now) : 0);

		if (nr > 0)
			return 0;
		if (!nr)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

/* Receives the reply with its payload, and adds a NUL. */
static int receive_reply(int fd, int timeout_ms, struct op_control_reply **ret_reply, size_t *ret_bytes)
{
	struct op_control_reply *reply;
	ssize_t nr;
	int err = wait_readable(fd, timeout_ms);

	if (err < 0)
		return err;
	reply = malloc(OP_CONTROL_MAX_REPLY + 1);
	if (!reply)
		return -ENOMEM;
	do
		nr = recv(fd, reply, OP_CONTROL_MAX_REPLY, MSG_TRUNC);
	while (nr < 0 && errno == EINTR);
	if (nr <= 0 || nr > OP_CONTROL_MAX_REPLY) {
		err = nr < 0 ? -errno : !nr ? -ECONNRESET : -EPROTO;
		free(reply);
		return err;
	}
	((char *)reply)[nr] = '\0';
	*ret_reply = reply;
	*ret_bytes = (size_t)nr;
	return 0;
}

static const struct {
	int err;
	const char *text;
	bool is_of_call; /* from the daemon it means something else */
} failures[] = {
	{ ENOENT, "opd is not running", true },
	{ ECONNREFUSED, "opd is not running", true },
	{ EACCES, "only root and members of the group opd may talk to opd", false },
	{ EPERM, "only root and members of the group opd may talk to opd", false },
	{ ENAMETOOLONG, "the path is too long for a socket", true },
	{ ECONNRESET, "opd closed the connection without an answer", true },
	{ EPIPE, "opd closed the connection without an answer", true },
	{ EPROTO, "the program at the socket is not opd", true },
	{ EPROTONOSUPPORT, "the running opd has another version", true },
	{ EPROTOTYPE, "the program at the socket is not opd", true },
	{ ETIMEDOUT, "opd does not answer", true },
	{ EAGAIN, "opd has too many requests waiting", true },
};

static int give_message(struct op_text *text, int err, char **ret_message)
{
	char *message = op_text_steal(text);

	if (!message)
		message = strdup("");
	if (!message)
		return -ENOMEM;
	*ret_message = message;
	return err;
}

static int fail(const char *socket_path, int err, char **ret_message)
{
	const char *reason = strerror(-err);
	struct op_text text = { 0 };

	for (size_t i = 0; i < op_array_size(failures); i++)
		if (failures[i].err == -err)
			reason = failures[i].text;
	op_text_printf(&text, "%s: %s", socket_path, reason);
	return give_message(&text, err, ret_message);
}

static int fail_version(const char *socket_path, unsigned int version, char **ret_message)
{
	struct op_text text = { 0 };

	op_text_printf(&text,
		       "%s: the running opd speaks version %u of the control protocol, but this program speaks version %u: "
		       "start the installed opd with 'systemctl restart opd', or with opcontrol --shutdown and --start",
		       socket_path, version, OP_CONTROL_VERSION);
	return give_message(&text, -EPROTONOSUPPORT, ret_message);
}

/* The daemon's error, or -EREMOTEIO when it looks like a failed call. */
static int daemons_error(int err)
{
	for (size_t i = 0; i < op_array_size(failures); i++)
		if (failures[i].is_of_call && failures[i].err == -err)
			return -EREMOTEIO;
	return err;
}

/* Makes one line of the daemon's message, without control characters. */
static int fail_with_reply(struct op_control_reply *reply, char **ret_message)
{
	char *text = (char *)(reply + 1);

	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = ' ';
	text = strdup(*text ? text : strerror(-reply->error));
	if (!text)
		return -ENOMEM;
	*ret_message = text;
	return daemons_error(reply->error);
}

static int take_payload(const struct op_control_reply *reply, void **ret_payload, size_t *ret_payload_bytes)
{
	char *payload = NULL;

	if (reply->payload_bytes) {
		payload = malloc(reply->payload_bytes + (size_t)1);
		if (!payload)
			return -ENOMEM;
		memcpy(payload, reply + 1, reply->payload_bytes + (size_t)1);
	}
	*ret_payload = payload;
	*ret_payload_bytes = reply->payload_bytes;
	return 0;
}

static int call(const char *socket_path, enum op_control_command command, const char *session, int timeout_ms, void **ret_payload,
		size_t *ret_payload_bytes, char **ret_message)
{
	struct op_control_reply *reply = NULL;
	size_t nr_bytes = 0;
	int fd = -1, err = connect_to(socket_path, timeout_ms, &fd);

	if (err < 0)
		return fail(socket_path, err, ret_message);
	err = send_request(fd, command, session);
	if (!err || err == -EPIPE)
		err = receive_reply(fd, timeout_ms, &reply, &nr_bytes);
	close(fd);
	if (err < 0)
		return fail(socket_path, err, ret_message);
	switch (check_reply(reply, nr_bytes, command)) {
	case OP_CONTROL_MALFORMED:
		err = fail(socket_path, -EPROTO, ret_message);
		break;
	case OP_CONTROL_OTHER_VERSION:
		err = fail_version(socket_path, reply->version, ret_message);
		break;
	case OP_CONTROL_SOUND:
		err = reply->error ? fail_with_reply(reply, ret_message) : take_payload(reply, ret_payload, ret_payload_bytes);
		break;
	}
	free(reply);
	return err;
}

int op_control_call_within(const char *socket_path, enum op_control_command command, int timeout_ms, void **ret_payload,
			   size_t *ret_payload_bytes, char **ret_message)
{
	return call(socket_path, command, "", timeout_ms, ret_payload, ret_payload_bytes, ret_message);
}

int op_control_save(const char *socket_path, const char *name, char **ret_message)
{
	void *payload = NULL;
	size_t nr_bytes;
	int err = call(socket_path, OP_CONTROL_SAVE, name, -1, &payload, &nr_bytes, ret_message);

	free(payload);
	return err;
}

int op_control_call(const char *socket_path, enum op_control_command command, void **ret_payload, size_t *ret_payload_bytes,
		    char **ret_message)
{
	return op_control_call_within(socket_path, command, -1, ret_payload, ret_payload_bytes, ret_message);
}

static bool is_terminated(const char *string, size_t nr_bytes)
{
	return memchr(string, '\0', nr_bytes) != NULL;
}

static bool strings_terminated(const struct op_status *status, const struct op_ledger_event *events)
{
	for (uint32_t i = 0; i < status->nr_events; i++)
		if (!is_terminated(events[i].name, sizeof(events[i].name)))
			return false;
	return is_terminated(status->session_dir, sizeof(status->session_dir)) &&
	       is_terminated(status->vmlinux, sizeof(status->vmlinux)) &&
	       is_terminated(status->kernel_note, sizeof(status->kernel_note));
}

int op_control_status_parts(const void *payload, size_t payload_bytes, const struct op_status **ret_status,
			    const struct op_ledger_event **ret_events, const struct op_ledger_cpu **ret_cpus)
{
	const struct op_status *status = payload;
	const struct op_ledger_event *events = (const struct op_ledger_event *)(status + 1);

	if (!payload_fits(find_command(OP_CONTROL_STATUS), payload, payload_bytes) || !strings_terminated(status, events))
		return -EPROTO;
	*ret_status = status;
	*ret_events = events;
	*ret_cpus = (const struct op_ledger_cpu *)(events + status->nr_events);
	return 0;
}
