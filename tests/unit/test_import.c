/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The import of records that come one CPU after the other, with rounds of any length. */
#include "tests/unit/cmocka_all.h"
#include "tests/unit/pair.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/opimport/backlog.h"
#include "tools/opimport/event_match.h"
#include "tools/opimport/import.h"
#include "libop/odb/read.h"
#include "libop/session/directory.h"
#include "libop/session/sum.h"
#include "libop/session/ledger_file.h"
#include "tests/unit/test_box.h"

/* of the first CPU in a round, which has all its records before those of the other */
#define SAMPLES      4000u
#define TASKS        50u
#define TASK_SAMPLES 3u
/* between samples of the first CPU: a round is so long that the oldest samples are forgotten */
#define STEP_NS      2000000u
#define LATE_ROUNDS  400u
#define LATE_AT_NS   OP_NS_PER_S
#define FEW_BYTES    1024u
#define FIRST_PID    1000u
#define OLD_PID      500u
#define IMAGE        0x400000u
#define IMAGE_BYTES  0x10000u
#define ID           7u
#define IBS_TYPE     11u
#define SOME_CPUS    9u
#define MANY_CPUS    40u
#define SAMPLE_BITS  (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

int __real_op_sys_memfd_create(const char *name, unsigned int flags);
int __wrap_op_sys_memfd_create(const char *name, unsigned int flags);

static struct {
	uint32_t nr_before;
	int err; /* 0: none */
} no_ring;

int __wrap_op_sys_memfd_create(const char *name, unsigned int flags)
{
	if (no_ring.err && !no_ring.nr_before)
		return no_ring.err;
	no_ring.nr_before -= !!no_ring.nr_before;
	return __real_op_sys_memfd_create(name, flags);
}

struct imported {
	char dir[32];
	int fd;
	struct op_perf_events events;
	struct op_perf_features features;
	struct op_perf_translator translator;
	struct opi_import *import;
	struct op_stop stop;
	bool separate_cpu;
};

struct words {
	struct perf_event_header header;
	uint64_t body[16];
};

static int session_setup(void **state)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .sample_type = SAMPLE_BITS, .sample_id_all = 1, .sample_period = 100000
	};
	struct imported *imported = calloc(1, sizeof(*imported));
	uint32_t event;

	imported->fd = box_make(imported->dir) ? -1 : op_session_open(imported->dir);
	imported->translator = (struct op_perf_translator){ .events = &imported->events, .features = &imported->features };
	*state = imported;
	return imported->fd < 0 || op_perf_events_add(&imported->events, &attr, &event) < 0 ||
	       op_perf_events_add_id(&imported->events, ID, event) < 0;
}

static int session_teardown(void **state)
{
	struct imported *imported = *state;
	int err;

	opi_import_close(imported->import);
	op_perf_events_free(&imported->events);
	op_perf_features_free(&imported->features);
	close(imported->fd);
	err = box_remove(imported->dir);
	free(imported);
	return err;
}

static void begin(struct imported *imported, size_t round_records, size_t memory_bytes)
{
	const struct opi_import_config config = {
		.features = &imported->features,
		.stop = &imported->stop,
		.session_fd = imported->fd,
		.separate_lib = true,
		.separate_cpu = imported->separate_cpu,
		.max_open = 8, /* fewer than there are */
		.max_images = 2 * TASKS,
		.round_records = round_records,
		.memory_bytes = memory_bytes,
	};

	assert_int_equal(opi_import_open(&config, &imported->import), 0);
}

/* ---- records, as perf writes them ---- */

static uint64_t pair_of(uint32_t low, uint32_t high)
{
	return PAIR(low, high);
}

static void take(struct imported *imported, uint32_t type, uint16_t misc, size_t nr_words, const uint64_t *body)
{
	struct words words = { .header = { .type = type, .misc = misc, .size = (uint16_t)(8 + 8 * nr_words) } };
	struct op_perf_record record = { .event = OP_PERF_NO_EVENT };

	memcpy(words.body, body, 8 * nr_words);
	assert_int_equal(op_perf_translate(&imported->translator, &words.header, (const uint8_t *)words.body, &record), 0);
	assert_int_equal(opi_import_take(imported->import, &imported->events, &record), 0);
}

