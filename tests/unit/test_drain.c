/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The pipeline from a ring in memory to sample files: each sample is stored or lost under a name.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "libop/odb/read.h"
#include "pipeline/drive/drain.h"
#include "pipeline/resolve/resolver.h"
#include "pipeline/resolve/sideband.h"
#include "tests/unit/disk.h"
#include "tests/unit/pipeline_cpu.h"
#include "tests/unit/sideband_records.h"

#define PID 4000000u /* above any pid_max, so /proc does not have it */
#define EVENT_ID 17
#define ONE_SECOND_NS 1000000000u

static struct opd_pipeline pipeline;
static struct opd_cpu cpu;
static struct opd_event events[3], *const event = events;
static struct op_event kinds[3] = {
	{ .name = "TIMER", .count = 1000000, .is_timer = true, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK },
	{ .name = "page-faults", .count = 1, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS },
	{ .name = "context-switches", .count = 1, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CONTEXT_SWITCHES },
};
static char dir[BOX_PATH_BYTES];

static int pipeline_setup(void **state OP_UNUSED)
{
	disk_fails.fallocate = 0;
	memset(events, 0, sizeof(events));
	for (uint64_t i = 0; i < op_array_size(events); i++)
		events[i].id = EVENT_ID + i;
	return pipeline_cpu_begin(&pipeline, &cpu, events, kinds, dir);
}

static int pipeline_teardown(void **state OP_UNUSED)
{
	return pipeline_cpu_end(&pipeline, &cpu, dir);
}

static void sample(uint16_t mode, uint64_t ip, uint32_t pid, uint64_t time_ns)
{
	uint64_t words[] = { EVENT_ID, ip, PAIR(pid, pid), time_ns };

	assert_true(memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_SAMPLE, mode, words, 4));
}

static void fork_record(uint32_t parent, uint32_t child, uint64_t time_ns)
{
	sideband_fork(&cpu.sideband, parent, child, time_ns);
}

static void exec_record(uint32_t pid, uint64_t time_ns)
{
	sideband_exec(&cpu.sideband, pid, time_ns);
}

static void mmap_record(uint32_t pid, uint64_t start, uint64_t bytes, uint64_t offset, const char *name, uint64_t time_ns)
{
	sideband_mmap(&cpu.sideband, pid, start, bytes, offset, name, time_ns);
}

static void drain(void)
{
	struct opd_sideband_loss loss;

	assert_int_equal(opd_sideband_drain(&pipeline.capture, &pipeline.resolver, UINT64_MAX, &loss), 0);
	opd_drain_ring(&pipeline, &cpu, &cpu.pair.rings[0]);
}

static uint64_t stored(const char *path, uint64_t key)
{
	struct op_odb_samples samples;
	char whole[512];
	uint64_t sum = 0;

	snprintf(whole, sizeof(whole), "samples/current/%s/TIMER.1000000.0.all.all.all", path);
	if (op_odb_read(pipeline.count.session_fd, whole, &samples, NULL) < 0)
		return 0;
	for (uint32_t i = 0; i < samples.nr_nodes; i++)
		if (samples.nodes[i].key == key)
			sum += samples.nodes[i].value;
	op_odb_samples_free(&samples);
	return sum;
}

static void user_samples_go_to_app_and_library(void **state OP_UNUSED)
{
	exec_record(PID, 10);
	mmap_record(PID, 0x400000, 0x1000, 0x1000, "/no/app", 11);
	mmap_record(PID, 0x7f0000000000, 0x2000, 0x3000, "/no/lib.so", 12);
	sample(PERF_RECORD_MISC_USER, 0x400010, PID, 20);
	sample(PERF_RECORD_MISC_USER, 0x400010, PID, 21);
	sample(PERF_RECORD_MISC_USER, 0x7f0000000020, PID, 22);
	drain();
	assert_int_equal(event->received, 3);
	assert_int_equal(event->stored, 3);
	assert_int_equal(event->unattributed, 0);
	assert_int_equal(stored("{root}/no/app/{dep}/{root}/no/app", 0x1010), 2);
	assert_int_equal(stored("{root}/no/app/{dep}/{root}/no/lib.so", 0x3020), 1);
	assert_int_equal(cpu.pair.counts.records, 3);
	assert_int_equal(cpu.pair.counts.bytes, 3 * 40);
}

/* The check against /proc takes the most frequent answers: here a loop at one address. */
static void what_repeats_is_given(void **state OP_UNUSED)
{
	uint64_t nr_uses = 0;

	exec_record(PID, 10);
	mmap_record(PID, 0x400000, 0x1000, 0x1000, "/no/app", 11);
	for (uint64_t i = 0; i < 100; i++)
		sample(PERF_RECORD_MISC_USER, i == 60 ? 0x400020 : 0x400010, PID, 20 + i);
	drain();
	for (size_t i = 0; i < OPD_FOUND_SLOTS; i++)
		nr_uses += pipeline.resolver.found[i].start == 0x400000 ? pipeline.resolver.found[i].nr_uses : 0;
	assert_int_equal(nr_uses, 100);
}

