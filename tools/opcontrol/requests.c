/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The requests of the command line. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/events/ibs_host.h"
#include "libop/session/contents.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "tools/common/log.h"
#include "tools/opcontrol/opcontrol.h"

int ctl_run_init(struct opcontrol *ctl)
{
	(void)ctl;
	puts("--init is ignored: there is no module to load, perf events are a part of the kernel.");
	return 0;
}

static void show_event(const char *intro, const struct op_event *event, const char *more)
{
	struct op_text text = { 0 };

	op_event_format(event, &text);
	printf("%s%s%s\n", intro, op_text_get(&text), more);
	op_text_free(&text);
}

static void show_parameters(const struct opcontrol *ctl)
{
	if (!ctl->verbose)
		return;
	printf("Parameters: configuration %s, session directory %s\n", ctl->config_path, ctl->session_dir);
	for (size_t i = 0; i < ctl->setup.nr_events; i++)
		show_event("Parameters: event ", &ctl->setup.events[i], "");
}

static void announce_default(const struct opcontrol *ctl)
{
	struct op_event event;
	bool has_pmu;

	if (ctl->setup.nr_events)
		return;
	op_event_default(&event, &has_pmu);
	show_event("Using default event: ", &event, has_pmu ? "" : " (this host has no hardware event counters)");
}

/*
 * Makes the next daemon start paused, whatever ProfileOnStart= and the last --start or --stop say.
 * It holds for that daemon only. *ret_fd: the session directory.
 */
