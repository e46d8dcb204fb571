/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * libFuzzer target of the perf.data reader. Input: whether the file comes through a pipe (1 byte), then the file. Every record
 * that comes out must be one that opd's own decoder takes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/perf_data.h"
#include "libop/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes);

#define PIPE_MAX_BYTES 32768u /* what a pipe holds without a reader */

static void check(bool good)
{
	if (!good)
		abort();
}

static int put(const uint8_t *bytes, size_t nr_bytes, bool is_pipe)
{
	int fds[2];

	if (is_pipe) {
		check(!pipe(fds));
	} else {
		fds[0] = fds[1] = memfd_create("fuzz", MFD_CLOEXEC);
		check(fds[0] >= 0);
	}
	check(write(fds[1], bytes, nr_bytes) == (ssize_t)nr_bytes);
	if (is_pipe)
		close(fds[1]);
	return fds[0];
}

static void check_sample(const struct op_perf_record *record)
{
	struct op_sample sample;

	if (record->header->size == sizeof(*record->header))
		return; /* undecodable, and meant to be */
	check(record->header->size >= OP_SAMPLE_RECORD_BYTES && !op_record_sample(record->header, &sample));
	check(sample.time_ns == record->time_ns && sample.id == (uint64_t)record->event + 1);
}

static void check_mmap(const struct op_perf_record *record)
{
	struct op_mmap_record mapping;

	if (!op_record_mmap(record->header, &mapping))
		check(mapping.who.time_ns == record->time_ns && strlen(mapping.file_name) < OP_PERF_NAME_BYTES_MAX);
}

static void check_record(const struct op_perf_data *data, const struct op_perf_record *record)
{
	const struct op_perf_events *events = op_perf_data_events(data);

	check(record->event == OP_PERF_NO_EVENT || record->event < events->nr_events);
	if (record->kind == OP_PERF_PASSED_OVER || record->kind == OP_PERF_ROUND)
		return;
	check(record->header && record->header->size >= sizeof(*record->header) && record->header->size % 8 == 0);
	if (record->kind == OP_PERF_RING)
		check(record->header->size <= OP_PERF_RING_BYTES_MAX);
	if (record->header->type == PERF_RECORD_SAMPLE)
		check_sample(record);
	if (record->header->type == PERF_RECORD_MMAP2)
		check_mmap(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	struct op_perf_data *data;
	struct op_perf_record record;
	const char *why = NULL;
	uint64_t nr_records = 0;
	int fd, err;

	if (!nr_bytes || ((bytes[0] & 1) && nr_bytes > PIPE_MAX_BYTES))
		return 0;
	fd = put(bytes + 1, nr_bytes - 1, bytes[0] & 1);
	err = op_perf_data_open(fd, &data, &why);
	check(err != -EBADMSG || why);
	if (!err) {
		while ((err = op_perf_data_next(data, &record)) > 0) {
			nr_records++;
			check_record(data, &record);
		}
		check(!err && nr_records == op_perf_data_counts(data)->nr_records);
		op_perf_data_close(data);
	}
	close(fd);
	return 0;
}
