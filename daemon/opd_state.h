/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The state of opd's main thread, and those steps of the start-up list that are not in opd.c: configuration, setup, session
 * directory and lock (opd_session.c). An init returns 0, or -1 after a line in the log, with nothing left behind; its fini
 * undoes it.
 */
#ifndef OPD_STATE_H
#define OPD_STATE_H

#include <systemd/sd-event.h>

#include "daemon/server.h"
#include "daemon/settle.h"
#include "daemon/sync.h"
#include "libop/compiler.h"
#include "libop/config.h"
#include "libop/daemonrc.h"
#include "libop/event_ibs.h"

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
	int listen_fd; /* -1 once the server has it */
	struct op_event default_event;
	struct op_event_list events;
	struct opd_settler *settler;
	struct opd_pipeline pipeline;
	struct op_status status;
	sd_event *loop;
	struct opd_sync sync;
	struct opd_job *quit_job; /* NULL once it was given */
	struct opd_server *server;
	bool quitting;
};

/* Logs why opd cannot start, tells the service manager as well, and returns -1. */
int opd_fail(const char *format, ...) OP_NONNULL_ARGS(1) OP_PRINTF(1, 2);

int opd_init_config(struct opd *opd) OP_NONNULL OP_MUST_CHECK;
void opd_fini_config(struct opd *opd) OP_NONNULL;
int opd_init_setup(struct opd *opd) OP_NONNULL OP_MUST_CHECK;
void opd_fini_setup(struct opd *opd) OP_NONNULL;
int opd_init_session(struct opd *opd) OP_NONNULL OP_MUST_CHECK;
void opd_fini_session(struct opd *opd) OP_NONNULL;
int opd_init_lock(struct opd *opd) OP_NONNULL OP_MUST_CHECK;
void opd_fini_lock(struct opd *opd) OP_NONNULL;
int opd_init_recovery(struct opd *opd) OP_NONNULL OP_MUST_CHECK;
int opd_init_settler(struct opd *opd) OP_NONNULL OP_MUST_CHECK;
void opd_fini_settler(struct opd *opd) OP_NONNULL;

#endif
