/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The server side of the control socket (libop/control/protocol.h), on an event loop of libsystemd.
 * Everything here belongs to the thread that runs the loop.
 *
 * A request that does not follow the protocol ends the connection. A client of another protocol
 * version first gets the version of this server. A request that the peer may not make gets -EPERM.
 * Every other request goes to the handler. The handler calls opd_server_reply, at once or later; no
 * other request of the same client is read before that. A client that sends nothing, or does not
 * read the reply, for OPD_SERVER_IDLE_SEC seconds is dropped. No client makes another one wait.
 *
 * A client that closes its connection keeps its place until its request is answered. So there are
 * never more requests than places.
 *
 * An unprivileged user has OPD_SERVER_MAX_PER_USER places. All unprivileged users together leave
 * that many places free, so a privileged user is always served. When a limit is reached, a new
 * client takes the place of the client under the same limit that was silent for the longest time.
 * If all of them have requests, the new connection is closed.
 *
 * The mode of the socket file decides who may connect. SO_PEERCRED and SO_PEERGROUPS tell who has
 * connected. Root and the user of the daemon may do everything. Members of the group may do what
 * the rows of OP_CONTROL_COMMANDS allow. Others may do nothing. The group is OPD_SERVER_GROUP. On a
 * host without this group it is the group of the daemon, except root's group.
 */
#ifndef OPD_SERVER_H
#define OPD_SERVER_H

#include <systemd/sd-event.h>

#include "libop/control/protocol.h"

#define OPD_SERVER_MAX_CLIENTS 64
#define OPD_SERVER_MAX_PER_USER 16
#define OPD_SERVER_IDLE_SEC 10
#define OPD_SERVER_GROUP "opd"

struct opd_server;

/* Names one request of one client. It stays valid when the client has gone. */
struct opd_client {
	uint32_t slot;
	uint32_t generation;
};

/*
 * Called from the loop. It may answer at once, but must not close the server. Each request must be
 * answered once, also when the client has gone. `name` is the name in the request, "" for most
 * requests, and valid during the call.
 */
typedef void (*opd_server_handler)(void *context, struct opd_client client, enum op_control_command command, const char *name);

/*
 * Locks "PATH.lock" before listening, so that no other opd uses the path until opd_server_unlock.
 * Daemons that start together then do not remove each other's socket. Makes the directory. 0 and a
 * descriptor; -EADDRINUSE: another opd has the lock (opd_server_lock_owner; 0: unknown); another
 * -errno.
 */
int opd_server_lock(const char *path, int *ret_fd) OP_NONNULL OP_MUST_CHECK;
void opd_server_unlock(const char *path, int fd) OP_NONNULL;
pid_t opd_server_lock_owner(const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * Makes a listening socket at `path`, and its directory if needed, with mode 0660 and group "opd"
 * if there is one. A socket file without a listener is replaced. 0 and a descriptor that the caller
 * owns; -EADDRINUSE: a program listens there; -ENOTSOCK: the path is something else than a socket;
 * another -errno.
 */
int opd_server_listen(const char *path, int *ret_fd) OP_NONNULL OP_MUST_CHECK;

/* The process that listens at `path`; 0: none or unknown; 1: systemd made the socket. */
pid_t opd_server_find_listener(const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * Serves the listening socket `listen_fd` (SOCK_SEQPACKET) on `loop`, and closes it at the end.
 * `unlink_path` is a socket file to be removed at the end if it is still the same file, or NULL. 0
 * and a server that opd_server_close frees; -errno, and listen_fd is still the caller's.
 */
int opd_server_open(sd_event *loop, int listen_fd, const char *unlink_path, opd_server_handler handler, void *context,
		    struct opd_server **ret_server) OP_NONNULL_ARGS(1, 4, 6) OP_MUST_CHECK;

/*
 * Answers a request: error 0 or -errno, and a payload by libop/control/protocol.h, which is copied.
 * The payload of an error is a text, which may be NULL; a text that is too long is cut off. 0, also
 * when the client is gone; -EMSGSIZE: the payload is larger than a reply, and the client gets that
 * as its answer; -ENOMEM: the client is dropped.
 */
int opd_server_reply(struct opd_server *server, struct opd_client client, int error, const void *payload, size_t payload_bytes)
	OP_NONNULL_ARGS(1);

/* The same with an error and its text. */
int opd_server_reply_error(struct opd_server *server, struct opd_client client, int error, const char *message) OP_NONNULL;

/* Places in use, and clients that were dropped for a fault of theirs. */
size_t opd_server_nr_clients(const struct opd_server *server) OP_NONNULL;
uint64_t opd_server_nr_dropped(const struct opd_server *server) OP_NONNULL;

/* Closes the socket and all clients, and removes the socket file. NULL is allowed. */
void opd_server_close(struct opd_server *server);

#endif
