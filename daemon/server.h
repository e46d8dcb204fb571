/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The server side of the control socket (libop/control/protocol.h), on an event loop of libsystemd. Everything here belongs to the thread
 * that runs the loop.
 *
 * A client that has connected is read when the loop runs. A request that is not exactly one of the protocol ends the connection;
 * one of another version of it is told the version that is spoken here before that. A request that the peer may not make is
 * answered with -EPERM. Everything else goes to the handler, which answers with opd_server_reply at once or later; until then no
 * other request of the same client is read. Who sends nothing or does not take the reply for OPD_SERVER_IDLE_SEC seconds is
 * dropped. A client never makes another one wait.
 *
 * Who hangs up while the handler has the request keeps the place until that is answered: there are never more requests under way
 * than places.
 *
 * A newcomer beyond a limit takes the place of the one under the same limit that has been silent for the longest time; where all
 * of those have requests under way, its connection is closed. A user who may not do everything has OPD_SERVER_MAX_PER_USER
 * places, all such users together so many fewer than there are: whatever they do, one who may do everything is served.
 *
 * Who may connect is the mode of the socket file. Who has connected is known by SO_PEERCRED and SO_PEERGROUPS: root and the user
 * that the daemon runs as may do everything, members of the group what its row of OP_CONTROL_COMMANDS says, others nothing. The
 * group is OPD_SERVER_GROUP; where the host has none, that of the daemon, unless it is root's.
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

/* Names one request of one client; stays good to hand over when the client has gone. */
struct opd_client {
	uint32_t slot;
	uint32_t generation;
};

/*
 * Called from the loop; may answer at once, but must not close the server. Each request is to be answered once, also when the
 * client has gone, which keeps its place until then. `name` is that of the request, "" for most, and good during the call.
 */
typedef void (*opd_server_handler)(void *context, struct opd_client client, enum op_control_command command, const char *name);

/*
 * Before listening: keeps every other opd from the path, "PATH.lock", until opd_server_unlock, so that of several that start together each sees either a socket that answers or
 * none, and nobody removes the one of another. Makes the directory. 0 and a descriptor; -EADDRINUSE: another opd has it (opd_server_lock_owner; 0: unknown); another -errno.
 */
int opd_server_lock(const char *path, int *ret_fd) OP_NONNULL OP_MUST_CHECK;
void opd_server_unlock(const char *path, int fd) OP_NONNULL;
pid_t opd_server_lock_owner(const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * Makes a listening socket at `path`: the directory as needed, mode 0660, group "opd" where there is one. A socket file that
 * nobody listens on any more is replaced. 0 and a descriptor that the caller owns; -EADDRINUSE: somebody answers there;
 * -ENOTSOCK: something else than a socket lies there; another -errno.
 */
int opd_server_listen(const char *path, int *ret_fd) OP_NONNULL OP_MUST_CHECK;

/* The process that listens at `path`; 0 when there is none, or nobody says. Behind a socket that systemd made it is systemd. */
pid_t opd_server_find_listener(const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * Serves the listening socket `listen_fd` (SOCK_SEQPACKET), which the server closes at its end, on `loop`. `unlink_path`: a
 * socket file that is to be removed at the end if it is still the one of now, or NULL. 0 and a server that opd_server_close
 * frees; -errno, and then listen_fd is still the caller's.
 */
int opd_server_open(sd_event *loop, int listen_fd, const char *unlink_path, opd_server_handler handler, void *context,
		    struct opd_server **ret_server) OP_NONNULL_ARGS(1, 4, 6) OP_MUST_CHECK;

/*
 * Answers a request, once: error 0 or -errno, payload as libop/control/protocol.h says (for an error a text, which may be NULL). The
 * payload is copied. 0, also when the client is gone; -EMSGSIZE: larger than a reply can be, the client was told so instead;
 * -ENOMEM: the client is dropped. Of an error's text that is too long the end is left out.
 */
int opd_server_reply(struct opd_server *server, struct opd_client client, int error, const void *payload, size_t payload_bytes)
	OP_NONNULL_ARGS(1);

/* The same with an error and its text. */
int opd_server_reply_error(struct opd_server *server, struct opd_client client, int error, const char *message) OP_NONNULL;

/* Places that are taken: clients that are connected, or have left with a request under way. And clients that were dropped because of what they sent or did not do. */
size_t opd_server_nr_clients(const struct opd_server *server) OP_NONNULL;
uint64_t opd_server_nr_dropped(const struct opd_server *server) OP_NONNULL;

/* Closes the socket and all clients, also with replies that were not yet sent, and removes the socket file. NULL is allowed. */
void opd_server_close(struct opd_server *server);

#endif
