/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Messages to the service manager (sd_notify(3)): ready, reloading, stopping, a line of status, and
 * the keep-alive message of the watchdog. At intervals the sync thread gets a PULSE job. When the
 * job comes back, the main thread sends the keep-alive message, so the message proves that the sync
 * thread makes progress. The main thread waits for no client, so no client can delay it.
 *
 * Main thread only. Without a service manager nothing is done.
 */
#ifndef OPD_SERVICE_H
#define OPD_SERVICE_H

#include <systemd/sd-event.h>

#include "daemon/jobs/queue.h"
#include "daemon/jobs/status.h"
#include "libop/base/compiler.h"
#include "libop/base/text.h"

#define OPD_SERVICE_PULSE_SEC 5 /* or a third of WatchdogSec= if that is less */

struct opd_service {
	struct opd_job_queue *queue;
	sd_event_source *timer; /* NULL: there is no service manager */
	uint64_t interval_usec;
	bool has_watchdog, is_pulse_under_way, is_stopping;
	struct opd_pulse last;
};

/* Starts the timer. The loop and the queue are the caller's and live longer. 0 or -errno. */
int opd_service_open(struct opd_service *service, sd_event *loop, struct opd_job_queue *queue) OP_NONNULL OP_MUST_CHECK;
void opd_service_close(struct opd_service *service) OP_NONNULL;

void opd_service_ready(struct opd_service *service, bool profiling) OP_NONNULL;
void opd_service_reloading(struct opd_service *service) OP_NONNULL;
void opd_service_reloaded(struct opd_service *service) OP_NONNULL;
void opd_service_stopping(struct opd_service *service) OP_NONNULL;

/* Sends OPD_JOB_PULSE to the sync thread, unless one is under way. */
void opd_service_pulse(struct opd_service *service) OP_NONNULL;

/* OPD_JOB_PULSE came back; NULL: without numbers. */
void opd_service_alive(struct opd_service *service, const struct opd_pulse *pulse) OP_NONNULL_ARGS(1);

/* "Profiling 2 CPUs, ...". The rate is the one since `before`; none when its now_ns is 0. */
void opd_service_words(const struct opd_pulse *before, const struct opd_pulse *now, struct op_text *words) OP_NONNULL;

#endif
