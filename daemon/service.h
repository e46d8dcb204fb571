/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What opd tells the service manager (sd_notify(3)): that it is ready, reloads its configuration, or stops; in words what it does; and that
 * the sync thread is alive. For that the thread is given a job now and then: the watchdog hears of it when the job comes back, so it is
 * the thread's own progress that counts. The main thread waits for no client, and nothing that a client does keeps it from asking.
 *
 * Main thread only. Without a service manager nothing is done.
 */
#ifndef OPD_SERVICE_H
#define OPD_SERVICE_H

#include <systemd/sd-event.h>

#include "daemon/jobs.h"
#include "daemon/status.h"
#include "libop/base/compiler.h"
#include "libop/base/text.h"

#define OPD_SERVICE_PULSE_SEC 5 /* at most; a third of WatchdogSec= if that is less */

struct opd_service {
	struct opd_job_queue *queue;
	sd_event_source *timer; /* NULL: nobody listens */
	uint64_t interval_usec;
	bool has_watchdog, is_asked, is_stopping;
	struct opd_pulse last;
};

/* Begins to ask. The loop and the sync thread are the caller's and live longer. 0 or -errno. */
int opd_service_open(struct opd_service *service, sd_event *loop, struct opd_job_queue *queue) OP_NONNULL OP_MUST_CHECK;
void opd_service_close(struct opd_service *service) OP_NONNULL;

void opd_service_ready(struct opd_service *service, bool profiling) OP_NONNULL;
void opd_service_reloading(struct opd_service *service) OP_NONNULL;
void opd_service_reloaded(struct opd_service *service) OP_NONNULL;
void opd_service_stopping(struct opd_service *service) OP_NONNULL;

/* Asks the sync thread for a sign, unless it was asked already. */
void opd_service_pulse(struct opd_service *service) OP_NONNULL;

/* The sign came; NULL: without numbers. */
void opd_service_alive(struct opd_service *service, const struct opd_pulse *pulse) OP_NONNULL_ARGS(1);

/* "Profiling 2 CPUs, 1998 samples per second; ...": the rate is that since `before`, a pulse with now_ns 0 has none. */
void opd_service_words(const struct opd_pulse *before, const struct opd_pulse *now, struct op_text *words) OP_NONNULL;

#endif
