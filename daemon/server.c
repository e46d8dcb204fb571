/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/server.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/process/lock.h"
#include "libop/base/sys.h"

#define USEC_PER_SEC      1000000ull
#define ACCEPT_PAUSE_USEC (USEC_PER_SEC / 2)
#define LISTEN_BACKLOG    64
#define MAX_PAYLOAD       (OP_CONTROL_MAX_REPLY - sizeof(struct op_control_reply))

enum state { FREE, READING, HANDLING, GONE, SENDING };

/* The commands that a peer may send. */
enum rights { NOTHING, AS_GROUP, ALL_THERE_IS };

struct client {
	struct opd_server *server;
	enum state state;
	uint32_t generation;
	int fd; /* -1 in state GONE: the peer has left, and the handler has its request */
	uid_t uid;
	enum rights rights;
	uint16_t command;
	uint64_t since_usec; /* the begin of this state */
	sd_event_source *io;
	sd_event_source *timer;
	void *reply; /* in state SENDING */
	size_t reply_bytes;
};

struct opd_server {
	sd_event *loop;
	sd_event_source *accept_io, *accept_pause;
	int listen_fd;
	char *unlink_path;
	dev_t unlink_dev;
	ino_t unlink_ino;
	opd_server_handler handler;
	void *context;
	bool has_group;
	gid_t group;
	uint64_t nr_dropped;
	struct client clients[OPD_SERVER_MAX_CLIENTS];
};

/* ---- the socket file ---- */

static int fill_address(const char *path, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	memcpy(address->sun_path, path, strlen(path) + 1);
	return 0;
}

static int make_parent(const char *path)
{
	char *copy = strdup(path), *slash;
	int err = 0;

	if (!copy)
		return -ENOMEM;
	slash = strrchr(copy, '/');
	if (slash && slash != copy) {
		*slash = '\0';
		err = op_file_make_dirs(copy);
	}
	free(copy);
	return err;
}

static char *lock_path(const char *path)
{
	char *lock;

	return asprintf(&lock, "%s.lock", path) < 0 ? NULL : lock;
}

int opd_server_lock(const char *path, int *ret_fd)
{
	char *lock = lock_path(path);
	bool was_there;
	int err = lock ? make_parent(path) : -ENOMEM, fd = -1;

	if (!err) {
		fd = op_lock_take(AT_FDCWD, lock, &was_there);
		err = fd == -EBUSY ? -EADDRINUSE : fd < 0 ? fd : op_lock_write_pid(fd);
	}
	if (err && fd >= 0)
		opd_server_unlock(path, fd);
	if (!err)
		*ret_fd = fd;
	free(lock);
	return err;
}

void opd_server_unlock(const char *path, int fd)
{
	char *lock = lock_path(path);

	if (lock)
		op_sys_unlinkat(AT_FDCWD, lock, 0);
	free(lock);
	close(fd);
}

pid_t opd_server_lock_owner(const char *path)
{
	char *lock = lock_path(path);
	pid_t pid = lock ? op_lock_owner(AT_FDCWD, lock) : 0;

	free(lock);
	return pid;
}

/* Connects without waiting. 0 and a descriptor, or -errno. */
static int try_connect(const struct sockaddr_un *address, int *ret_fd)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -errno;
	err = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;
	if (err)
		close(fd);
	else
		*ret_fd = fd;
	return err;
}

static bool find_peer(int fd, struct ucred *peer)
{
	socklen_t nr_bytes = sizeof(*peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &nr_bytes);
}

pid_t opd_server_find_listener(const char *path)
{
	struct sockaddr_un address;
	struct ucred peer;
	pid_t pid = 0;
	int fd;

	if (fill_address(path, &address) < 0 || try_connect(&address, &fd) < 0)
		return 0;
	if (find_peer(fd, &peer))
		pid = peer.pid;
	close(fd);
	return pid;
}