static void samples_go_by_their_own_time(void **state OP_UNUSED)
{
	exec_record(PID, 10);
	mmap_record(PID, 0x400000, 0x1000, 0, "/no/first", 11);
	exec_record(PID, 30);
	mmap_record(PID, 0x400000, 0x1000, 0, "/no/second", 31);
	fork_record(PID, PID + 1, 40);
	sample(PERF_RECORD_MISC_USER, 0x400001, PID, 20);
	sample(PERF_RECORD_MISC_USER, 0x400002, PID, 35);
	sample(PERF_RECORD_MISC_USER, 0x400003, PID + 1, 45);
	drain();
	assert_int_equal(stored("{root}/no/first/{dep}/{root}/no/first", 1), 1);
	assert_int_equal(stored("{root}/no/second/{dep}/{root}/no/second", 2), 1);
	assert_int_equal(stored("{root}/no/second/{dep}/{root}/no/second", 3), 1);
}

/* All processes of other pid namespaces have the number 0 and are not known. */
static void who_has_no_number_here_is_not_followed(void **state OP_UNUSED)
{
	exec_record(0, 10);
	mmap_record(0, 0x400000, 0x1000, 0, "/no/outside", 11);
	fork_record(0, PID, 12);
	sample(PERF_RECORD_MISC_USER, 0x400001, PID, 20);
	sample(PERF_RECORD_MISC_USER, 0x400002, 0, 21);
	drain();
	assert_int_equal(pipeline.resolver.processes.by_pid.nr_entries, 1);
	assert_int_equal(stored("{root}/no/outside/{dep}/{root}/no/outside", 1), 0);
	assert_int_equal(event->unattributed, 2);
}

static void a_late_commit_resolves_right_and_is_counted(void **state OP_UNUSED)
{
	exec_record(PID, 10);
	mmap_record(PID, 0x400000, 0x1000, 0, "/no/first", 11);
	exec_record(PID, 30);
	mmap_record(PID, 0x400000, 0x1000, 0, "/no/second", 31);
	sample(PERF_RECORD_MISC_USER, 0x400001, PID, 40);
	drain();
	/* Its writer chose the ring before the swap at 30: late when it is read again. */
	cpu.pair.since_ns[0] = 45;
	sample(PERF_RECORD_MISC_USER, 0x400002, PID, 20);
	sample(PERF_RECORD_MISC_USER, 0x400003, PID, 50);
	drain();
	assert_int_equal(cpu.pair.counts.late, 1);
	assert_int_equal(stored("{root}/no/first/{dep}/{root}/no/first", 2), 1);
	assert_int_equal(stored("{root}/no/second/{dep}/{root}/no/second", 1), 1);
	assert_int_equal(stored("{root}/no/second/{dep}/{root}/no/second", 3), 1);
}

static void what_has_no_place_is_stored_in_sight(void **state OP_UNUSED)
{
	exec_record(PID, 10);
	mmap_record(PID, 0x400000, 0x1000, 0, "/no/app", 11);
	sample(PERF_RECORD_MISC_USER, 0x900000, PID, 20);
	sample(PERF_RECORD_MISC_USER, 0x900001, PID + 7, 20);
	sample(PERF_RECORD_MISC_USER, 0x900002, UINT32_MAX, 20);
	sample(PERF_RECORD_MISC_HYPERVISOR, 0x10, PID, 20);
	sample(PERF_RECORD_MISC_CPUMODE_UNKNOWN, 0x11, PID, 20);
	drain();
	assert_int_equal(event->received, 5);
	assert_int_equal(event->stored, 5);
	assert_int_equal(event->unattributed, 5);
	assert_int_equal(stored("{root}/no/app/{dep}/{kern}/no-mapping", 0x900000), 1);
	assert_int_equal(stored("{kern}/no-process/{dep}/{kern}/no-process", 0x900001), 1);
	assert_int_equal(stored("{kern}/no-process/{dep}/{kern}/no-process", 0x900002), 1);
	assert_int_equal(stored("{kern}/hypervisor/{dep}/{kern}/hypervisor", 0x10), 1);
	assert_int_equal(stored("{kern}/no-mode/{dep}/{kern}/no-mode", 0x11), 1);
}

