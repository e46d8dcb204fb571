/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * opd with one CPU more than the host has: its records come from the FIFO that OPD_FED_FIFO names,
 * through a memory pair. A record is as the kernel writes it for an IBS sampler
 * (libop/perf/record.h, OP_SAMPLE_TYPE_IBS), with FETCH_ID or OP_ID, and gets the time of now. The
 * writer waits for room. What stands between two of the type RUSH and without a body, misc 1 and
 * misc 0, is written all at once, and what finds no room is dropped. For tests only.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "daemon/opd.h"
#include "libop/base/clock.h"
#include "pipeline/capture/cpu_rings.h"
#include "pipeline/capture/kernel_source.h"
#include "pipeline/capture/memory_source.h"

#define CPU            4000u
#define RING_BYTES     (64u * 1024)
#define SIDEBAND_BYTES 4096u
#define FETCH_ID       101u
#define OP_ID          102u
#define PLAIN_ID       (UINT64_C(1) << 60) /* and the index: no kernel has so many */
#define RUSH           0x7fff0000u
#define TIME_OFFSET    32u
#define RECORD_MAX     4096u

int __real_opd_capture_open(struct opd_capture *capture, const struct op_config *config, struct op_event *events,
			    size_t nr_events, bool with_cgroup, uint32_t callgraph, char **ret_why);
int __wrap_opd_capture_open(struct opd_capture *capture, const struct op_config *config, struct op_event *events,
			    size_t nr_events, bool with_cgroup, uint32_t callgraph, char **ret_why);

static struct op_mring_pair pair;
static struct op_mring_pair_writer writer;
static struct op_mring sideband;
static uint64_t ids[OP_EVENTS_MAX];

static void give(const uint8_t *record, uint16_t nr_bytes, bool waits)
{
	const struct timespec moment = { .tv_nsec = 200000 };
	uint64_t now_ns = op_now_ns();
	struct perf_event_header *out;

	while (waits && !op_mring_has_room(op_mring_pair_enter(&writer), nr_bytes, false)) {
		op_mring_pair_leave(&writer);
		nanosleep(&moment, NULL);
	}
	op_mring_pair_leave(&writer);
	if (op_mring_pair_reserve(&writer, nr_bytes, &out) < 0)
		return;
	memcpy(out, record, nr_bytes);
	memcpy((uint8_t *)out + TIME_OFFSET, &now_ns, sizeof(now_ns));
	op_mring_pair_commit(&writer);
}

static void rush(struct op_text *records)
{
	for (size_t at = 0; at < records->length;) {
		const struct perf_event_header *header = (const void *)(records->data + at);

		give((const uint8_t *)header, header->size, false);
		at += header->size;
	}
	op_text_free(records);
}

static bool take(FILE *from, uint8_t record[RECORD_MAX])
{
	struct perf_event_header header;

	if (fread(&header, sizeof(header), 1, from) != 1 || header.size < sizeof(header) || header.size > RECORD_MAX)
		return false;
	memcpy(record, &header, sizeof(header));
	return header.size == sizeof(header) || fread(record + sizeof(header), header.size - sizeof(header), 1, from) == 1;
}

static void *feed(void *arg)
{
	_Alignas(8) static uint8_t record[RECORD_MAX];
	const struct perf_event_header *header = (const void *)record;
	FILE *from = fopen(arg, "re");
	struct op_text rushed = { .data = NULL };
	bool rushes = false;

	if (!from || op_mring_pair_writer_open(&pair, &writer) < 0) {
		perror(arg);
		return NULL;
	}
	while (take(from, record)) {
		if (header->type == RUSH)
			rushes = header->misc;
		else if (rushes)
			op_text_add_bytes(&rushed, record, header->size);
		else
			give(record, header->size, true);
		if (!rushes && rushed.length)
			rush(&rushed);
	}
	op_mring_pair_writer_close(&writer);
	fclose(from);
	return NULL;
}

/* Without the signals that opd waits for. */
static int start_feeding(char *fifo)
{
	sigset_t all, before;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, NULL, feed, fifo);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		err = pthread_detach(thread);
	return -err;
}

static int add_cpu(struct opd_capture *capture)
{
	const struct opd_memory_cpu cpu = { .cpu = CPU, .pair = &pair, .sideband = &sideband, .ids = ids };
	int err;

	for (size_t i = 0; i < capture->nr_opened; i++) {
		const struct op_event *event = &capture->events[i];

		ids[i] = event->role != OP_EVENT_SAMPLER ? PLAIN_ID + i : event->sampler.kind == OP_IBS_FETCH ? FETCH_ID : OP_ID;
	}
	err = op_mring_pair_create(RING_BYTES, OP_MRING_FENCE, &pair);
	if (!err)
		err = op_mring_create(SIDEBAND_BYTES, 0, 0, &sideband);
	if (!err)
		op_mring_pair_wake_every(&pair, RING_BYTES / 4, false);
	return err ? err : opd_capture_add_memory(capture, &cpu);
}

int __wrap_opd_capture_open(struct opd_capture *capture, const struct op_config *config, struct op_event *events,
			    size_t nr_events, bool with_cgroup, uint32_t callgraph, char **ret_why)
{
	char *fifo = getenv("OPD_FED_FIFO");
	int err = __real_opd_capture_open(capture, config, events, nr_events, with_cgroup, callgraph, ret_why);

	if (err || !fifo)
		return err;
	err = add_cpu(capture);
	if (!err)
		err = start_feeding(fifo);
	if (err) {
		opd_capture_close(capture);
		*ret_why = strdup("cannot open the CPU that is fed");
	}
	return err;
}

int main(int argc, char **argv)
{
	prctl(PR_SET_NAME, "opd"); /* opcontrol looks whether the process is one */
	return opd_main(argc, argv);
}
