/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests and signals become jobs for the sync thread. A job that comes back is answered. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "libop/base/log.h"
#include "daemon/main_thread.h"
#include "daemon/privileges.h"
#include "libop/base/clock.h"
#include "libop/control/protocol.h"
#include "libop/base/file.h"
#include "libop/process/lock.h"
#include "libop/base/parse.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/base/sys.h"

#define SYSTEMD_PID   1
#define MEMORY_LIMITS "LimitMEMLOCK= or kernel.perf_event_mlock_kb, or let opd have CAP_IPC_LOCK"

/* The configured size is used. The user should know before samples are lost if it is too small. */
static void report_rings(const struct opd *opd)
{
	const struct opd_capture *capture = &opd->pipeline.capture;
	const struct opd_plan *plan = &capture->plan;

	if (capture->ring_bytes < plan->need_bytes)
		op_log(OP_LOG_WARNING,
			"rings of %zu KiB are less than the %llu KiB that %llu samples per second and CPU need until "
			"the next visit (a turn of %llu ms, %s)",
			capture->ring_bytes / 1024, (unsigned long long)plan->need_bytes / 1024,
			(unsigned long long)plan->samples_per_second, (unsigned long long)(plan->turn_ns / OP_NS_PER_MS),
			capture->is_shrunk ? "larger ones do not fit: raise " MEMORY_LIMITS
			: opd->config.ring_bytes ? "use RingSize=auto"
						 : "use a larger RingSize=");
	if (capture->sideband_bytes < plan->sideband_bytes && !opd->config.sideband_bytes)
		op_log(OP_LOG_WARNING, "side-band rings have %zu KiB, not %zu: larger ones do not fit: raise " MEMORY_LIMITS,
		       capture->sideband_bytes / 1024, (size_t)plan->sideband_bytes / 1024);
}

/* Only root can read a session directory of root's group that is closed to others. */
static void report_readers(const struct opd *opd)
{
	struct stat st;

	if (!op_sys_fstat(opd->session_fd, &st) && !st.st_gid && !(st.st_mode & 0005))
		op_log(OP_LOG_NOTICE,
		       "only root may read the sessions, because the group of %s is root: to let group " OP_SESSION_OWNER " "
		       "read them, run chgrp -R " OP_SESSION_OWNER " on it",
		       opd->session_dir);
}

/* Beyond the limit a file does not grow, with EFBIG: opd ignores the signal for that. */
static void report_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		op_log(OP_LOG_WARNING,
		       "the limit of file size is %llu KiB, and samples that need larger files are lost_file_limit: raise "
		       "LimitFSIZE= or ulimit -f",
		       (unsigned long long)limit.rlim_cur / 1024);
}

/* Notes on this host. They come after the start, so that a failed start logs one line only. */
static void report_host(const struct opd *opd)
{
	if (!opd->setup.nr_events && !opd->status.has_pmu)
		op_log(OP_LOG_NOTICE, "no hardware counters on this host (a virtual machine?): sampling by timer, %s:%llu",
			opd->default_event.name, (unsigned long long)opd->default_event.count);
	report_rings(opd);
	report_file_limit();
	report_readers(opd);
	if (opd->setup.image_filter)
		op_log(OP_LOG_NOTICE, "the setup has an image filter: opd keeps only samples of %s", opd->setup.image_filter);
	op_log(OP_LOG_INFO, "%s", opd->pipeline.resolver.kernel.note);
	opd_privileges_report();
}

void opd_ready(struct opd *opd, bool profiling)
{
	const struct op_log_field fields[] = {
		{ .name = "OPD_CPUS", .number = opd->pipeline.capture.nr_online },
		{ .name = "OPD_SESSION_DIR", .text = opd->session_dir },
		{ .name = "OPD_PROFILING", .text = profiling ? "yes" : "no" },
	};

	report_host(opd);
	op_log_with(OP_LOG_INFO, fields, op_array_size(fields), "ready: %zu CPUs, session directory %s, %s",
		     opd->pipeline.capture.nr_online, opd->session_dir, profiling ? "profiling" : "paused");
	opd_service_ready(&opd->service, profiling);
}

struct opd_job *opd_job_new(enum opd_job_kind kind, void *arg)
{
	struct opd_job *job = calloc(1, sizeof(*job));

	if (job) {
		job->kind = kind;
		job->arg = arg;
	}
	return job;
}

void opd_quit(struct opd *opd)
{
	if (opd->quitting)
		return;
	opd->quitting = true;
	opd_service_stopping(&opd->service);
	opd_job_queue_submit(&opd->sync.queue, opd->quit_job);
	opd->quit_job = NULL;
}

/* ---- SIGHUP ---- */

/*
 * The new numbers for the sync thread; NULL: no change. Changed strings take effect only when opd
 * starts again.
 */
static struct op_config *read_numbers(const struct opd *opd)
{
	struct op_text waiting = { 0 };
	struct op_config fresh, *numbers = NULL;

