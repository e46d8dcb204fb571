/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * libFuzzer target of the perf.data reader. Input: whether the file comes through a pipe (the
 * lowest bit of 1 byte), then the file; or is a directory (the bit above it), then the length of
 * each of two files with records (2 bytes, low byte first), these, and the file with the header.
 * Every record that comes out must be one that opd's own decoder takes, with its stack, and the
 * events must become those of a session.
 */
#include "tests/fuzz/fuzz_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/perf/data_open.h"
#include "tools/opimport/event_match.h"
#include "libop/session/ledger_file.h"
#include "libop/perf/record.h"
#include "libop/perf/stack_record.h"

#define PIPE_MAX_BYTES 32768u /* what a pipe holds without a reader */
#define IS_PIPE        1u
#define IS_DIRECTORY   2u
#define LENGTHS_BYTES  4u

static int put(const uint8_t *bytes, size_t nr_bytes, bool is_pipe)
{
	int fds[2];

	if (is_pipe) {
		fuzz_check(!pipe(fds));
	} else {
		fds[0] = fds[1] = memfd_create("fuzz", MFD_CLOEXEC);
		fuzz_check(fds[0] >= 0);
	}
	fuzz_check(write(fds[1], bytes, nr_bytes) == (ssize_t)nr_bytes);
	if (is_pipe)
		close(fds[1]);
	return fds[0];
}

static int put_directory(const uint8_t *bytes, size_t nr_bytes)
{
	const uint8_t *at = bytes + LENGTHS_BYTES, *end = bytes + nr_bytes;

	for (int i = 0; i < 2; i++) {
		size_t length = op_min_u64(bytes[2 * i] | (size_t)bytes[2 * i + 1] << 8, (size_t)(end - at));

		fuzz_check(fuzz_dir_write(i ? "data.1" : "data.0", at, length));
		at += length;
	}
	fuzz_check(fuzz_dir_write("data", at, (size_t)(end - at)));
	return dup(fuzz_dir_open());
}

/* Every byte of the chain and of the copy is in the record. */
static void check_stack(const struct op_perf_record *record, const struct op_perf_event *from, const struct op_sample *sample)
{
	static const uint64_t parts = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	static uint8_t copy[OP_PERF_RING_BYTES_MAX];
	struct op_stack_layout layout = { .sample_type = OP_SAMPLE_TYPE | parts, .machine = op_stack_machine() };
	struct op_stack_record stack;
	struct op_chain_frame frame;
	struct op_event event;

	opi_event_name(from, &event);
	layout.registers = event.stack_registers;
	fuzz_check(event.has_stack && !op_stack_record(record->header, sample->mode, &layout, &stack));
	if (stack.nr_stack_bytes)
		memcpy(copy, stack.stack, stack.nr_stack_bytes);
	while (op_chain_next(&stack.chain, &frame))
		continue;
}

static void check_sample(const struct op_perf_data *data, const struct op_perf_record *record)
{
	const struct op_perf_event *event;
	struct op_sample sample;

	if (record->header->size <= sizeof(*record->header) + sizeof(uint64_t))
		return; /* undecodable, and meant to be */
	event = &op_perf_data_events(data)->events[record->event];
	fuzz_check(record->header->size >= OP_SAMPLE_RECORD_BYTES && !op_record_sample(record->header, &sample));
	fuzz_check(sample.time_ns == record->time_ns && sample.id == (uint64_t)record->event + 1);
	if (op_perf_has_stack(event))
		check_stack(record, event, &sample);
}

static void check_mmap(const struct op_perf_record *record)
{
	struct op_mmap_record mapping;

	if (!op_record_mmap(record->header, &mapping))
		fuzz_check(mapping.who.time_ns == record->time_ns && strlen(mapping.file_name) < OP_PERF_NAME_BYTES_MAX);
}

static void check_record(const struct op_perf_data *data, const struct op_perf_record *record)
{
	const struct op_perf_events *events = op_perf_data_events(data);

	fuzz_check(record->event == OP_PERF_NO_EVENT || record->event < events->nr_events);
	if (record->kind == OP_PERF_PASSED_OVER || record->kind == OP_PERF_ROUND)
		return;
	fuzz_check(record->header && record->header->size >= sizeof(*record->header) && record->header->size % 8 == 0);
	if (record->kind == OP_PERF_RING)
		fuzz_check(record->header->size <= OP_PERF_RING_BYTES_MAX);
	if (record->header->type == PERF_RECORD_SAMPLE)
		check_sample(data, record);
	if (record->header->type == PERF_RECORD_MMAP2)
		check_mmap(record);
}

/* The events become those of a session, and no two have the same name. */
static void check_events(const struct op_perf_data *data)
{
	const struct op_perf_events *events = op_perf_data_events(data);
	struct op_event_list list = { .events = NULL };
	struct op_ibs_cpu cpu;

	fuzz_check(!opi_events_match(events, op_perf_data_features(data), NULL, &cpu, &list));
	fuzz_check(list.nr_opened == events->nr_events && list.nr_events <= OP_SESSION_LEDGER_EVENTS_MAX);
	for (size_t i = 1; i < list.nr_events; i++)
		fuzz_check(list.events[i].role == OP_EVENT_MEMORY || list.events[i].count != list.events[i - 1].count ||
			   strcmp(list.events[i].name, list.events[i - 1].name) != 0);
	op_event_list_free(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	struct op_perf_data *data;
	struct op_perf_record record;
	const char *why = NULL;
	uint64_t nr_records = 0;
	bool is_pipe, is_directory;
	int fd, err;

	if (!nr_bytes)
		return 0;
	is_pipe = bytes[0] & IS_PIPE;
	is_directory = !is_pipe && bytes[0] & IS_DIRECTORY;
	if ((is_pipe && nr_bytes > PIPE_MAX_BYTES) || (is_directory && nr_bytes <= LENGTHS_BYTES))
		return 0;
	fd = is_directory ? put_directory(bytes + 1, nr_bytes - 1) : put(bytes + 1, nr_bytes - 1, is_pipe);
	err = op_perf_data_open(fd, NULL, &data, &why);
	fuzz_check(err != -EBADMSG || why);
	if (!err) {
		while ((err = op_perf_data_next(data, &record)) > 0) {
			nr_records++;
			check_record(data, &record);
		}
		fuzz_check(!err && nr_records == op_perf_data_counts(data)->nr_records);
		check_events(data);
		op_perf_data_close(data);
	}
	close(fd);
	return 0;
}
