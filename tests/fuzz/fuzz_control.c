/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fuzz target for the control socket. Input: steps of a few clients. A step is one byte for client
 * (low bits) and action (high bits), one byte for an amount, and the bytes of a message. Requests
 * become jobs as in opd; some jobs wait until others have been requested. The handler must see
 * valid requests only. There are never more clients than allowed, nor more jobs than clients, and a
 * well-behaved client gets its answer. The input is also read as the daemon's reply to STATUS.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/jobs/queue.h"
#include "daemon/server.h"

#define NR_CLIENTS 4

enum step { SEND, SEND_CHANGED, READ, LEAVE, NR_STEPS };

struct world {
	sd_event *loop;
	struct opd_server *server;
	char path[64];
	int fds[NR_CLIENTS];
	unsigned int nr_handled;
	struct opd_job *waiting;
	size_t nr_jobs;
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static const enum opd_job_kind kinds[] = {
	[OP_CONTROL_STATUS] = OPD_JOB_STATUS, [OP_CONTROL_START] = OPD_JOB_START, [OP_CONTROL_STOP] = OPD_JOB_STOP,
	[OP_CONTROL_DUMP] = OPD_JOB_DUMP,     [OP_CONTROL_RESET] = OPD_JOB_RESET, [OP_CONTROL_SHUTDOWN] = OPD_JOB_QUIT,
	[OP_CONTROL_SAVE] = OPD_JOB_SAVE,
};

/* Some jobs wait, as those of a sync thread that is busy. */
static void on_request(void *context, struct opd_client client, enum op_control_command command, const char *name)
{
	struct opd_job *job = calloc(1, sizeof(*job));
	struct world *world = context;

	check(job && op_control_name(command) && strlen(name) < sizeof(job->name));
	check(command == OP_CONTROL_SAVE || !*name);
	job->arg = malloc(sizeof(client));
	check(job->arg != NULL);
	memcpy(job->arg, &client, sizeof(client));
	job->kind = kinds[command];
	opd_jobs_append(&world->waiting, job);
	world->nr_jobs++;
	world->nr_handled++;
	check(world->nr_jobs <= OPD_SERVER_MAX_CLIENTS);
}

/* The next job is done, and each that it is the answer to. */
static bool do_job(struct world *world)
{
	struct opd_job *done = opd_jobs_take(&world->waiting);

	if (!done)
		return false;
	done = opd_job_spread(done);
	for (const struct opd_job *job = done; job; job = job->next) {
		(void)opd_server_reply(world->server, *(const struct opd_client *)job->arg, 0, NULL, 0);
		world->nr_jobs--;
	}
	opd_jobs_free(done);
	return true;
}

static int connect_client(const struct world *world)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	check(fd >= 0);
	memcpy(address.sun_path, world->path, strlen(world->path) + 1);
	check(!connect(fd, (const struct sockaddr *)&address, sizeof(address)) || errno == EAGAIN);
	return fd;
}

static void settle(const struct world *world)
{
	for (int i = 0; i < 200 && sd_event_run(world->loop, 0) > 0; i++)
		check(opd_server_nr_clients(world->server) <= OPD_SERVER_MAX_CLIENTS);
}

/* A request that is sound but for one byte. */
static void send_changed(int fd, const uint8_t *bytes, size_t nr_bytes)
{
	struct op_control_request request = { .magic = OP_CONTROL_MAGIC,
					      .version = OP_CONTROL_VERSION,
					      .command = OP_CONTROL_STATUS };

	if (nr_bytes >= 2)
		((uint8_t *)&request)[bytes[0] % sizeof(request)] = bytes[1];
	if (nr_bytes >= 3)
		request.command = bytes[2];
	(void)!send(fd, &request, sizeof(request), MSG_NOSIGNAL);
}

static void do_step(struct world *world, uint8_t what, const uint8_t *bytes, size_t nr_bytes)
{
	int *fd = &world->fds[what % NR_CLIENTS];
	char reply[512];

	switch ((enum step)(what / NR_CLIENTS % NR_STEPS)) {
	case SEND:
		(void)!send(*fd, bytes, nr_bytes, MSG_NOSIGNAL);
		break;
	case SEND_CHANGED:
		send_changed(*fd, bytes, nr_bytes);
		break;
	case READ:
		(void)!recv(*fd, reply, sizeof(reply), 0);
		break;
	case LEAVE:
	case NR_STEPS:
		close(*fd);
		*fd = connect_client(world);
		break;
	}
}

static void ask_properly(struct world *world)
{
	struct op_control_request request = { .magic = OP_CONTROL_MAGIC,
					      .version = OP_CONTROL_VERSION,
					      .command = OP_CONTROL_DUMP };
	struct op_control_reply reply;
	int fd = connect_client(world);

	check(send(fd, &request, sizeof(request), MSG_NOSIGNAL) == (ssize_t)sizeof(request));
	do
		settle(world);
	while (do_job(world));
	check(recv(fd, &reply, sizeof(reply), 0) == (ssize_t)sizeof(reply) && !reply.error);
	close(fd);
}

static void open_world(struct world *world)
{
	int fd = -1;

	*world = (struct world){ 0 };
	snprintf(world->path, sizeof(world->path), "/dev/shm/opd-fuzz-control.%d", (int)getpid());
	check(sd_event_new(&world->loop) >= 0 && !opd_server_listen(world->path, &fd));
	check(!opd_server_open(world->loop, fd, world->path, on_request, world, &world->server));
	for (int i = 0; i < NR_CLIENTS; i++)
		world->fds[i] = connect_client(world);
}

static void close_world(struct world *world)
{
	for (int i = 0; i < NR_CLIENTS; i++)
		close(world->fds[i]);
	settle(world);
	opd_jobs_free(world->waiting);
	opd_server_close(world->server);
	sd_event_unref(world->loop);
	check(access(world->path, F_OK) < 0);
}

static void read_as_status(const uint8_t *bytes, size_t nr_bytes)
{
	const struct op_ledger_event *events;
	const struct op_ledger_cpu *cpus;
	const struct op_status *status;
	uint64_t *copy = malloc(nr_bytes + sizeof(uint64_t));

	check(copy != NULL);
	memcpy(copy, bytes, nr_bytes);
	if (!op_control_status_parts(copy, nr_bytes, &status, &events, &cpus))
		check((const char *)(cpus + status->nr_cpus) == (const char *)copy + nr_bytes);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	struct world world;

	read_as_status(bytes, nr_bytes);
	open_world(&world);
	while (nr_bytes >= 2) {
		size_t length = bytes[1] < nr_bytes - 2 ? bytes[1] : nr_bytes - 2;

		do_step(&world, bytes[0], bytes + 2, length);
		if (bytes[0] & 0x80)
			settle(&world);
		if (world.nr_handled % 5 == 4)
			do_job(&world);
		bytes += 2 + length;
		nr_bytes -= 2 + length;
	}
	settle(&world);
	ask_properly(&world);
	close_world(&world);
	return 0;
}