static void anonymous_and_kernel_code(void **state OP_UNUSED)
{
	pipeline.resolver.kernel.text_start = 0xffffffff81000000;
	pipeline.resolver.kernel.text_end = 0xffffffff82000000;
	exec_record(PID, 10);
	mmap_record(PID, 0x400000, 0x1000, 0, "/no/app", 11);
	mmap_record(PID, 0x500000, 0x1000, 0, "//anon", 12);
	mmap_record(PID, 0x600000, 0x1000, 0, "[vdso]", 12);
	sample(PERF_RECORD_MISC_USER, 0x500010, PID, 20);
	sample(PERF_RECORD_MISC_USER, 0x600020, PID, 20);
	sample(PERF_RECORD_MISC_USER, 0xffffffffff600030, PID, 20);
	sample(PERF_RECORD_MISC_KERNEL, 0xffffffff81000040, PID, 20);
	sample(PERF_RECORD_MISC_KERNEL, 0xffffffff81000050, 0, 20);
	drain();
	assert_int_equal(event->unattributed, 0);
	assert_int_equal(stored("{root}/no/app/{dep}/{anon:anon}/4000000.0x500000.0x501000", 0x10), 1);
	assert_int_equal(stored("{root}/no/app/{dep}/{anon:[vdso]}/0.0x0.0x1000", 0x20), 1);
	assert_int_equal(stored("{root}/no/app/{dep}/{anon:[vsyscall]}/0.0x0.0x1000", 0x30), 1);
	assert_int_equal(stored("{root}/no/app/{dep}/{root}/proc/kallsyms", 0x40), 1);
	assert_int_equal(stored("{root}/proc/kallsyms/{dep}/{root}/proc/kallsyms", 0x50), 1);
}

/* The answer for one sample is used for the next samples as long as it is valid, and no longer. */
static void what_was_found_is_not_found_for_too_long(void **state OP_UNUSED)
{
	pipeline.resolver.kernel.text_start = 0x500000; /* so that one address can be both */
	pipeline.resolver.kernel.text_end = 0x600000;
	exec_record(PID, 10);
	mmap_record(PID, 0x400000, 0x200000, 0, "/no/first", 11);
	for (uint64_t i = 0; i < 3; i++) {
		sample(PERF_RECORD_MISC_USER, 0x500010, PID, 20 + i);
		sample(PERF_RECORD_MISC_KERNEL, 0x500010, PID, 20 + i);
		sample(PERF_RECORD_MISC_USER, 0x500010, PID + 1, 20 + i);
	}
	drain();
	assert_int_equal(stored("{root}/no/first/{dep}/{root}/no/first", 0x100010), 3);
	assert_int_equal(stored("{root}/no/first/{dep}/{root}/proc/kallsyms", 0x10), 3);
	assert_int_equal(stored("{kern}/no-process/{dep}/{kern}/no-process", 0x500010), 3);
	mmap_record(PID, 0x500000, 0x1000, 0x7000, "/no/lib", 30);
	sample(PERF_RECORD_MISC_USER, 0x500010, PID, 40);
	sample(PERF_RECORD_MISC_USER, 0x500010, PID, 25);
	sample(PERF_RECORD_MISC_USER, 0x500010, PID, 41);
	sample(PERF_RECORD_MISC_USER, 0x4ffff0, PID, 41);
	sample(PERF_RECORD_MISC_USER, 0x501000, PID, 41);
	drain();
	assert_int_equal(stored("{root}/no/first/{dep}/{root}/no/lib", 0x7010), 2);
	assert_int_equal(stored("{root}/no/first/{dep}/{root}/no/first", 0x100010), 4);
	assert_int_equal(stored("{root}/no/first/{dep}/{root}/no/first", 0xffff0), 1);
	assert_int_equal(stored("{root}/no/first/{dep}/{root}/no/first", 0x101000), 1);
	exec_record(PID, 50);
	mmap_record(PID, 0x400000, 0x200000, 0x2000, "/no/second", 51);
	sample(PERF_RECORD_MISC_USER, 0x500010, PID, 60);
	sample(PERF_RECORD_MISC_KERNEL, 0x500010, PID, 60);
	sample(PERF_RECORD_MISC_USER, 0x500010, PID, 45);
	sample(PERF_RECORD_MISC_KERNEL, 0x500010, PID, 45);
	drain();
	assert_int_equal(stored("{root}/no/second/{dep}/{root}/no/second", 0x102010), 1);
	assert_int_equal(stored("{root}/no/second/{dep}/{root}/proc/kallsyms", 0x10), 1);
	assert_int_equal(stored("{root}/no/first/{dep}/{root}/no/lib", 0x7010), 3);
	assert_int_equal(stored("{root}/no/first/{dep}/{root}/proc/kallsyms", 0x10), 4);
	assert_int_equal(event->stored, event->received);
}

static void event_sample(uint64_t id, uint64_t ip, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	uint64_t words[] = { id, ip, PAIR(pid, tid), time_ns };

	assert_true(memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words, 4));
}

