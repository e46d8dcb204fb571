/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/capture/opener.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/base/log.h"
#include "libop/base/sys.h"
#include "libop/events/event_request.h"
#include "libop/process/pass.h"

/* systemd starts opd-events first; both tries together are less than WatchdogSec= */
#define ANSWER_SECONDS 20
/* No try for so long after an answer that did not come: the start asks for many events. */
#define PAUSE_NS       (60 * OP_NS_PER_S)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* protected by lock */
static struct sockaddr_un address = { .sun_family = AF_UNIX };
static int socket_fd = -1;
static uint64_t pause_until_ns;

bool opd_opener_is_needed(void)
{
	uint64_t level;

	return !op_file_read_u64(OP_PARANOID_PATH, 0, INT32_MAX, &level) && level > OP_PARANOID_MAX;
}

/* Whoever listens decides which descriptors opd gets. */
static bool is_of_root(int fd)
{
	struct ucred peer;
	socklen_t nr_bytes = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &nr_bytes) && peer.uid == 0;
}

static int connect_now(void)
{
	const struct timeval time = { .tv_sec = ANSWER_SECONDS };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)) < 0 ||
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		err = -errno;
	else if (!is_of_root(fd))
		err = -EACCES;
	if (err == -EACCES)
		op_log(OP_LOG_WARNING, "%s is not root's socket, or not this user's: opd asks it for nothing", address.sun_path);
	if (err) {
		close(fd);
		return err;
	}
	socket_fd = fd;
	op_log(OP_LOG_INFO, "kernel.perf_event_paranoid is above 2: opd-events opens the perf events");
	return 0;
}

static void disconnect(void)
{
	close(socket_fd);
	socket_fd = -1;
}

/* -EPIPE: the other end has closed the connection, or answers with what is no answer. */
static int exchange(struct op_event_request *request)
{
	struct iovec part = { request, sizeof(*request) };
	struct op_event_answer answer = { 0 };
	int fd = -1;
	ssize_t nr = op_pass_send(socket_fd, &part, 1, -1, 0);

	if (nr == sizeof(*request))
		nr = op_pass_receive(socket_fd, &answer, sizeof(answer), &fd);
	if (nr == sizeof(answer) && answer.err < 0 && fd < 0)
		return answer.err;
	if (nr == sizeof(answer) && !answer.err && fd >= 0)
		return fd;
	if (fd >= 0)
		close(fd);
	disconnect();
	return nr == -EAGAIN ? -ETIMEDOUT : -EPIPE;
}

/* opd-events may have ended since the last request: then systemd starts another one. */
static int ask_now(struct op_event_request *request)
{
	bool was_connected = socket_fd >= 0;
	int result = was_connected ? exchange(request) : -EPIPE;

	if (result != -EPIPE)
		return result;
	result = connect_now();
	return result ? result : exchange(request);
}

/* Without an answer: the kernel's EACCES. An event of this process becomes one of its CPU. */
static int ask(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	struct op_event_request request = { .cpu = cpu >= 0 ? cpu : sched_getcpu(), .attr = *attr };
	int result = -EACCES;

	if ((pid != -1 && (pid != 0 || cpu >= 0)) || !opd_opener_is_needed())
		return -EACCES;
	request.attr.size = sizeof(request.attr);
	pthread_mutex_lock(&lock);
	if (op_clock_ns(OP_CLOCK) >= pause_until_ns)
		result = ask_now(&request);
	if (socket_fd < 0 && result < 0) {
		if (result == -ETIMEDOUT)
			pause_until_ns = op_clock_ns(OP_CLOCK) + PAUSE_NS;
		if (result != -EACCES && result != -ENOENT)
			op_log(OP_LOG_WARNING, "opd-events opens no perf events (%s): %s", address.sun_path, strerror(-result));
		result = -EACCES;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

void opd_opener_use(const char *control_socket)
{
	const char *end = strrchr(control_socket, '/');
	int nr_bytes = end ? (int)(end - control_socket) + 1 : 0;

	if (snprintf(address.sun_path, sizeof(address.sun_path), "%.*s" OP_EVENT_SOCKET_NAME, nr_bytes, control_socket) <
	    (int)sizeof(address.sun_path))
		op_sys_event_opener = ask;
}