	if (opd_read_config(opd, &fresh) < 0)
		return NULL;
	op_config_waiting(&opd->config, &fresh, &waiting);
	if (waiting.length)
		op_log(OP_LOG_NOTICE, "takes effect at the next start: %s", op_text_get(&waiting));
	numbers = calloc(1, sizeof(*numbers));
	if (numbers)
		op_config_adopt(numbers, &fresh);
	op_text_free(&waiting);
	op_config_free(&fresh);
	return numbers;
}

void opd_reload(struct opd *opd)
{
	struct opd_job *job;

	if (opd->quitting || opd->starting)
		return;
	opd_service_reloading(&opd->service);
	job = opd_job_new(OPD_JOB_RELOAD, NULL);
	if (!job) {
		op_log(OP_LOG_ERR, "cannot read the configuration again: no memory");
		opd_service_reloaded(&opd->service);
		return;
	}
	job->payload = read_numbers(opd);
	opd_job_queue_submit(&opd->sync.queue, job);
}

/* ---- requests ---- */

/* The job for each command. The server has checked who may send it. */
static const enum opd_job_kind jobs_of_commands[] = {
	[OP_CONTROL_STATUS] = OPD_JOB_STATUS, [OP_CONTROL_START] = OPD_JOB_START, [OP_CONTROL_STOP] = OPD_JOB_STOP,
	[OP_CONTROL_DUMP] = OPD_JOB_DUMP,     [OP_CONTROL_RESET] = OPD_JOB_RESET, [OP_CONTROL_SHUTDOWN] = OPD_JOB_QUIT,
	[OP_CONTROL_SAVE] = OPD_JOB_SAVE,
};

/* False, after an answer, when no session may have that name. */
static bool check_name(struct opd *opd, struct opd_client client, enum op_control_command command, const char *name)
{
	const char *fault = command == OP_CONTROL_SAVE ? op_session_name_fault(name) : NULL;
	char text[128];

	if (!fault)
		return true;
	snprintf(text, sizeof(text), "invalid name of a session: %s", fault);
	opd_server_reply_error(opd->server, client, -EINVAL, text);
	return false;
}

static void on_command(void *context, struct opd_client client, enum op_control_command command, const char *name)
{
	struct opd *opd = context;
	struct opd_job *job = NULL;
	struct opd_client *sender;

	if (opd->quitting) {
		opd_server_reply_error(opd->server, client, -ESHUTDOWN, "opd is shutting down");
		return;
	}
	if (!check_name(opd, client, command, name))
		return;
	sender = malloc(sizeof(*sender));
	if (sender)
		job = opd_job_new(jobs_of_commands[command], sender);
	if (!job) {
		free(sender);
		opd_server_reply_error(opd->server, client, -ENOMEM, "no memory");
		return;
	}
	*sender = client;
	job->keep = true;
	snprintf(job->name, sizeof(job->name), "%s", name);
	if (command == OP_CONTROL_SHUTDOWN) {
		opd->quitting = true;
		opd_service_stopping(&opd->service);
	}
	opd_job_queue_submit(&opd->sync.queue, job);
}

/* An error of the first START ends opd, since opd is not READY yet. */
static void started(struct opd *opd, const struct opd_job *job)
{
	opd->starting = false;
	if (job->error) {
		opd_fail("%s", job->message);
		sd_event_exit(opd->loop, -1);
	} else {
		opd_ready(opd, true);
	}
}

static const char *remedy_of(int session_fd, int err)
{
	struct stat st;

	if (!op_sys_fstat(session_fd, &st) && !st.st_nlink)
		return "; the session directory was removed: opcontrol --shutdown and --start make a new one";
	switch (err) {
	case -ENOSPC:
	case -EDQUOT:
		return "; make room: rm, or opcontrol --reset";
	case -EFBIG:
		return "; the file reached the limit of file size: raise LimitFSIZE= or ulimit -f";
	case -EISDIR:
	case -ENOTDIR:
	case -ELOOP:
	case -ENXIO: /* a pipe */
		return "; a file or directory of another kind has its name: remove that";
	default:
		return "";
	}
}

/* Says what to do about an error in a file of the session. */
static void add_remedy(const struct opd *opd, struct opd_job *job)
{
	static const bool is_of_session[] = {
		[OPD_JOB_DUMP] = true, [OPD_JOB_SAVE] = true, [OPD_JOB_RESET] = true, [OPD_JOB_QUIT] = true
	};
	size_t length = strlen(job->message);

	if (!job->is_of_session && (job->kind >= op_array_size(is_of_session) || !is_of_session[job->kind]))
		return;
	if (job->error && job->error != -EEXIST && job->error != -ENODATA)
		snprintf(job->message + length, sizeof(job->message) - length, "%s", remedy_of(opd->session_fd, job->error));
}

static void answer(struct opd *opd, const struct opd_job *job)
{
	const struct opd_client *sender = job->arg;

	if (job->error && !job->is_shared)
		op_log(OP_LOG_ERR, "%s%s", job->message,
			job->kind == OPD_JOB_QUIT ? "; the lock stays, so that the next opd checks the session" : "");
	if (sender && job->error)
		opd_server_reply_error(opd->server, *sender, job->error, job->message);
	else if (sender)
		opd_server_reply(opd->server, *sender, 0, job->payload, job->payload_bytes);
}

