/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/service.h"

#include <inttypes.h>
#include <systemd/sd-daemon.h>

#include "libop/base/clock.h"

#define USEC_PER_SEC 1000000ull
#define NS_PER_USEC  1000u

static int on_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct opd_service *service = arg;

	(void)usec;
	opd_service_pulse(service);
	return sd_event_source_set_time_relative(source, service->interval_usec);
}

int opd_service_open(struct opd_service *service, sd_event *loop, struct opd_job_queue *queue)
{
	uint64_t watchdog_usec = 0;
	int err;

	*service = (struct opd_service){ .queue = queue, .interval_usec = OPD_SERVICE_PULSE_SEC * USEC_PER_SEC };
	if (!getenv("NOTIFY_SOCKET"))
		return 0;
	service->has_watchdog = sd_watchdog_enabled(0, &watchdog_usec) > 0;
	if (service->has_watchdog && watchdog_usec / 3 < service->interval_usec)
		service->interval_usec = watchdog_usec / 3;
	err = sd_event_add_time_relative(loop, &service->timer, CLOCK_MONOTONIC, service->interval_usec, 0, on_timer, service);
	if (err >= 0)
		err = sd_event_source_set_enabled(service->timer, SD_EVENT_ON);
	return err < 0 ? err : 0;
}

void opd_service_close(struct opd_service *service)
{
	service->timer = sd_event_source_disable_unref(service->timer);
}

/* opcontrol started opd and has gone after READY: no program listens any more. */
static void notify(struct opd_service *service, const char *state)
{
	if (sd_notify(0, state) < 0 && !service->has_watchdog)
		service->timer = sd_event_source_disable_unref(service->timer);
}

void opd_service_ready(struct opd_service *service, bool profiling)
{
	notify(service, profiling ? "READY=1\nSTATUS=Profiling" : "READY=1\nSTATUS=Paused");
}

void opd_service_reloading(struct opd_service *service)
{
	char state[64];

	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, op_now_ns() / NS_PER_USEC);
	notify(service, state);
}

void opd_service_reloaded(struct opd_service *service)
{
	notify(service, "READY=1");
}

void opd_service_stopping(struct opd_service *service)
{
	service->is_stopping = true;
	notify(service, "STOPPING=1\nSTATUS=Writing the last samples");
}

void opd_service_pulse(struct opd_service *service)
{
	struct opd_job *job;

	if (!service->timer || service->is_pulse_under_way || service->is_stopping)
		return;
	job = calloc(1, sizeof(*job));
	if (!job)
		return;
	job->kind = OPD_JOB_PULSE;
	service->is_pulse_under_way = true;
	opd_job_queue_submit(service->queue, job);
}

void opd_service_alive(struct opd_service *service, const struct opd_pulse *pulse)
{
	struct op_text state = { 0 };

	service->is_pulse_under_way = false;
	if (service->has_watchdog)
		op_text_add(&state, "WATCHDOG=1\n");
	if (pulse && !service->is_stopping) {
		op_text_add(&state, "STATUS=");
		opd_service_words(&service->last, pulse, &state);
	}
	if (state.length && !state.failed)
		notify(service, op_text_get(&state));
	op_text_free(&state);
	if (pulse)
		service->last = *pulse;
}

static void add_rate(const struct opd_pulse *before, const struct opd_pulse *now, struct op_text *words)
{
	uint64_t span_ns = now->now_ns - before->now_ns;

	/* After a reset the counts are smaller. */
	if (!before->now_ns || !before->profiling || !span_ns || now->taken < before->taken)
		return;
	op_text_printf(words, ", %.0f samples per second",
		       (double)(now->taken - before->taken) * (double)OP_NS_PER_S / (double)span_ns);
}

void opd_service_words(const struct opd_pulse *before, const struct opd_pulse *now, struct op_text *words)
{
	uint64_t lost = now->lost_kernel + now->lost;

	if (now->profiling) {
		op_text_printf(words, "Profiling %" PRIu32 " CPU%s", now->nr_cpus, now->nr_cpus == 1 ? "" : "s");
		add_rate(before, now, words);
	} else {
		op_text_add(words, "Paused");
	}
	op_text_printf(words, "; of %" PRIu64 " samples %" PRIu64 " are stored", now->taken, now->stored);
	if (now->filtered)
		op_text_printf(words, ", %" PRIu64 " filtered", now->filtered);
	if (!lost)
		op_text_add(words, ", none is lost");
	if (now->lost_kernel)
		op_text_printf(words, ", %" PRIu64 " lost in full rings", now->lost_kernel);
	if (now->lost)
		op_text_printf(words, ", %" PRIu64 " lost after that", now->lost);
	if (lost && now->taken)
		op_text_printf(words, " (%.3g %%)", 100.0 * (double)lost / (double)now->taken);
}