static void sample(struct imported *imported, uint32_t cpu, uint32_t pid, uint64_t time_ns)
{
	take(imported, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 5,
	     (const uint64_t[]){ ID, IMAGE + 0x100, pair_of(pid, pid), time_ns, pair_of(cpu, 0) });
}

static void mapping(struct imported *imported, uint32_t cpu, uint32_t pid, uint64_t time_ns)
{
	uint64_t body[10] = { pair_of(pid, pid), IMAGE, IMAGE_BYTES, 0, 0, 0, pair_of(pid, pid), time_ns, pair_of(cpu, 0), ID };

	snprintf((char *)&body[4], 16, "/no/such/%u", pid);
	take(imported, PERF_RECORD_MMAP, PERF_RECORD_MISC_USER, 10, body);
}

static void leave(struct imported *imported, uint32_t cpu, uint32_t pid, uint64_t time_ns)
{
	take(imported, PERF_RECORD_EXIT, 0, 7,
	     (const uint64_t[]){ pair_of(pid, 1), pair_of(pid, 1), time_ns, pair_of(pid, pid), time_ns, pair_of(cpu, 0), ID });
}

static void end_round(struct imported *imported)
{
	const struct op_perf_record record = { .kind = OP_PERF_ROUND, .event = OP_PERF_NO_EVENT };

	assert_int_equal(opi_import_take(imported->import, &imported->events, &record), 0);
}

/*
 * All records of the first CPU, in which an old process runs; then those of the other CPU, where
 * one process follows another.
 */
static void take_round(struct imported *imported)
{
	mapping(imported, 0, OLD_PID, 1);
	for (uint32_t i = 1; i <= SAMPLES; i++)
		sample(imported, 0, OLD_PID, (uint64_t)i * STEP_NS);
	for (uint32_t i = 0; i < TASKS; i++) {
		uint64_t time_ns = (uint64_t)(i + 1) * (SAMPLES / TASKS) * STEP_NS;

		mapping(imported, 1, FIRST_PID + i, time_ns);
		for (uint32_t k = 1; k <= TASK_SAMPLES; k++)
			sample(imported, 1, FIRST_PID + i, time_ns + k);
		leave(imported, 1, FIRST_PID + i, time_ns + TASK_SAMPLES + 1);
	}
}

static void assert_all_placed(struct imported *imported)
{
	struct opi_import_counts counts;
	struct op_ledger_event event;

	opi_import_counts(imported->import, &counts);
	opi_import_ledger(imported->import, 0, &event);
	assert_int_equal(event.received, SAMPLES + TASKS * TASK_SAMPLES);
	assert_int_equal(event.stored, event.received);
	assert_int_equal(event.unattributed, 0);
	assert_int_equal(counts.nr_images, TASKS + 1);
	assert_int_equal(counts.nr_late, 0);
	assert_int_equal(counts.nr_unordered, 0);
}

/* The ledger has everything that a daemon needs to continue the session. */
static void assert_files_are_as_left(const struct imported *imported)
{
	int fd = op_session_open_current(imported->fd);
	struct op_session_ledger ledger;
	struct op_session_files files;

	assert_true(fd >= 0);
	assert_int_equal(op_session_ledger_read(fd, &ledger, NULL), 0);
	assert_int_equal(op_session_files_look(fd, &files), 0);
	assert_true(ledger.has_files);
	assert_in_range(files.nr, TASKS + 1, UINT32_MAX);
	assert_int_equal(ledger.files.nr, files.nr);
	assert_int_equal(ledger.files.fingerprint, files.fingerprint);
	op_session_ledger_free(&ledger);
	close(fd);
}

/* ---- rounds ---- */