/* Removes a socket file without a listener. 0 when the path is free now. */
static int remove_stale(const char *path, const struct sockaddr_un *address)
{
	struct stat st;
	int fd = -1, err;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -ENOTSOCK;
	err = try_connect(address, &fd);
	if (fd >= 0)
		close(fd);
	if (err != -ECONNREFUSED)
		return err == -ENOENT ? 0 : -EADDRINUSE;
	return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

/* Who may write to the directory may have put another file there since it was made. */
static int open_own(const char *path)
{
	int fd = op_sys_openat(AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	struct stat st;

	if (fd < 0 || (!fstat(fd, &st) && S_ISSOCK(st.st_mode) && st.st_uid == geteuid()))
		return fd;
	close(fd);
	return -EADDRINUSE;
}

static int give_to_group(const char *path, const struct group *group)
{
	char same[sizeof("/proc/self/fd/") + 10];
	int fd = open_own(path), err = 0;

	if (fd < 0)
		return fd;
	snprintf(same, sizeof(same), "/proc/self/fd/%d", fd);
	if ((group && geteuid() == 0 && fchownat(fd, "", (uid_t)-1, group->gr_gid, AT_EMPTY_PATH) < 0) || chmod(same, 0660) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* The file never has more permissions than at the end. Without the group only root can use it. */
static int bind_and_listen(int fd, const char *path, const struct sockaddr_un *address)
{
	mode_t mask = umask(0177);
	int err = bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;

	umask(mask);
	if (err)
		return err;
	err = give_to_group(path, getgrnam(OPD_SERVER_GROUP));
	if (!err && listen(fd, LISTEN_BACKLOG) < 0)
		err = -errno;
	if (err)
		unlink(path);
	return err;
}

int opd_server_listen(const char *path, int *ret_fd)
{
	struct sockaddr_un address;
	int fd, err = fill_address(path, &address);

	if (err < 0)
		return err;
	err = make_parent(path);
	if (err < 0)
		return err;
	err = remove_stale(path, &address);
	if (err < 0)
		return err;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	err = bind_and_listen(fd, path, &address);
	if (err < 0) {
		close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}

/* ---- clients ---- */

static uint64_t now_usec(const struct opd_server *server)
{
	uint64_t usec = 0;

	sd_event_now(server->loop, CLOCK_MONOTONIC, &usec);
	return usec;
}

/* The loop keeps a source alive until its handler returns. */
static void end_client(struct client *client)
{
	sd_event_source_disable_unref(client->io);
	sd_event_source_disable_unref(client->timer);
	if (client->fd >= 0)
		close(client->fd);
	free(client->reply);
	*client = (struct client){ .server = client->server, .fd = -1, .generation = client->generation + 1 };
}

/* The peer has hung up. Its request keeps the place until it is answered. */
static void leave(struct client *client)
{
	client->io = sd_event_source_disable_unref(client->io);
	client->timer = sd_event_source_disable_unref(client->timer);
	close(client->fd);
	client->fd = -1;
	client->state = GONE;
}

static void drop_client(struct client *client)
{
	client->server->nr_dropped++;
	end_client(client);
}

static const uint32_t awaited[] = { [READING] = EPOLLIN, [HANDLING] = 0, [SENDING] = EPOLLOUT };

/* Sets what the new state waits for. There is no timeout while the handler has the request. */
static int enter(struct client *client, enum state state)
{
	int err = sd_event_source_set_io_events(client->io, awaited[state]);

	client->state = state;
	client->since_usec = now_usec(client->server);
	if (err >= 0)
		err = sd_event_source_set_time_relative(client->timer, OPD_SERVER_IDLE_SEC * USEC_PER_SEC);
	if (err >= 0)
		err = sd_event_source_set_enabled(client->timer, state == HANDLING ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
	return err;
}

static void refuse(struct client *client, struct opd_client name)
{
	struct op_text text = { 0 };

	if (client->rights == NOTHING)
		op_text_add(&text, "only root and members of the group " OPD_SERVER_GROUP " may talk to opd");
	else
		op_text_printf(&text, "only root may send %s to opd", op_control_name(client->command));
	opd_server_reply_error(client->server, name, -EPERM, op_text_get(&text));
	op_text_free(&text);
}

static void handle(struct client *client, uint16_t command, const char *session)
{
	struct opd_server *server = client->server;
	struct opd_client name = { (uint32_t)(client - server->clients), client->generation };

	client->command = command;
	if (enter(client, HANDLING) < 0)
		drop_client(client);
	else if (client->rights == ALL_THERE_IS || (client->rights == AS_GROUP && op_control_group_may(command)))
		server->handler(server->context, name, (enum op_control_command)command, session);
	else
		refuse(client, name);
}

/* This form of reply is the same in all versions. It follows no reply that is still unread. */
static void tell_version(const struct client *client, uint16_t command)
{
	struct {
		struct op_control_reply reply;
		char text[64];
	} message = { .reply = { .magic = OP_CONTROL_MAGIC, .version = OP_CONTROL_VERSION, .command = command, .error = -EPROTO } };
	int length =
		snprintf(message.text, sizeof(message.text), "opd speaks version %d of the control protocol", OP_CONTROL_VERSION);

	message.reply.payload_bytes = (uint32_t)length;
	(void)!send(client->fd, &message, sizeof(message.reply) + (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void read_request(struct client *client)
{
	struct op_control_request request = { 0 };
	ssize_t nr = recv(client->fd, &request, sizeof(request), MSG_TRUNC | MSG_DONTWAIT);

	if (nr < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (nr <= 0) {
		end_client(client);
		return;
	}
	switch (op_control_check_request(&request, (size_t)nr)) {
	case OP_CONTROL_SOUND:
		handle(client, request.command, request.name);
		break;
	case OP_CONTROL_OTHER_VERSION:
		tell_version(client, request.command);
		drop_client(client);
		break;
	case OP_CONTROL_MALFORMED:
		drop_client(client);
		break;
	}
}

/* Sends the reply, now or when the socket has room. */
static void send_reply(struct client *client)
{
	ssize_t nr = send(client->fd, client->reply, client->reply_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (nr < 0 && (errno == EAGAIN || errno == EINTR)) {
		if (client->state != SENDING && enter(client, SENDING) < 0)
			drop_client(client);
		return;
	}
	if (nr < 0) {
		drop_client(client);
		return;
	}
	free(client->reply);
	client->reply = NULL;
	if (enter(client, READING) < 0)
		drop_client(client);
}

/* The last request of a peer that hung up is read first. */
static int on_client(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct client *client = userdata;

	(void)source;
	(void)fd;
	if (client->state == READING && revents & EPOLLIN)
		read_request(client);
	else if (revents & (EPOLLHUP | EPOLLERR) && client->state == HANDLING)
		leave(client);
	else if (revents & (EPOLLHUP | EPOLLERR))
		end_client(client);
	else if (client->state == SENDING && revents & EPOLLOUT)
		send_reply(client);
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source;
	(void)usec;
	drop_client(userdata);
	return 0;
}

/* The clients that share a limit with a new client, and that limit. */
enum kin { ALL, NOT_ROOT, SAME_USER };

static const size_t max_clients[] = {
	[ALL] = OPD_SERVER_MAX_CLIENTS,
	[NOT_ROOT] = OPD_SERVER_MAX_CLIENTS - OPD_SERVER_MAX_PER_USER,
	[SAME_USER] = OPD_SERVER_MAX_PER_USER,
};

static bool is_kin(const struct client *client, enum kin kin, uid_t uid)
{
	if (client->state == FREE)
		return false;
	return kin == ALL || (client->rights != ALL_THERE_IS && (kin == NOT_ROOT || client->uid == uid));
}

/* Drops the client that was silent for longest. False: all have requests. */
static bool make_room(struct opd_server *server, enum kin kin, uid_t uid)
{
	struct client *oldest = NULL;
	size_t nr = 0;

	for (size_t i = 0; i < OPD_SERVER_MAX_CLIENTS; i++) {
		struct client *client = &server->clients[i];

		if (!is_kin(client, kin, uid))
			continue;
		nr++;
		if (client->state == READING && (!oldest || client->since_usec < oldest->since_usec))
			oldest = client;
	}
	if (nr < max_clients[kin])
		return true;
	if (oldest)
		drop_client(oldest);
	return oldest;
}

/* The supplementary groups of a peer. Their number, or -errno. */
static ssize_t read_groups(int fd, gid_t **ret_groups)
{
	socklen_t nr_bytes = 0;
	gid_t *groups = NULL;

	/* The groups are those at the time of connect(2), so their number cannot change. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &nr_bytes) < 0 && errno != ERANGE)
		return -errno;
	if (nr_bytes)
		groups = malloc(nr_bytes);
	if (nr_bytes && !groups)
		return -ENOMEM;
	if (nr_bytes && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &nr_bytes) < 0) {
		free(groups);
		return -errno;
	}
	*ret_groups = groups;
	return (ssize_t)(nr_bytes / sizeof(*groups));
}

static bool is_member(const struct opd_server *server, int fd, const struct ucred *peer)
{
	bool found = server->has_group && peer->gid == server->group;
	gid_t *groups = NULL;
	ssize_t nr;

	if (!server->has_group || found)
		return found;
	nr = read_groups(fd, &groups);
	for (ssize_t i = 0; i < nr; i++)
		found |= groups[i] == server->group;
	free(groups);
	return found;
}

static enum rights find_rights(const struct opd_server *server, int fd, struct ucred *ret_peer)
{
	if (!find_peer(fd, ret_peer))
		return NOTHING;
	if (ret_peer->uid == 0 || ret_peer->uid == geteuid())
		return ALL_THERE_IS;
	return is_member(server, fd, ret_peer) ? AS_GROUP : NOTHING;
}

/* NULL: there is no place for this client. */
static struct client *find_place(struct opd_server *server, uid_t uid, enum rights rights)
{
	if (rights != ALL_THERE_IS && (!make_room(server, SAME_USER, uid) || !make_room(server, NOT_ROOT, uid)))
		return NULL;
	if (!make_room(server, ALL, uid))
		return NULL;
	for (size_t i = 0; i < OPD_SERVER_MAX_CLIENTS; i++)
		if (server->clients[i].state == FREE)
			return &server->clients[i];
	return NULL;
}

static void add_client(struct opd_server *server, int fd)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	enum rights rights = find_rights(server, fd, &peer);
	struct client *client = find_place(server, peer.uid, rights);
	int room = OP_CONTROL_MAX_REPLY;

	if (!client) {
		server->nr_dropped++;
		close(fd);
		return;
	}
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	client->fd = fd;
	client->uid = peer.uid;
	client->rights = rights;
	client->state = READING;
	if (sd_event_add_io(server->loop, &client->io, fd, EPOLLIN, on_client, client) < 0 ||
	    sd_event_add_time_relative(server->loop, &client->timer, CLOCK_MONOTONIC, OPD_SERVER_IDLE_SEC * USEC_PER_SEC,
				       USEC_PER_SEC, on_timer, client) < 0 ||
	    enter(client, READING) < 0)
		drop_client(client);
}

static int on_accept(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct opd_server *server = userdata;
	int client_fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)revents;
	if (client_fd >= 0) {
		add_client(server, client_fd);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
		sd_event_source_set_time_relative(server->accept_pause, ACCEPT_PAUSE_USEC);
		sd_event_source_set_enabled(server->accept_pause, SD_EVENT_ONESHOT);
	}
	return 0;
}

/* Descriptors and memory may be free again. */
static int on_accept_pause(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct opd_server *server = userdata;

	(void)source;
	(void)usec;
	sd_event_source_set_enabled(server->accept_io, SD_EVENT_ON);
	return 0;
}

/* ---- the server ---- */

static int remember_file(struct opd_server *server, const char *path)
{
	struct stat st;

	if (!path)
		return 0;
	if (lstat(path, &st) < 0)
		return -errno;
	server->unlink_path = strdup(path);
	if (!server->unlink_path)
		return -ENOMEM;
	server->unlink_dev = st.st_dev;
	server->unlink_ino = st.st_ino;
	return 0;
}

/* The group whose members may send requests. The group of root has other members on some hosts. */
static void find_group(struct opd_server *server)
{
	const struct group *group = getgrnam(OPD_SERVER_GROUP);

	server->group = group ? group->gr_gid : getegid();
	server->has_group = group || server->group;
}

static void remove_file(const struct opd_server *server)
{
	struct stat st;

	if (server->unlink_path && !lstat(server->unlink_path, &st) && st.st_dev == server->unlink_dev &&
	    st.st_ino == server->unlink_ino)
		unlink(server->unlink_path);
}

static void free_server(struct opd_server *server)
{
	sd_event_source_disable_unref(server->accept_io);
	sd_event_source_disable_unref(server->accept_pause);
	sd_event_unref(server->loop);
	free(server->unlink_path);
	free(server);
}

int opd_server_open(sd_event *loop, int listen_fd, const char *unlink_path, opd_server_handler handler, void *context,
		    struct opd_server **ret_server)
{
	struct opd_server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return -ENOMEM;
	server->loop = sd_event_ref(loop);
	server->listen_fd = listen_fd;
	server->handler = handler;
	server->context = context;
	for (size_t i = 0; i < OPD_SERVER_MAX_CLIENTS; i++)
		server->clients[i] = (struct client){ .server = server, .fd = -1 };
	find_group(server);
	err = remember_file(server, unlink_path);
	if (err >= 0 && fcntl(listen_fd, F_SETFL, O_NONBLOCK) < 0)
		err = -errno;
	if (err >= 0)
		err = sd_event_add_io(loop, &server->accept_io, listen_fd, EPOLLIN, on_accept, server);
	if (err >= 0)
		err = sd_event_add_time_relative(loop, &server->accept_pause, CLOCK_MONOTONIC, ACCEPT_PAUSE_USEC, 0,
						 on_accept_pause, server);
	if (err >= 0)
		err = sd_event_source_set_enabled(server->accept_pause, SD_EVENT_OFF);
	if (err < 0) {
		free_server(server);
		return err;
	}
	*ret_server = server;
	return 0;
}

/* The client of a request; NULL when another client has its slot. */
static struct client *find_client(struct opd_server *server, struct opd_client name)
{
	struct client *client = name.slot < OPD_SERVER_MAX_CLIENTS ? &server->clients[name.slot] : NULL;

	if (!client || client->generation != name.generation)
		return NULL;
	return client->state == HANDLING || client->state == GONE ? client : NULL;
}

/* The payload fits. */
static int reply_to(struct client *client, int error, const void *payload, size_t payload_bytes)
{
	struct op_control_reply *reply;

	if (client->state == GONE) {
		end_client(client);
		return 0;
	}
	reply = malloc(sizeof(*reply) + payload_bytes);
	if (!reply) {
		drop_client(client);
		return -ENOMEM;
	}
	*reply = (struct op_control_reply){ .magic = OP_CONTROL_MAGIC,
					    .version = OP_CONTROL_VERSION,
					    .command = client->command,
					    .error = error,
					    .payload_bytes = (uint32_t)payload_bytes };
	if (payload_bytes)
		memcpy(reply + 1, payload, payload_bytes);
	client->generation++;
	client->reply = reply;
	client->reply_bytes = sizeof(*reply) + payload_bytes;
	send_reply(client);
	return 0;
}

/* A text of an error that is too long is cut off. */
int opd_server_reply(struct opd_server *server, struct opd_client name, int error, const void *payload, size_t payload_bytes)
{
	struct client *client = find_client(server, name);
	char text[128];
	int length;

	if (error && payload_bytes > MAX_PAYLOAD)
		payload_bytes = MAX_PAYLOAD;
	if (payload_bytes <= MAX_PAYLOAD)
		return client ? reply_to(client, error, payload, payload_bytes) : 0;
	length = snprintf(text, sizeof(text), "the answer has %zu bytes, more than a reply can hold (%zu)", payload_bytes,
			  MAX_PAYLOAD);
	if (client)
		reply_to(client, -EMSGSIZE, text, (size_t)length);
	return -EMSGSIZE;
}

int opd_server_reply_error(struct opd_server *server, struct opd_client client, int error, const char *message)
{
	return opd_server_reply(server, client, error, message, strlen(message));
}

size_t opd_server_nr_clients(const struct opd_server *server)
{
	size_t nr = 0;

	for (size_t i = 0; i < OPD_SERVER_MAX_CLIENTS; i++)
		nr += server->clients[i].state != FREE;
	return nr;
}

uint64_t opd_server_nr_dropped(const struct opd_server *server)
{
	return server->nr_dropped;
}

void opd_server_close(struct opd_server *server)
{
	if (!server)
		return;
	for (size_t i = 0; i < OPD_SERVER_MAX_CLIENTS; i++)
		if (server->clients[i].state != FREE)
			end_client(&server->clients[i]);
	remove_file(server);
	close(server->listen_fd);
	free_server(server);
}