/* Samples that differ only in time are resolved once. One more difference resolves them again. */
static void what_is_repeated_is_counted_in_its_place(void **state OP_UNUSED)
{
	pipeline.capture.nr_events = pipeline.capture.nr_opened = 2;
	exec_record(PID, 10);
	mmap_record(PID, 0x400000, 0x1000, 0, "/no/first", 11);
	mmap_record(PID, 0x400000, 0x1000, 0x5000, "/no/lib", 30);
	cpu.pair.since_ns[0] = 25;
	for (uint64_t i = 0; i < 10; i++)
		event_sample(EVENT_ID, 0x400010, PID, PID, 40 + i);
	event_sample(EVENT_ID, 0x400010, PID, PID, 20); /* a late commit */
	event_sample(EVENT_ID, 0x400010, PID, PID, 50);
	event_sample(EVENT_ID + 1, 0x400010, PID, PID, 51);
	event_sample(EVENT_ID + 1, 0x400010, PID, PID, 52);
	event_sample(EVENT_ID, 0x400010, PID, PID + 1, 53);
	event_sample(EVENT_ID, 0x400010, PID + 1, PID + 1, 54);
	event_sample(EVENT_ID, 0x400010, PID + 1, PID + 1, 55);
	drain();
	assert_int_equal(cpu.pair.counts.late, 1);
	assert_int_equal(stored("{root}/no/first/{dep}/{root}/no/lib", 0x5010), 12);
	assert_int_equal(stored("{root}/no/first/{dep}/{root}/no/first", 0x10), 1);
	assert_int_equal(stored("{kern}/no-process/{dep}/{kern}/no-process", 0x400010), 2);
	assert_int_equal(events[0].received, 15);
	assert_int_equal(events[0].stored, 15);
	assert_int_equal(events[1].stored, 2);
	/* Across the ends of the batches of waiting samples, and across the end of the ring. */
	for (uint64_t i = 0; i < 3 * OPD_WAITING_MAX; i++) {
		event_sample(EVENT_ID, 0x400100 + i, PID, PID, 60);
		event_sample(EVENT_ID, 0x400100 + i, PID, PID, 61);
		if (i % 3 == 0)
			drain();
	}
	drain();
	mmap_record(PID, 0x400000, 0x1000, 0x7000, "/no/last", 70);
	event_sample(EVENT_ID, 0x400100 + 3 * OPD_WAITING_MAX - 1, PID, PID, 80);
	drain();
	for (uint64_t i = 0; i < 3 * OPD_WAITING_MAX; i++)
		assert_int_equal(stored("{root}/no/first/{dep}/{root}/no/lib", 0x5100 + i), 2);
	assert_int_equal(stored("{root}/no/first/{dep}/{root}/no/last", 0x7100 + 3 * OPD_WAITING_MAX - 1), 1);
	assert_int_equal(events[0].stored, 16 + 6 * OPD_WAITING_MAX);
}

/* Among so many, some share the slot of the first. */
static void what_was_found_is_one_process_only(void **state OP_UNUSED)
{
	exec_record(PID, 10);
	mmap_record(PID, 0x400000, 0x1000, 0, "/no/first", 11);
	for (uint32_t i = 1; i <= 3000; i++) {
		exec_record(PID + i * OPD_CHANGE_SLOTS, 25);
		sample(PERF_RECORD_MISC_USER, 0x400001, PID, 30);
		sample(PERF_RECORD_MISC_USER, 0x400001, PID + i * OPD_CHANGE_SLOTS, 30);
		drain();
	}
	assert_int_equal(event->unattributed, 3000);
	assert_int_equal(stored("{root}/no/first/{dep}/{root}/no/first", 1), 3000);
}

static uint64_t nobody_is_gone(uint32_t pid OP_UNUSED)
{
	return 0;
}

/* The pid of an ended process is used again: old answers do not hold for the new process. */
static void what_was_found_ends_with_the_process(void **state OP_UNUSED)
{
	exec_record(PID, 10);
	mmap_record(PID, 0x400000, 0x1000, 0, "/no/first", 11);
	exec_record(PID + 1, 12);
	mmap_record(PID + 1, 0x400000, 0x1000, 0x5000, "/no/second", 13);
	sample(PERF_RECORD_MISC_USER, 0x400001, PID, 20);
	drain();
	fork_record(PID + 1, PID, 30);
	sample(PERF_RECORD_MISC_USER, 0x400001, PID, 40);
	drain();
	assert_int_equal(stored("{root}/no/first/{dep}/{root}/no/first", 1), 1);
	assert_int_equal(stored("{root}/no/second/{dep}/{root}/no/second", 0x5001), 1);
	opd_process_thread_ended(&pipeline.resolver.processes, PID, PID, 50);
	opd_processes_prune(&pipeline.resolver.processes, 60, nobody_is_gone);
	sample(PERF_RECORD_MISC_USER, 0x400001, PID, 70);
	drain();
	assert_int_equal(event->unattributed, 1);
}