static void a_round_is_not_cut(void **state)
{
	struct imported *imported = *state;

	begin(imported, 0, FEW_BYTES);
	take_round(imported);
	end_round(imported);
	end_round(imported);
	assert_int_equal(opi_import_finish(imported->import, &imported->events), 0);
	assert_all_placed(imported);
	assert_files_are_as_left(imported);
}

/*
 * A virtual CPU stood still between the time stamp of a mapping and the write to the ring.
 * Meanwhile rounds have ended.
 */
static void late_by(struct imported *imported, uint64_t late_ns, uint64_t nr_wanted)
{
	uint64_t time_ns = LATE_AT_NS;
	struct opi_import_counts counts;

	begin(imported, 0, FEW_BYTES);
	mapping(imported, 0, OLD_PID, 1);
	for (uint32_t i = 0; i < LATE_ROUNDS; i++) {
		for (uint32_t k = 0; k < SAMPLES / LATE_ROUNDS; k++)
			sample(imported, 0, OLD_PID, time_ns += STEP_NS);
		end_round(imported);
	}
	mapping(imported, 1, FIRST_PID, time_ns - late_ns);
	sample(imported, 1, FIRST_PID, time_ns + 1);
	assert_int_equal(opi_import_finish(imported->import, &imported->events), 0);
	opi_import_counts(imported->import, &counts);
	assert_int_equal(counts.nr_late, nr_wanted);
	assert_int_equal(counts.nr_unordered, nr_wanted);
}

static void a_stall_is_waited_for(void **state)
{
	late_by(*state, OPI_IMPORT_LATE_NS - STEP_NS, 0);
}

static void a_long_stall_is_told(void **state)
{
	late_by(*state, 3 * (uint64_t)OPI_IMPORT_LATE_NS, 1);
}

static void without_rounds_it_is_one(void **state)
{
	struct imported *imported = *state;

	begin(imported, 0, FEW_BYTES);
	take_round(imported);
	assert_int_equal(opi_import_finish(imported->import, &imported->events), 0);
	assert_all_placed(imported);
}

/* With rounds by number, records that come too late are reported. */
static void too_late_is_told(void **state)
{
	struct imported *imported = *state;
	struct opi_import_counts counts;
	struct op_ledger_event event;

	begin(imported, SAMPLES / 8, FEW_BYTES);
	take_round(imported);
	assert_int_equal(opi_import_finish(imported->import, &imported->events), 0);
	opi_import_counts(imported->import, &counts);
	opi_import_ledger(imported->import, 0, &event);
	assert_int_equal(event.stored, SAMPLES + TASKS * TASK_SAMPLES);
	assert_in_range(counts.nr_unordered, TASKS / 4, TASKS * (2 + TASK_SAMPLES));
	assert_in_range(counts.nr_late, counts.nr_unordered, TASKS * (2 + TASK_SAMPLES));
}

/* Whatever it is at. */
static void a_stopped_one_counts_no_more(void **state)
{
	struct imported *imported = *state;

	assert_int_equal(op_stop_open(&imported->stop), 0);
	begin(imported, 0, FEW_BYTES);
	take_round(imported);
	assert_int_equal(op_stop_wait(&imported->stop, imported->fd), 0);
	op_stop_set(&imported->stop);
	assert_int_equal(op_stop_wait(&imported->stop, imported->fd), -EINTR);
	assert_int_equal(opi_import_finish(imported->import, &imported->events), -EINTR);
	close(imported->stop.fd);
}

/* ---- CPUs ---- */

