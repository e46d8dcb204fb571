/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The state of the main thread, and the steps of the start-up list that are not in opd.c:
 * configuration, setup, session directory and lock (session.c); control socket, signals and jobs
 * (control.c). An init function returns 0; or -1 after a line in the log, and then it has undone
 * everything. Its fini function undoes a successful init.
 */
#ifndef OPD_MAIN_THREAD_H
#define OPD_MAIN_THREAD_H

#include <systemd/sd-event.h>

#include "daemon/jobs/syncer.h"
#include "daemon/server.h"
#include "daemon/service.h"
#include "daemon/sync.h"
#include "libop/base/compiler.h"
#include "libop/control/config.h"
#include "libop/control/daemonrc.h"
#include "libop/events/event_list.h"
#include "pipeline/files/lookers.h"
#include "pipeline/waits/program.h"

struct opd {
	/* command line */
	char *config_path, *session_dir_option;
	/* set by the start-up list, in this order */
	struct op_config config;
	struct op_setup setup;
	const char *session_dir;
	int session_fd;
	int lock_fd;
	sd_event_source *lock_watch, *lock_changes, *dir_changes;
	bool has_lost_lock; /* the session directory was removed or replaced */
	bool was_unclean; /* the last opd in this session directory did not end in order */
	int socket_lock_fd; /* -1: systemd made the socket, and there is no lock */
	int listen_fd; /* -1 once the server owns it */
	bool is_activated; /* systemd made the socket */
	struct op_event default_event;
	struct op_event_list events;
	struct opd_bpf_code bpf_code; /* of programs that are older than opd */
	struct op_nursery *nursery;
	struct opd_lookers *lookers;
	struct opd_tables *tables;
	bool wants_waits;
	struct opd_wait_program *wait_program; /* NULL: no waits are sampled */
	struct opd_interpreters *interpreters; /* NULL: functions of runtimes have no names */
	struct opd_syncer *syncer;
	struct opd_image_filter *image_filter; /* NULL: none */
	struct opd_pipeline pipeline;
	struct op_status status;
	sd_event *loop;
	struct opd_sync sync;
	struct opd_job *quit_job; /* NULL once it is submitted */
	struct opd_service service;
	struct opd_server *server;
	bool starting; /* not READY yet: the first START is under way */
	bool quitting;
	bool is_unwritten; /* not all samples are on the disk, so the lock stays */
};

/* Reports to the log and the service manager why opd cannot start. Returns -1. */
int opd_fail(const char *format, ...) OP_NONNULL_ARGS(1) OP_PRINTF(1, 2);

/* Reads the configuration and logs its faults. 0, or -1 after a line in the log. */
int opd_read_config(const struct opd *opd, struct op_config *ret_config) OP_NONNULL OP_MUST_CHECK;

/* A job for opd_job_queue_submit; NULL without memory. */
struct opd_job *opd_job_new(enum opd_job_kind kind, void *arg) OP_MUST_CHECK;

/* A job came back: answers its client and notifies the service manager. Does not free it. */
void opd_job_done(struct opd *opd, struct opd_job *job) OP_NONNULL;

/* Reports to the log and the service manager that opd is ready. */
void opd_ready(struct opd *opd, bool profiling) OP_NONNULL;

/* Submits OPD_JOB_QUIT; the loop ends when the last samples are written. */
void opd_quit(struct opd *opd) OP_NONNULL;

/* Reads the configuration again (SIGHUP). */
void opd_reload(struct opd *opd) OP_NONNULL;

int opd_init_socket(struct opd *opd) OP_NONNULL OP_MUST_CHECK;
void opd_fini_socket(struct opd *opd) OP_NONNULL;
int opd_init_server(struct opd *opd) OP_NONNULL OP_MUST_CHECK;
void opd_fini_server(struct opd *opd) OP_NONNULL;
int opd_init_config(struct opd *opd) OP_NONNULL OP_MUST_CHECK;
void opd_fini_config(struct opd *opd) OP_NONNULL;
int opd_init_setup(struct opd *opd) OP_NONNULL OP_MUST_CHECK;
void opd_fini_setup(struct opd *opd) OP_NONNULL;
int opd_init_session(struct opd *opd) OP_NONNULL OP_MUST_CHECK;
void opd_fini_session(struct opd *opd) OP_NONNULL;
int opd_init_lock(struct opd *opd) OP_NONNULL OP_MUST_CHECK;
void opd_fini_lock(struct opd *opd) OP_NONNULL;
int opd_init_recovery(struct opd *opd) OP_NONNULL OP_MUST_CHECK;
int opd_init_syncer(struct opd *opd) OP_NONNULL OP_MUST_CHECK;
void opd_fini_syncer(struct opd *opd) OP_NONNULL;

#endif