static void few_open_files_serve_many_at_once(void **state OP_UNUSED)
{
	char name[64];

	pipeline.count.max_open = 3;
	for (uint32_t i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "/no/app%u", i);
		exec_record(PID + i, 10);
		mmap_record(PID + i, 0x400000, 0x1000, 0, name, 11);
		drain();
	}
	for (uint32_t round = 0; round < 4; round++) {
		for (uint32_t i = 0; i < 20; i++)
			sample(PERF_RECORD_MISC_USER, 0x400010, PID + i * (round + 1) % 20, 20);
		drain();
		assert_true(pipeline.count.open.nr <= 3);
	}
	assert_int_equal(event->stored, 80);
	for (uint32_t i = 1; i < 20; i += 2) {
		snprintf(name, sizeof(name), "{root}/no/app%u/{dep}/{root}/no/app%u", i, i);
		assert_true(stored(name, 0x10) >= 2);
	}
	assert_int_equal(stored("{root}/no/app1/{dep}/{root}/no/app1", 0x10) + stored("{root}/no/app2/{dep}/{root}/no/app2", 0x10),
			 6);
}

static void regions_without_samples_cost_no_row(void **state OP_UNUSED)
{
	size_t nr_rows;

	exec_record(PID, 10);
	mmap_record(PID, 0x600000, 0x1000, 0, "[vdso]", 12);
	drain();
	nr_rows = op_dcookie_count(pipeline.resolver.table);
	for (uint32_t i = 1; i < 8; i++) {
		exec_record(PID + i, 20);
		mmap_record(PID + i, 0x600000 + 0x1000 * i, 0x1000, 0, "[vdso]", 21);
	}
	drain();
	assert_int_equal(op_dcookie_count(pipeline.resolver.table), nr_rows);
	sample(PERF_RECORD_MISC_USER, 0x601010, PID + 1, 30);
	drain();
	assert_int_equal(op_dcookie_count(pipeline.resolver.table), nr_rows + 1);
}

static void all_processes_have_one_vdso(void **state OP_UNUSED)
{
	size_t nr_rows = 0;

	for (uint32_t i = 0; i < 8; i++) {
		exec_record(PID + i, 20);
		mmap_record(PID + i, 0x400000, 0x1000, 0, "/no/app", 21);
		mmap_record(PID + i, 0x600000 + 0x1000 * i, 0x1000, 0, "[vdso]", 21);
		sample(PERF_RECORD_MISC_USER, 0x600010 + 0x1000 * i, PID + i, 30);
		if (!i) {
			drain();
			nr_rows = op_dcookie_count(pipeline.resolver.table);
		}
	}
	drain();
	assert_int_equal(op_dcookie_count(pipeline.resolver.table), nr_rows);
	assert_int_equal(stored("{root}/no/app/{dep}/{anon:[vdso]}/0.0x0.0x1000", 0x10), 8);
}

static void without_separation_images_stand_alone(void **state OP_UNUSED)
{
	pipeline.count.separate_lib = pipeline.count.separate_kernel = false;
	pipeline.resolver.kernel.text_start = 0xffffffff81000000;
	pipeline.resolver.kernel.text_end = 0xffffffff82000000;
	exec_record(PID, 10);
	mmap_record(PID, 0x400000, 0x1000, 0, "/no/app", 11);
	mmap_record(PID, 0x500000, 0x1000, 0, "/no/lib", 12);
	mmap_record(PID, 0x600000, 0x1000, 0, "//anon", 12);
	sample(PERF_RECORD_MISC_USER, 0x500010, PID, 20);
	sample(PERF_RECORD_MISC_USER, 0x600010, PID, 20);
	sample(PERF_RECORD_MISC_KERNEL, 0xffffffff81000040, PID, 20);
	drain();
	assert_int_equal(stored("{root}/no/lib/{dep}/{root}/no/lib", 0x10), 1);
	assert_int_equal(stored("{root}/no/app/{dep}/{anon:anon}/4000000.0x600000.0x601000", 0x10), 1);
	assert_int_equal(stored("{root}/proc/kallsyms/{dep}/{root}/proc/kallsyms", 0x40), 1);
}

static void losses_have_names(void **state OP_UNUSED)
{
	uint64_t short_body[] = { EVENT_ID }, lost[] = { EVENT_ID, 33 };

	exec_record(PID, 10);
	mmap_record(PID, 0x400000, 0x1000, 0, "/no/app", 11);
	memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, short_body, 1);
	memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_LOST, 0, lost, 2);
	memory_ring_record(&cpu.pair.rings[0], 200, 0, lost, 2); /* a record of a later kernel */
	disk_fails.fallocate = -ENOSPC;
	sample(PERF_RECORD_MISC_USER, 0x400010, PID, 20);
	sample(PERF_RECORD_MISC_USER, 0x400010, PID, 21);
	drain();
	assert_int_equal(event->received, 3);
	assert_int_equal(event->stored, 0);
	assert_int_equal(event->lost[OP_LOSS_undecodable], 1);
	assert_int_equal(event->lost[OP_LOSS_no_space], 2);
	assert_int_equal(event->lost_records, 33);
	disk_fails.fallocate = 0;
	pipeline.count.now_ns += ONE_SECOND_NS;
	sample(PERF_RECORD_MISC_USER, 0x400010, PID, 22);
	drain();
	assert_int_equal(event->stored, 1);
	assert_int_equal(event->received, event->stored + event->lost[OP_LOSS_undecodable] + event->lost[OP_LOSS_no_space]);
}