static size_t nr_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t nr = 0;

	assert_non_null(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

/* Of one CPU after the other: CPU n has n records, and then n more. */
static void take_all_cpus(struct imported *imported, uint32_t nr_cpus)
{
	uint64_t time_ns = 1;

	mapping(imported, 0, OLD_PID, time_ns);
	for (uint32_t turn = 0; turn < 2 * nr_cpus; turn++)
		for (uint32_t cpu = 0; cpu < nr_cpus; cpu++)
			if (turn <= cpu || turn >= nr_cpus)
				sample(imported, cpu, OLD_PID, ++time_ns);
}

static uint64_t samples_of_cpu(const struct imported *imported, uint32_t cpu)
{
	struct op_odb_samples samples;
	char path[128];
	uint64_t sum = 0;

	snprintf(path, sizeof(path), "samples/current/{root}/no/such/%u/{dep}/{root}/no/such/%u/cpu-clock.100000.0.all.all.%u",
		 OLD_PID, OLD_PID, cpu);
	assert_int_equal(op_odb_read(imported->fd, path, &samples, NULL), 0);
	for (uint32_t i = 0; i < samples.nr_nodes; i++)
		sum += samples.nodes[i].value;
	op_odb_samples_free(&samples);
	return sum;
}

static void check_cpus(struct imported *imported, uint32_t nr_cpus)
{
	uint32_t nr_samples = nr_cpus * (nr_cpus + 1) / 2 + nr_cpus * nr_cpus;
	struct opi_import_counts counts;
	struct op_ledger_event event;

	assert_int_equal(opi_import_finish(imported->import, &imported->events), 0);
	opi_import_counts(imported->import, &counts);
	opi_import_ledger(imported->import, 0, &event);
	assert_int_equal(event.received, nr_samples);
	assert_int_equal(event.stored, nr_samples);
	assert_int_equal(counts.nr_cpus, nr_cpus);
	for (uint32_t cpu = 0; imported->separate_cpu && cpu < nr_cpus; cpu++)
		assert_int_equal(samples_of_cpu(imported, cpu), cpu + 1 + nr_cpus);
}

static void many_cpus_have_no_descriptors(void **state)
{
	struct imported *imported = *state;
	size_t nr_before;

	begin(imported, 1, FEW_BYTES);
	take_all_cpus(imported, 2);
	nr_before = nr_descriptors();
	take_all_cpus(imported, MANY_CPUS);
	assert_in_range(nr_descriptors(), 0, nr_before + 1);
}

static void share(void **state, int err, bool separate_cpu)
{
	struct imported *imported = *state;

	imported->separate_cpu = separate_cpu;
	begin(imported, 0, FEW_BYTES);
	no_ring.err = err;
	no_ring.nr_before = 3 * 3; /* two rings of a pair and a side band for each of three CPUs */
	take_all_cpus(imported, SOME_CPUS);
	check_cpus(imported, SOME_CPUS);
	no_ring.err = 0;
}

/* CPUs without rings share those of CPU 0 and still have their own numbers. */
static void without_descriptors_cpus_share_rings(void **state)
{
	share(state, -EMFILE, false);
}

static void without_memory_they_are_told_apart(void **state)
{
	share(state, -ENOMEM, true);
}

static void without_files_they_are_told_apart(void **state)
{
	share(state, -ENFILE, true);
}

/* ---- events ---- */

static int compare_names(const void *left, const void *right)
{
	const struct op_event *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	return order ? order : (a->count > b->count) - (a->count < b->count);
}

static size_t nr_of_role(const struct op_event_list *list, enum op_event_role role)
{
	size_t nr = 0;

	for (size_t i = 0; i < list->nr_events; i++)
		nr += list->events[i].role == role;
	return nr;
}

/* So many events with one period; some of them are samplers. */
static size_t make_events(struct imported *imported, size_t nr_events)
{
	const struct perf_event_attr attr = { .type = IBS_TYPE,
					      .sample_type = SAMPLE_BITS | PERF_SAMPLE_RAW,
					      .sample_period = 100000 };
	struct op_event_list list = { .events = NULL };
	struct op_ibs_cpu cpu;
	size_t nr_samplers;
	uint32_t event;

	imported->features.ibs_pmu_types[OP_IBS_OP] = IBS_TYPE;
	while (imported->events.nr_events < nr_events)
		assert_int_equal(op_perf_events_add(&imported->events, &attr, &event), 0);
	assert_int_equal(opi_events_match(&imported->events, &imported->features, NULL, &cpu, &list), 0);
	nr_samplers = nr_of_role(&list, OP_EVENT_SAMPLER);
	assert_int_equal(list.nr_opened, nr_events);
	assert_int_equal(nr_of_role(&list, OP_EVENT_PLAIN), nr_events - nr_samplers);
	assert_in_range(list.nr_events, nr_events, OP_SESSION_LEDGER_EVENTS_MAX);
	qsort(list.events, list.nr_events, sizeof(*list.events), compare_names);
	for (size_t i = 1; i < list.nr_events; i++)
		assert_true(compare_names(&list.events[i - 1], &list.events[i]) < 0);
	op_event_list_free(&list);
	return nr_samplers;
}

/*
 * The first samplers get derived events until the session has no more room. The time to name them
 * does not explode.
 */
static void as_many_events_as_there_may_be(void **state)
{
	struct imported *imported = *state;

	assert_int_equal(make_events(imported, 1 + 2), 2);
	assert_in_range(make_events(imported, 1 + 100), 5, 15);
	assert_int_equal(make_events(imported, OP_PERF_EVENTS_MAX), 0);
}

static void naming_is_ended_by_a_signal(void **state)
{
	struct imported *imported = *state;
	struct op_event_list list = { .events = NULL };
	struct op_ibs_cpu cpu;

	imported->stop.is_set = 1;
	assert_int_equal(opi_events_match(&imported->events, &imported->features, &imported->stop, &cpu, &list), -EINTR);
	op_event_list_free(&list);
}

/* ---- what waits ---- */

struct taken {
	uint64_t nr, sum, last;
	bool is_ordered;
};

static int note(void *arg, uint32_t cpu, const struct perf_event_header *record)
{
	const struct words *words = (const void *)record;
	struct taken *taken = arg;

	taken->is_ordered &= words->body[0] >= taken->last;
	taken->last = words->body[0];
	taken->sum += words->body[0] + cpu;
	taken->nr++;
	return 0;
}

static void hold(struct opi_backlog *backlog, bool is_sideband, uint64_t time_ns)
{
	const struct words words = { .header = { .type = PERF_RECORD_SAMPLE, .size = 24 }, .body = { time_ns, ~time_ns } };
	const struct op_perf_record record = { .time_ns = time_ns, .cpu = 3, .header = &words.header };

	assert_int_equal(is_sideband ? opi_backlog_add_sideband(backlog, &record) : opi_backlog_add(backlog, &record), 0);
}

static int take_half(struct opi_backlog *backlog, bool is_sideband, uint64_t until_ns, struct taken *ret_taken)
{
	*ret_taken = (struct taken){ .is_ordered = true };
	return is_sideband ? opi_backlog_take_sideband(backlog, until_ns, note, ret_taken)
			   : opi_backlog_take(backlog, until_ns, note, ret_taken);
}

static void wait_and_take(int fd, size_t memory_bytes, bool is_sideband)
{
	struct opi_backlog backlog;
	struct taken taken;

	opi_backlog_init(&backlog, fd, memory_bytes);
	for (uint64_t i = 0; i < SAMPLES; i++)
		hold(&backlog, is_sideband, i * 7 % SAMPLES);
	assert_int_equal(is_sideband ? backlog.sideband.is_file : backlog.ring.is_file, memory_bytes == FEW_BYTES);
	for (uint64_t half = 0; half < 2; half++) {
		uint64_t first = half * SAMPLES / 2, end = first + SAMPLES / 2;

		assert_int_equal(take_half(&backlog, is_sideband, end - 1, &taken), 0);
		assert_int_equal(taken.nr, SAMPLES / 2);
		assert_int_equal(taken.sum, (first + end - 1) * (SAMPLES / 2) / 2 + (is_sideband ? 0 : 3 * SAMPLES / 2));
		assert_int_equal(taken.is_ordered, is_sideband);
		assert_int_equal(opi_backlog_compact(&backlog), 0);
		hold(&backlog, is_sideband, 2 * SAMPLES);
	}
	assert_int_equal(take_half(&backlog, is_sideband, UINT64_MAX, &taken), 0);
	assert_int_equal(taken.nr, 2);
	opi_backlog_free(&backlog);
}

static void in_memory_and_in_a_file(void **state)
{
	const struct imported *imported = *state;

	for (int is_sideband = 0; is_sideband < 2; is_sideband++) {
		wait_and_take(imported->fd, FEW_BYTES, is_sideband);
		wait_and_take(imported->fd, (size_t)1 << 30, is_sideband);
	}
}

/* The records that wait in memory are still there. */
static void without_a_file(void **state OP_UNUSED)
{
	struct opi_backlog backlog;
	struct taken taken;

	opi_backlog_init(&backlog, -1, FEW_BYTES);
	while (backlog.ring.length + 2 * sizeof(struct words) < FEW_BYTES)
		hold(&backlog, false, backlog.nr_ring);
	assert_int_equal(opi_spill_reserve(&backlog.ring, FEW_BYTES), -EBADF);
	assert_int_equal(opi_spill_reserve(&backlog.sideband, FEW_BYTES + 1), -EBADF);
	assert_int_equal(take_half(&backlog, false, UINT64_MAX, &taken), 0);
	assert_in_range(taken.nr, 10, FEW_BYTES);
	opi_backlog_free(&backlog);
}

static void slices_of_the_side_band(void **state)
{
	const struct imported *imported = *state;
	uint64_t nr_slices = 0, slice_ns;
	struct opi_backlog backlog;
	struct taken taken;

	opi_backlog_init(&backlog, imported->fd, FEW_BYTES);
	for (uint64_t i = 0; i < SAMPLES; i++)
		hold(&backlog, true, i / 2);
	while ((slice_ns = opi_backlog_slice(&backlog, SAMPLES)) < SAMPLES) {
		assert_int_equal(take_half(&backlog, true, slice_ns, &taken), 0);
		assert_in_range(taken.nr * 24, FEW_BYTES, FEW_BYTES + 48);
		nr_slices++;
	}
	assert_in_range(nr_slices, SAMPLES * 24 / (FEW_BYTES + 48), SAMPLES * 24 / FEW_BYTES);
	opi_backlog_free(&backlog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_round_is_not_cut, session_setup, session_teardown),
		cmocka_unit_test_setup_teardown(a_stall_is_waited_for, session_setup, session_teardown),
		cmocka_unit_test_setup_teardown(a_long_stall_is_told, session_setup, session_teardown),
		cmocka_unit_test_setup_teardown(without_rounds_it_is_one, session_setup, session_teardown),
		cmocka_unit_test_setup_teardown(too_late_is_told, session_setup, session_teardown),
		cmocka_unit_test_setup_teardown(a_stopped_one_counts_no_more, session_setup, session_teardown),
		cmocka_unit_test_setup_teardown(many_cpus_have_no_descriptors, session_setup, session_teardown),
		cmocka_unit_test_setup_teardown(without_descriptors_cpus_share_rings, session_setup, session_teardown),
		cmocka_unit_test_setup_teardown(without_memory_they_are_told_apart, session_setup, session_teardown),
		cmocka_unit_test_setup_teardown(without_files_they_are_told_apart, session_setup, session_teardown),
		cmocka_unit_test_setup_teardown(as_many_events_as_there_may_be, session_setup, session_teardown),
		cmocka_unit_test_setup_teardown(naming_is_ended_by_a_signal, session_setup, session_teardown),
		cmocka_unit_test_setup_teardown(in_memory_and_in_a_file, session_setup, session_teardown),
		cmocka_unit_test(without_a_file),
		cmocka_unit_test_setup_teardown(slices_of_the_side_band, session_setup, session_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