void opd_job_done(struct opd *opd, struct opd_job *job)
{
	add_remedy(opd, job);
	if (opd->starting && job->kind == OPD_JOB_START && !job->arg)
		started(opd, job);
	else
		answer(opd, job);
	if (job->kind == OPD_JOB_PULSE)
		opd_service_alive(&opd->service, job->error ? NULL : job->payload);
	else if (job->kind == OPD_JOB_RELOAD)
		opd_service_reloaded(&opd->service);
	else if (job->kind == OPD_JOB_START || job->kind == OPD_JOB_STOP)
		opd_service_pulse(&opd->service);
	if (job->kind == OPD_JOB_QUIT) {
		opd->is_unwritten = job->error;
		sd_event_exit(opd->loop, EXIT_SUCCESS);
	}
	free(job->arg);
	job->arg = NULL;
}

/* ---- the socket ---- */

/* The pid in the lock of the session directory; 0: there is none. */
static pid_t read_lock_pid(const struct opd *opd)
{
	struct op_text path = { 0 };
	pid_t pid = 0;

	op_text_printf(&path, "%s/" OP_SESSION_LOCK, opd->session_dir);
	if (!path.failed)
		pid = op_lock_owner(AT_FDCWD, path.data);
	op_text_free(&path);
	return pid;
}

static int explain_listen(const struct opd *opd, int err)
{
	const char *path = opd->config.control_socket;
	pid_t pid;

	if (err == -EADDRINUSE) {
		pid = opd_server_find_listener(path);
		if (pid <= SYSTEMD_PID && op_session_is_locked(opd->session_dir))
			pid = read_lock_pid(opd);
		if (!pid)
			pid = opd_server_lock_owner(path);
		if (pid == SYSTEMD_PID)
			return opd_fail("opd.socket listens on the control socket %s: systemctl start opd.service starts opd",
					path);
		return opd_fail("another opd (pid %d) answers on the control socket %s", (int)pid, path);
	}
	return opd_fail("cannot listen on the control socket %s: %s", path, strerror(-err));
}

/* By the file, not by the path: systemd replaces /var/run by /run. */
static bool is_at(int fd, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNSPEC };
	socklen_t nr_bytes = sizeof(address);
	char name[sizeof(address.sun_path) + 1] = "";
	struct stat bound, wanted;

	if (getsockname(fd, (struct sockaddr *)&address, &nr_bytes) < 0 || address.sun_family != AF_UNIX)
		return false;
	memcpy(name, address.sun_path, sizeof(address.sun_path));
	return !stat(name, &bound) && !stat(path, &wanted) && bound.st_dev == wanted.st_dev && bound.st_ino == wanted.st_ino;
}

/* Takes the socket of opd.socket, which must be the one that opcontrol uses. 1: there is none. */
static int take_activated(struct opd *opd)
{
	const char *path = opd->config.control_socket;
	int nr = sd_listen_fds(1);

	if (nr <= 0)
		return nr < 0 ? opd_fail("cannot take the socket of opd.socket: %s", strerror(-nr)) : 1;
	if (nr > 1 || sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_SEQPACKET, 1, NULL, 0) <= 0 || !is_at(SD_LISTEN_FDS_START, path))
		return opd_fail("opd.socket does not listen on ControlSocket=%s with ListenSequentialPacket=: correct "
				"opd.socket or ControlSocket=",
				path);
	opd->listen_fd = SD_LISTEN_FDS_START;
	opd->is_activated = true;
	return 0;
}

/*
 * This comes before opd makes anything in the session directory, so a second opd does no harm.
 * Clients that connect now are served once the loop runs.
 */
int opd_init_socket(struct opd *opd)
{
	int err = take_activated(opd);

	if (err <= 0)
		return err;
	err = opd_server_lock(opd->config.control_socket, &opd->socket_lock_fd);
	if (err)
		return explain_listen(opd, err);
	err = opd_server_listen(opd->config.control_socket, &opd->listen_fd);
	if (!err)
		return 0;
	explain_listen(opd, err);
	opd_server_unlock(opd->config.control_socket, opd->socket_lock_fd);
	return -1;
}

void opd_fini_socket(struct opd *opd)
{
	if (opd->listen_fd >= 0) { /* else the server owned it and has removed the file */
		close(opd->listen_fd);
		if (!opd->is_activated)
			op_sys_unlinkat(AT_FDCWD, opd->config.control_socket, 0);
	}
	if (opd->socket_lock_fd >= 0)
		opd_server_unlock(opd->config.control_socket, opd->socket_lock_fd);
}

/* The file of systemd's socket stays, since systemd goes on listening. */
int opd_init_server(struct opd *opd)
{
	const char *unlink_path = opd->is_activated ? NULL : opd->config.control_socket;
	int err = opd_server_open(opd->loop, opd->listen_fd, unlink_path, on_command, opd, &opd->server);

	if (err)
		return explain_listen(opd, err);
	opd->listen_fd = -1;
	return 0;
}

void opd_fini_server(struct opd *opd)
{
	opd_server_close(opd->server);
}