static void samples_with_anothers_identifier(void **state OP_UNUSED)
{
	uint64_t foreign[] = { 999, 0x400010, PAIR(PID, PID), 20 };

	exec_record(PID, 10);
	mmap_record(PID, 0x400000, 0x1000, 0, "/no/app", 11);
	/* Next to a clock, only the page faults are possible. */
	pipeline.capture.nr_events = pipeline.capture.nr_opened = 2;
	memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, foreign, 4);
	drain();
	assert_int_equal(events[1].stored, 1);
	assert_int_equal(events[0].received, 0);
	/* With two possible events, neither is chosen. */
	pipeline.capture.nr_events = pipeline.capture.nr_opened = 3;
	memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, foreign, 4);
	drain();
	assert_int_equal(events[1].stored, 1);
	assert_int_equal(events[2].stored, 0);
	assert_int_equal(events[0].lost[OP_LOSS_undecodable], 1);
	foreign[0] = events[2].id; /* and nothing but that */
	memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, foreign, 1);
	drain();
	assert_int_equal(events[2].lost[OP_LOSS_undecodable], 1);
}

static void a_time_of_another_clock_is_now(void **state OP_UNUSED)
{
	uint64_t foreign[] = { 999, 0x400010, PAIR(PID, PID), 5 };

	exec_record(PID, 1000);
	mmap_record(PID, 0x400000, 0x1000, 0, "/no/first", 1001);
	exec_record(PID, 2000);
	mmap_record(PID, 0x400000, 0x1000, 0, "/no/second", 2001);
	pipeline.resolver.now_ns = 3000;
	pipeline.resolver.processes.horizon_ns = 900;
	for (foreign[3] = 5; foreign[3] < 100000; foreign[3] += 99000)
		memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, foreign, 4);
	foreign[3] = 1500;
	memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, foreign, 4);
	drain();
	assert_int_equal(stored("{root}/no/second/{dep}/{root}/no/second", 0x10), 2);
	assert_int_equal(stored("{root}/no/first/{dep}/{root}/no/first", 0x10), 1);
}

static void throttled_time_is_counted(void **state OP_UNUSED)
{
	uint64_t begin[] = { 1000, EVENT_ID, EVENT_ID }, end[] = { 1700, EVENT_ID, EVENT_ID };

	memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_THROTTLE, 0, begin, 3);
	memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_UNTHROTTLE, 0, end, 3);
	memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_UNTHROTTLE, 0, end, 3);
	drain();
	assert_int_equal(event->nr_throttles, 1);
	assert_int_equal(event->throttled_ns, 700);
	assert_int_equal(event->received, 0);
}

static void few_open_files_serve_many(void **state OP_UNUSED)
{
	char name[32];

	pipeline.count.max_open = 3;
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 10; i++) {
			snprintf(name, sizeof(name), "/no/app%u", i);
			if (!round) {
				exec_record(PID + i, 10);
				mmap_record(PID + i, 0x400000, 0x1000, 0, name, 11);
			}
			sample(PERF_RECORD_MISC_USER, 0x400010, PID + i, 20);
			drain();
			assert_true(pipeline.count.open.nr <= 3);
		}
	}
	for (uint32_t i = 0; i < 10; i++) {
		char path[64];

		snprintf(path, sizeof(path), "{root}/no/app%u/{dep}/{root}/no/app%u", i, i);
		assert_int_equal(stored(path, 0x10), 3);
	}
	assert_int_equal(event->stored, 30);
}

static void a_path_too_long_is_shortened(void **state OP_UNUSED)
{
	char name[240] = "/no", record[64];
	struct opd_mapped mapped = { .pid = PID, .start = 0x400000, .end = 0x401000, .device = 1, .inode = 5 };
	struct opd_mapping mapping = { .start = 0x400000, .end = 0x401000, .from_ns = 11 };
	struct op_text path = { 0 };
	struct opd_process *process;
	bool is_file;

	memset(name + 3, 'x', sizeof(name) - 4);
	name[3] = '/';
	for (int i = 0; i < 10; i++)
		op_text_add(&path, name);
	op_text_add(&path, "/app");
	mapped.name = op_text_get(&path);
	mapped.mount_views = &pipeline.resolver.processes.mount_views;
	exec_record(PID, 10);
	drain();
	process = opd_process_find(&pipeline.resolver.processes, PID);
	assert_non_null(process);
	mapping.cookie = opd_image_of_mapping(pipeline.resolver.table, &mapped, &is_file);
	assert_true(is_file);
	process->mm->app_cookie = mapping.cookie;
	assert_int_equal(opd_process_map(&pipeline.resolver.processes, PID, process->mm, &mapping), 0);
	sample(PERF_RECORD_MISC_USER, 0x400010, PID, 20);
	drain();
	snprintf(record, sizeof(record), "/(long path %016llx)/app",
		 (unsigned long long)op_hash_bytes(0, mapped.name, path.length));
	op_text_free(&path);
	op_text_printf(&path, "{root}%s/{dep}/{root}%s", record, record);
	assert_int_equal(event->stored, 1);
	assert_int_equal(stored(op_text_get(&path), 0x10), 1);
	op_text_free(&path);
}

