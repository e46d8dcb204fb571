/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The traced process of bench_memory's LTTng-UST row, started by tests/bench/lttng.sh beside a
 * session daemon of its own: usage: lttng_writer DIRECTORY. For each line "BYTES NR" of its input
 * it writes NR records as tracepoints into a ring of 4 sub-buffers of 64 kB for this process and
 * CPU, and answers with a line "WRITE-NS THROUGH-NS LOST":
 *
 *   WRITE-NS    for a record, in bursts of half of the ring, with a pause behind each for the
 *               consumer daemon
 *   THROUGH-NS  for a record that arrived, written without a pause, until the consumer daemon has
 *               all of them in its file
 *   LOST        records in a thousand that the ring discarded at that, as it does when it is full
 *
 * A writer that waits for room (LTTng's blocking timeout) sleeps for milliseconds each time and is
 * no measure.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "tests/bench/lttng_events.h"

#include <lttng/lttng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/bench.h"

#define SUB_BUFFER_BYTES (64 * 1024)
#define NR_SUB_BUFFERS   4
#define NAME             "opd-bench"
#define PAUSE_US         2000
#define POLL_US          200

static uint64_t words[32];

static void lttng_die(const char *what, int err)
{
	fprintf(stderr, "lttng_writer: %s: %s\n", what, err ? lttng_strerror(err) : "failed");
	exit(1);
}

static void write_records(unsigned int nr_bytes, uint64_t first, uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++) {
		words[0] = first + i;
		if (nr_bytes == 32)
			lttng_ust_tracepoint(opd_bench, record32, words);
		else if (nr_bytes == 64)
			lttng_ust_tracepoint(opd_bench, record64, words);
		else
			lttng_ust_tracepoint(opd_bench, record256, words);
	}
}

static void enable(struct lttng_handle *handle, struct lttng_domain *domain)
{
	struct lttng_channel *channel = lttng_channel_create(domain);
	struct lttng_event *event = lttng_event_create();
	int err;

	if (!channel || !event)
		lttng_die("memory", 0);
	snprintf(channel->name, sizeof(channel->name), NAME);
	channel->attr.overwrite = 0;
	channel->attr.subbuf_size = SUB_BUFFER_BYTES;
	channel->attr.num_subbuf = NR_SUB_BUFFERS;
	channel->attr.output = LTTNG_EVENT_MMAP;
	err = lttng_enable_channel(handle, channel);
	if (err < 0)
		lttng_die("channel", err);
	snprintf(event->name, sizeof(event->name), "opd_bench:*");
	event->type = LTTNG_EVENT_TRACEPOINT;
	event->loglevel_type = LTTNG_EVENT_LOGLEVEL_ALL;
	err = lttng_enable_event(handle, event, NAME);
	if (err < 0)
		lttng_die("event", err);
	lttng_event_destroy(event);
	lttng_channel_destroy(channel);
}

static struct lttng_handle *begin(const char *directory)
{
	struct lttng_domain domain = { .type = LTTNG_DOMAIN_UST, .buf_type = LTTNG_BUFFER_PER_PID };
	struct lttng_handle *handle;
	int err = lttng_create_session(NAME, directory);

	if (err < 0)
		lttng_die("session", err);
	handle = lttng_create_handle(NAME, &domain);
	if (!handle)
		lttng_die("handle", 0);
	enable(handle, &domain);
	err = lttng_start_tracing(NAME);
	if (err < 0)
		lttng_die("start", err);
	return handle;
}

static uint64_t discarded(struct lttng_handle *handle)
{
	struct lttng_channel *channels = NULL;
	uint64_t nr = 0;

	if (lttng_list_channels(handle, &channels) != 1 || lttng_channel_get_discarded_event_count(channels, &nr) < 0)
		lttng_die("discarded events", 0);
	free(channels);
	return nr;
}

/* Until the consumer has read all. */
static void stop(void)
{
	lttng_stop_tracing_no_wait(NAME);
	while (lttng_data_pending(NAME) == 1)
		usleep(POLL_US);
}

static void end(struct lttng_handle *handle)
{
	lttng_destroy_handle(handle);
	lttng_destroy_session(NAME);
}

static double write_in_bursts(const char *directory, unsigned int nr_bytes, uint64_t nr)
{
	struct lttng_handle *handle = begin(directory);
	uint64_t burst = SUB_BUFFER_BYTES * NR_SUB_BUFFERS / 2 / nr_bytes, spent_ns = 0, written;

	for (written = 0; written < nr; written += burst) {
		uint64_t begin_ns = bench_now_ns();

		write_records(nr_bytes, written, burst);
		spent_ns += bench_now_ns() - begin_ns;
		usleep(PAUSE_US);
	}
	stop();
	end(handle);
	return (double)spent_ns / (double)written;
}

static double write_through(const char *directory, unsigned int nr_bytes, uint64_t nr, uint64_t *ret_lost)
{
	struct lttng_handle *handle = begin(directory);
	uint64_t begin_ns = bench_now_ns(), spent_ns, lost;

	write_records(nr_bytes, 0, nr);
	stop();
	spent_ns = bench_now_ns() - begin_ns;
	lost = discarded(handle);
	end(handle);
	if (lost >= nr)
		lttng_die("all records were lost", 0);
	*ret_lost = lost * 1000 / nr;
	return (double)spent_ns / (double)(nr - lost);
}

int main(int argc, char **argv)
{
	unsigned long long nr;
	unsigned int nr_bytes;

	if (argc != 2)
		return 2;
	while (scanf("%u %llu", &nr_bytes, &nr) == 2) {
		uint64_t lost = 0;
		double write_ns = write_in_bursts(argv[1], nr_bytes, nr / 8);
		double through_ns = write_through(argv[1], nr_bytes, nr, &lost);

		printf("%.2f %.2f %llu\n", write_ns, through_ns, (unsigned long long)lost);
		fflush(stdout);
	}
	return 0;
}