static int request_pause(const struct opcontrol *ctl, int *ret_fd)
{
	int fd, err = op_session_make(ctl->session_dir);

	if (err)
		return ctl_fail_session(ctl, "make the session directory", ctl->session_dir, NULL, err);
	fd = open(ctl->session_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return ctl_fail_session(ctl, "write", ctl->session_dir, OP_SESSION_PAUSED, -errno);
	op_session_adopt_mode(fd);
	err = op_session_pause_once(fd);
	if (err) {
		close(fd);
		return ctl_fail_session(ctl, "write", ctl->session_dir, OP_SESSION_PAUSED, err);
	}
	*ret_fd = fd;
	return 0;
}

static int spawn_paused(const struct opcontrol *ctl)
{
	int fd = -1, rc = request_pause(ctl, &fd), err;

	if (rc)
		return rc;
	rc = ctl_spawn_daemon(ctl);
	/* a daemon removes it when it starts; it is left when none has started in this directory */
	err = op_session_take_pause(fd);
	if (err && err != -ENOENT)
		opr_warn("cannot remove %s/" OP_SESSION_PAUSED ": %s", ctl->session_dir, strerror(-err));
	close(fd);
	return rc;
}

static int start_daemon(struct opcontrol *ctl, int (*spawn)(const struct opcontrol *ctl))
{
	struct ctl_daemon daemon;
	int rc = ctl_find_daemon(ctl, &daemon);

	if (rc)
		return rc;
	if (daemon.presence == CTL_NO_ANSWER) {
		rc = ctl_fail_no_answer(ctl, &daemon);
	} else if (daemon.presence == CTL_ABSENT) {
		announce_default(ctl);
		show_parameters(ctl);
		rc = spawn(ctl);
		if (!rc)
			puts("Daemon started.");
		else if (rc == CTL_ANOTHER)
			rc = 0;
	}
	ctl_daemon_free(&daemon);
	return rc;
}

int ctl_run_start_daemon(struct opcontrol *ctl)
{
	return start_daemon(ctl, spawn_paused);
}

int ctl_run_start(struct opcontrol *ctl)
{
	int rc = start_daemon(ctl, ctl_spawn_daemon);

	if (!rc)
		rc = ctl_request(ctl, OP_CONTROL_START);
	if (!rc)
		puts("Profiler running.");
	return rc;
}

/* Nobody listens at the socket. --status would find a daemon that listens elsewhere by its lock. */
static void fail_dump(const struct opcontrol *ctl)
{
	char *dir = NULL;
	pid_t pid = ctl_daemon_of_session(ctl, &dir);

	if (pid)
		opr_error(1, "--dump: opd (pid %d) has the session directory %s, but does not answer at %s: is ControlSocket= in "
			     "%s that of the daemon?",
			  (int)pid, dir ? dir : "", ctl->config.control_socket, ctl->config_path);
	else
		opr_error(1, "--dump: Unable to complete dump of oprofile data: is the oprofile daemon running?");
	free(dir);
}

int ctl_run_dump(struct opcontrol *ctl)
{
	char *message = NULL;
	void *payload = NULL;
	size_t nr_bytes;
	pid_t unit_pid;
	enum ctl_unit unit = ctl_unit_state(ctl, &unit_pid);
	int err = -ECONNREFUSED;

	if (unit == CTL_UNIT_ENDS)
		return opr_error(1, "--dump: opd (pid %d) is shutting down", (int)unit_pid);
	if (unit != CTL_UNIT_SLEEPS)
		err = op_control_call(ctl->config.control_socket, OP_CONTROL_DUMP, &payload, &nr_bytes, &message);
	if (err == -ENOENT || err == -ECONNREFUSED)
		fail_dump(ctl);
	else if (err < 0)
		opr_error(1, "--dump: %s", message ? message : strerror(-err));
	free(payload);
	free(message);
	return err < 0;
}

static int say_not_running(void)
{
	fputs("Daemon not running\n", stderr);
	return 0;
}

int ctl_stop(struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	if (daemon->presence == CTL_ABSENT)
		return say_not_running();
	if (daemon->presence == CTL_NO_ANSWER)
		return ctl_fail_no_answer(ctl, daemon);
	if (daemon->status->state != OP_DAEMON_RUNNING)
		return 0;
	puts("Stopping profiling.");
	return ctl_request(ctl, OP_CONTROL_STOP);
}

/* Also closes opd.socket, so that no connection makes systemd start the daemon again. */
static int end_for_good(const struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	bool ended = true;
	int rc = daemon->presence == CTL_ABSENT ? 0 : ctl_end_daemon(ctl, daemon, &ended);

	if (ended && ctl_close_socket(ctl))
		rc = 1;
	return rc;
}

int ctl_shutdown(struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	if (daemon->presence == CTL_ABSENT)
		say_not_running();
	return end_for_good(ctl, daemon);
}

int ctl_deinit(struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	int rc = end_for_good(ctl, daemon);

	puts("There is no module to unload: perf events are a part of the kernel.");
	return rc;
}

/* A daemon that does not answer: the session directory says what it was told to do last. */
static bool was_told_to_profile(const struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	int fd = open(ctl->session_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool wanted = fd < 0 ? ctl->config.profile_on_start : op_session_wants_profiling(fd, ctl->config.profile_on_start);

	if (fd >= 0)
		close(fd);
	opr_warn("opd (pid %d) %s: the next one %s, as the last --start or --stop says", (int)daemon->pid,
		 daemon->ending ? "is shutting down" : "does not answer", wanted ? "profiles" : "starts paused");
	return wanted;
}

static int start_again(struct opcontrol *ctl, bool running)
{
	return running ? ctl_run_start(ctl) : ctl_run_start_daemon(ctl);
}

static bool is_absent(const struct opcontrol *ctl)
{
	struct ctl_daemon daemon;
	bool absent;

	if (ctl_find_daemon(ctl, &daemon))
		return false;
	absent = daemon.presence == CTL_ABSENT;
	ctl_daemon_free(&daemon);
	return absent;
}

/* The reason was reported before. A profiler that is always on must go on. */
static void go_back(struct opcontrol *ctl, const struct op_setup *before, bool running)
{
	if (!ctl_restore_setup(ctl, before) && !start_again(ctl, running))
		opr_warn("the previous setup is in force again, and the daemon runs with it");
	else
		opr_warn(is_absent(ctl) ? "no daemon runs" : "the daemon does not profile");
}

/*
 * True when no daemon runs with the new setup. Ends a daemon that should profile and does not. A
 * daemon that profiles stays, even if it could not save that state.
 */
static bool has_failed(struct opcontrol *ctl, bool running)
{
	struct ctl_daemon daemon;
	bool failed, ended;

	if (ctl_find_daemon(ctl, &daemon))
		return false;
	failed = daemon.presence == CTL_ABSENT;
	if (running && daemon.presence == CTL_PRESENT && daemon.status->state != OP_DAEMON_RUNNING)
		failed = !ctl_end_daemon(ctl, &daemon, &ended) || ended;
	ctl_daemon_free(&daemon);
	return failed;
}

int ctl_restart_daemon(struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	bool running =
		daemon->presence == CTL_PRESENT ? daemon->status->state == OP_DAEMON_RUNNING : was_told_to_profile(ctl, daemon);
	struct op_setup before;
	bool has_before = ctl_note_setup(ctl, &before), ended;
	int unwritten = ctl_end_daemon(ctl, daemon, &ended), rc = unwritten;

	if (ended) {
		rc = ctl_load_setup(ctl, true);
		if (!rc)
			rc = start_again(ctl, running);
		if (rc && has_before && has_failed(ctl, running))
			go_back(ctl, &before, running);
		rc |= unwritten;
	}
	if (has_before)
		op_setup_free(&before);
	return rc;
}

/* The session directory may belong to another user: a link in it must not lead root elsewhere. */
static int clear_locked(const struct opcontrol *ctl, int session_fd)
{
	int fd = op_file_open_below(session_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY, 0);
	char *path = NULL;
	int err = fd < 0 ? fd : op_session_clear(fd, &path);

	if (err == -ENOENT && fd < 0)
		err = 0;
	if (err < 0)
		opr_error(1, "cannot clear %s/" OP_SESSION_CURRENT "%s%s: %s%s", ctl->session_dir, path ? "/" : "",
			  path ? path : "", strerror(-err), fd < 0 ? "" : "; all other files are removed");
	free(path);
	if (fd >= 0)
		close(fd);
	return err < 0;
}

/* Under the daemon's lock: one that has begun meanwhile counts in these files. */
static int clear_session(const struct opcontrol *ctl)
{
	int session_fd = open(ctl->session_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), lock_fd, rc;

	if (session_fd < 0 && errno == ENOENT)
		return 0;
	lock_fd = session_fd < 0 ? -errno : op_session_lock(session_fd);
	if (lock_fd == -EBUSY)
		rc = opr_error(1, "--reset: a daemon that does not answer uses %s", ctl->session_dir);
	else if (lock_fd < 0)
		rc = ctl_fail_session(ctl, "lock", ctl->session_dir, OP_SESSION_LOCK, lock_fd);
	else
		rc = clear_locked(ctl, session_fd);
	if (lock_fd >= 0)
		op_session_unlock(session_fd, lock_fd);
	if (session_fd >= 0)
		close(session_fd);
	return rc;
}

int ctl_reset(struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	if (daemon->presence == CTL_NO_ANSWER)
		return ctl_fail_no_answer(ctl, daemon);
	return daemon->presence == CTL_PRESENT ? ctl_request(ctl, OP_CONTROL_RESET) : clear_session(ctl);
}

/* The events of this host's CPU, or why there are none. */
static void list_ibs(void)
{
	const struct op_ibs_event *event;
	struct op_ibs_host host;
	const char *why;

	if (op_ibs_host_read(&host, &why) < 0) {
		printf("\nNo events of IBS: %s\n", why);
		return;
	}
	puts("\nEvents of IBS, for --event=NAME:count[:unitmask[:kernel[:user]]][:l3miss][:ldlat=CYCLES][:rand]\n");
	for (size_t i = 0; (event = op_ibs_event(i)); i++) {
		if (!op_ibs_event_is_there(event, &host.cpu, host.caps))
			continue;
		printf("%s: (min count: %" PRIu64 ")\n\t%s", event->name, op_ibs_period_nearest(event->kind, 0),
		       event->description);
		if (event->amount != OP_IBS_SAMPLES)
			printf(" (%s, not samples)", op_ibs_event_unit(event));
		putchar('\n');
	}
}

int ctl_run_list_events(struct opcontrol *ctl)
{
	const struct op_event_info *info;

	(void)ctl;
	puts("Events, for --event=NAME:count[:unitmask[:kernel[:user]]]\n");
	for (size_t i = 0; (info = op_event_info(i)); i++) {
		printf("%s: (min count: %" PRIu64 ")\n\t%s\n", info->name, info->min_count, info->description);
		if (info->also)
			printf("\talso: %s\n", info->also);
	}
	puts("rNNN: (min count: 500)\n\tA raw event of the CPU, its code in hexadecimal; rNNN=NAME gives it a name");
	puts("SUBSYSTEM:NAME: (min count: 1)\n\tA tracepoint of the kernel, as in perf list and /sys/kernel/tracing/events");
	puts("\nEvents that libpfm4 knows of this CPU have its names: ophelp lists them.");
	list_ibs();
	return 0;
}
