/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The state of opd's main thread, and those steps of the start-up list that are not in opd.c: configuration, setup, session
 * directory and lock (session.c), control socket, signals and jobs (control.c). An init returns 0, or -1 after a line in the log, with nothing left behind; its fini
 * undoes it.
 */
#ifndef OPD_MAIN_THREAD_H
#define OPD_MAIN_THREAD_H

#include <systemd/sd-event.h>

#include "daemon/server.h"
#include "daemon/service.h"
#include "daemon/keep/syncer.h"
#include "daemon/sync.h"
#include "libop/base/compiler.h"
#include "libop/control/config.h"
#include "libop/control/daemonrc.h"
#include "libop/events/event_list.h"

struct opd {
	/* command line */
	char *config_path, *session_dir_option;
	/* start-up, in this order */
	struct op_config config;
	struct op_setup setup;
	const char *session_dir;
	int session_fd;
	int lock_fd;
	bool was_unclean; /* the last opd in this session directory did not end in order */
	int socket_lock_fd; /* -1: none, of a socket that is systemd's */
	int listen_fd; /* -1 once the server has it */
	bool is_activated; /* it is systemd's */
	struct op_event default_event;
	struct op_event_list events;
	struct opd_bpf_code bpf_code; /* of the programs that were there before */
	struct opd_syncer *syncer;
	struct opd_image_filter *image_filter; /* NULL: none */
	struct opd_pipeline pipeline;
	struct op_status status;
	sd_event *loop;
	struct opd_sync sync;
	struct opd_job *quit_job; /* NULL once it was given */
	struct opd_service service;
	struct opd_server *server;
	bool starting; /* not READY: the CPUs do not sample yet */
	bool quitting;
	bool is_unwritten; /* the last samples are not all on the disk: the lock stays */
};

/* Logs why opd cannot start, tells the service manager as well, and returns -1. */
int opd_fail(const char *format, ...) OP_NONNULL_ARGS(1) OP_PRINTF(1, 2);

/* Reads the configuration and logs what is wrong in it. 0, or -1 after a line in the log; freed with op_config_free. */
int opd_read_config(const struct opd *opd, struct op_config *ret_config) OP_NONNULL OP_MUST_CHECK;

/* A job that opd_sync_submit takes; NULL without memory. */
struct opd_job *opd_job_new(enum opd_job_kind kind, void *arg) OP_MUST_CHECK;

/* A job came back: its asker is answered, the service manager told. The job and its payload are the caller's to free. */
void opd_job_done(struct opd *opd, struct opd_job *job) OP_NONNULL;

/* Says that opd is ready. */
void opd_ready(struct opd *opd, bool profiling) OP_NONNULL;

/* Has the last samples written and the loop end. */
void opd_quit(struct opd *opd) OP_NONNULL;

/* Reads the configuration again. */
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