static void a_damaged_file_makes_room(void **state OP_UNUSED)
{
	char path[256];
	FILE *file;

	exec_record(PID, 10);
	mmap_record(PID, 0x400000, 0x1000, 0, "/no/app", 11);
	sample(PERF_RECORD_MISC_USER, 0x400010, PID, 20);
	drain();
	opd_count_release_files(&pipeline.count);
	snprintf(path, sizeof(path), "%s/samples/current/{root}/no/app/{dep}/{root}/no/app/TIMER.1000000.0.all.all.all", dir);
	file = fopen(path, "w");
	fputs("zeros after a power cut", file);
	fclose(file);
	sample(PERF_RECORD_MISC_USER, 0x400010, PID, 21);
	drain();
	assert_int_equal(event->stored, 2);
	assert_int_equal(stored("{root}/no/app/{dep}/{root}/no/app", 0x10), 1);
	assert_int_equal(pipeline.count.nr_damaged, 1);
}

static void changed_files_are_named_once(void **state OP_UNUSED)
{
	char **paths;
	size_t nr;

	exec_record(PID, 10);
	mmap_record(PID, 0x400000, 0x1000, 0, "/no/app", 11);
	sample(PERF_RECORD_MISC_USER, 0x400010, PID, 20);
	drain();
	assert_int_equal(opd_count_take_changed(&pipeline.count, &paths, &nr), 0);
	assert_int_equal(nr, 1);
	assert_string_equal(paths[0], "samples/current/{root}/no/app/{dep}/{root}/no/app/TIMER.1000000.0.all.all.all");
	free(paths[0]);
	free(paths);
	assert_int_equal(opd_count_take_changed(&pipeline.count, &paths, &nr), 0);
	assert_int_equal(nr, 0);
	free(paths);
	opd_count_mark_changed(&pipeline.count);
	assert_int_equal(opd_count_take_changed(&pipeline.count, &paths, &nr), 0);
	assert_int_equal(nr, 1);
	free(paths[0]);
	free(paths);
}

static int setup_for_few_images(void **state)
{
	int result = pipeline_setup(state);

	op_dcookie_limit(pipeline.resolver.table, SIZE_MAX, 4, pipeline.resolver.pseudo[OPD_PSEUDO_TOO_MANY_IMAGES]);
	return result;
}

static void run_app(uint32_t number)
{
	char name[32];

	snprintf(name, sizeof(name), "/no/app%u", number);
	exec_record(PID + number, 10 + number);
	mmap_record(PID + number, 0x400000, 0x1000, 0, name, 10 + number);
	mmap_record(PID + number, 0x500000, 0x1000, 0, "/no/lib", 10 + number);
}

static void images_beyond_the_limit_are_seen(void **state OP_UNUSED)
{
	for (uint32_t i = 0; i < 10; i++) {
		run_app(i);
		sample(PERF_RECORD_MISC_USER, 0x500020, PID + i, 100);
		sample(PERF_RECORD_MISC_USER, 0x400010 + i, PID + i, 100);
		drain();
	}
	assert_int_equal(op_dcookie_nr_counted(pipeline.resolver.table), 4 + 1);
	assert_int_equal(stored("{root}/no/app2/{dep}/{root}/no/app2", 0x12), 1);
	assert_int_equal(stored("{root}/no/app2/{dep}/{root}/no/lib", 0x20), 1);
	assert_int_equal(stored("{kern}/too-many-images/{dep}/{root}/no/lib", 0x20), 7);
	assert_int_equal(stored("{kern}/too-many-images/{dep}/{kern}/too-many-images", 0), 7);
	assert_int_equal(pipeline.count.nr_too_many, 14);
	assert_int_equal(event->stored, 20);
	assert_int_equal(event->unattributed, 7);
	pipeline.resolver.kernel.text_start = 0xffffffff81000000;
	pipeline.resolver.kernel.text_end = 0xffffffff82000000;
	sample(PERF_RECORD_MISC_KERNEL, 0xffffffff81000040, PID + 9, 200);
	drain();
	assert_int_equal(stored("{kern}/too-many-images/{dep}/{root}/proc/kallsyms", 0x40), 1);
}

static uint64_t everybody_is_gone(uint32_t pid OP_UNUSED)
{
	return 1;
}

/* Maps new files until some are forgotten. */
static void map_many(void)
{
	struct opd_forgetting *forgetting = &pipeline.resolver.forgetting;
	uint64_t nr_before = forgetting->nr_forgotten;
	char name[32];

	for (uint32_t i = 0; forgetting->nr_forgotten == nr_before; i++) {
		assert_true(i < 100000);
		snprintf(name, sizeof(name), "/no/many%u", i);
		mmap_record(PID + 500, 0x400000, 0x1000, 0, name, 1000 + i);
		pipeline.resolver.processes.horizon_ns = 1000 + i;
		if (i % 16 != 15)
			continue;
		drain();
		/* as if the scan took time */
		opd_process_find(&pipeline.resolver.processes, PID + 500)->nr_mapped = 0;
	}
}

static void forgotten_images_do_not_change_names(void **state OP_UNUSED)
{
	static const char hot[] = "{root}/no/hot/{dep}/{root}/no/hot";
	size_t nr_rows;

	/* Another image at the same path, without samples, comes first and goes away. */
	exec_record(PID, 10);
	mmap_record(PID, 0x400000, 0x1000, 0, "/no/hot", 11);
	drain();
	exec_record(PID, 20);
	pipeline.resolver.processes.horizon_ns = 30;
	opd_processes_prune(&pipeline.resolver.processes, 30, everybody_is_gone);
	map_many();
	nr_rows = op_dcookie_count(pipeline.resolver.table);
	for (int round = 0; round < 3; round++) {
		exec_record(PID, 2000000 + 10 * round);
		mmap_record(PID, 0x400000, 0x1000, 0, "/no/hot", 2000001 + 10 * round);
		drain();
		sample(PERF_RECORD_MISC_USER, 0x400010, PID, 2000002 + 10 * round);
		drain();
		assert_int_equal(stored(hot, 0x10), round + 1);
		map_many();
		opd_count_close_files(&pipeline.count);
	}
	assert_true(nr_rows < 5000);
	assert_true(op_dcookie_count(pipeline.resolver.table) < 5000);
	assert_int_equal(event->stored, 3);
}

static void what_is_mapped_is_not_forgotten(void **state OP_UNUSED)
{
	run_app(1);
	drain();
	map_many();
	sample(PERF_RECORD_MISC_USER, 0x400010, PID + 1, 5000000);
	sample(PERF_RECORD_MISC_USER, 0x500020, PID + 1, 5000000);
	drain();
	assert_int_equal(stored("{root}/no/app1/{dep}/{root}/no/app1", 0x10), 1);
	assert_int_equal(stored("{root}/no/app1/{dep}/{root}/no/lib", 0x20), 1);
}

static void files_that_are_forgotten_are_found_again(void **state OP_UNUSED)
{
	char **paths;
	size_t nr;

	pipeline.count.max_open = 3;
	pipeline.count.max_closed = 5;
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 50; i++) {
			if (!round)
				run_app(i);
			sample(PERF_RECORD_MISC_USER, 0x400010, PID + i, 100);
			drain();
			assert_true(pipeline.count.files.nr_entries <= 3 + 5 + 1);
			assert_true(pipeline.count.files.nr_entries == pipeline.count.open.nr + pipeline.count.closed.nr);
		}
	}
	assert_true(pipeline.count.nr_forgotten > 100);
	assert_true(pipeline.count.forgot_changed);
	assert_int_equal(stored("{root}/no/app7/{dep}/{root}/no/app7", 0x10), 3);
	assert_int_equal(opd_count_take_changed(&pipeline.count, &paths, &nr), 0);
	assert_true(nr <= 9);
	for (size_t i = 0; i < nr; i++)
		free(paths[i]);
	free(paths);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, pipeline_setup, pipeline_teardown)
	const struct CMUnitTest tests[] = {
		T(user_samples_go_to_app_and_library),
		T(what_repeats_is_given),
		T(samples_go_by_their_own_time),
		T(who_has_no_number_here_is_not_followed),
		T(a_late_commit_resolves_right_and_is_counted),
		T(what_has_no_place_is_stored_in_sight),
		T(anonymous_and_kernel_code),
		T(regions_without_samples_cost_no_row),
		T(all_processes_have_one_vdso),
		T(without_separation_images_stand_alone),
		T(losses_have_names),
		T(samples_with_anothers_identifier),
		T(a_time_of_another_clock_is_now),
		T(throttled_time_is_counted),
		T(few_open_files_serve_many),
		T(few_open_files_serve_many_at_once),
		T(what_was_found_is_not_found_for_too_long),
		T(what_was_found_ends_with_the_process),
		T(what_was_found_is_one_process_only),
		T(what_is_repeated_is_counted_in_its_place),
		T(changed_files_are_named_once),
		T(a_path_too_long_is_shortened),
		T(a_damaged_file_makes_room),
		T(forgotten_images_do_not_change_names),
		T(files_that_are_forgotten_are_found_again),
		T(what_is_mapped_is_not_forgotten),
		cmocka_unit_test_setup_teardown(images_beyond_the_limit_are_seen, setup_for_few_images, pipeline_teardown),
	};

	return cmocka_run_group_tests_name("drain", tests, NULL, NULL);
}
