/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Notes about samples: more of a stack is joined to its sample alone, byte for byte; what is of
 * another thread, CPU, stack pointer or time is not; and notes that make no sense, or never find
 * their sample, cost no memory beyond the limit.
 */
#include "tests/unit/cmocka_all.h"

#include <elf.h>
#include <string.h>

#include "pipeline/drive/notes.h"

#define TID     4242u
#define SP      0x7ffd00001000u
#define TIME_NS 1000000000u
#define COPIED  8192u /* by the kernel */

static const struct op_stack_layout layout = {
	.sample_type = OP_SAMPLE_TYPE_CGROUP | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
	.registers = 1u << 7 | 1u << 8, /* sp and ip */
	.machine = EM_X86_64,
};

struct made {
	uint8_t bytes[65536];
	size_t nr;
};

static struct opd_notes *notes;
static struct made sample_record, note_record;
static struct opd_stack_sample taken;

static uint8_t byte_at(size_t offset)
{
	return (uint8_t)(offset * 31 / 7 + 1);
}

static void put(struct made *made, const void *bytes, size_t nr)
{
	assert_true(made->nr + nr <= sizeof(made->bytes));
	memcpy(made->bytes + made->nr, bytes, nr);
	made->nr += nr;
}

static void put_word(struct made *made, uint64_t word)
{
	put(made, &word, sizeof(word));
}

static void put_stack(struct made *made, size_t from, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		put(made, &(uint8_t){ byte_at(from + i) }, 1);
}

static const struct perf_event_header *finish(struct made *made)
{
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER, .size = (uint16_t)made->nr };

	memcpy(made->bytes, &header, sizeof(header));
	return (const void *)made->bytes;
}

static void begin(struct made *made)
{
	made->nr = sizeof(struct perf_event_header);
	put_word(made, 1);        /* IDENTIFIER */
	put_word(made, 0x400000); /* IP */
	put_word(made, (uint64_t)TID << 32 | TID);
	put_word(made, TIME_NS);
}

/* A sample with nr_frames in its chain. The kernel could copy nr_copied of COPIED bytes. */
static void make_sample(size_t nr_frames, size_t nr_copied)
{
	begin(&sample_record);
	put_word(&sample_record, nr_frames);
	for (size_t i = 0; i < nr_frames; i++)
		put_word(&sample_record, i);
	put_word(&sample_record, PERF_SAMPLE_REGS_ABI_64);
	put_word(&sample_record, SP);
	put_word(&sample_record, 0x400000);
	put_word(&sample_record, COPIED);
	put_stack(&sample_record, 0, COPIED);
	put_word(&sample_record, nr_copied);
	put_word(&sample_record, 77); /* CGROUP */
	taken = (struct opd_stack_sample){
		.header = finish(&sample_record),
		.sample = { .tid = TID, .pid = TID, .time_ns = TIME_NS, .cpu = 1, .mode = OP_CPUMODE_USER },
	};
}

static void take(const struct opd_stack_note *note, size_t nr_behind, uint32_t cpu, uint32_t tid, uint64_t time_ns)
{
	const struct op_sample sample = { .tid = tid, .pid = tid, .time_ns = time_ns, .cpu = cpu };
	uint32_t nr_raw = (uint32_t)(sizeof(*note) + nr_behind);

	begin(&note_record);
	put(&note_record, &nr_raw, sizeof(nr_raw));
	put(&note_record, note, sizeof(*note));
	put_stack(&note_record, note->offset, nr_behind);
	while (note_record.nr % 8)
		put(&note_record, "", 1);
	opd_notes_take(notes, finish(&note_record), &sample);
}

static void take_part(uint32_t offset, uint32_t nr, uint32_t distance)
{
	const struct opd_stack_note note = {
		.kind = OPD_NOTE_STACK, .nr_bytes = nr, .sp = SP, .offset = offset, .after = offset, .distance = distance
	};

	take(&note, nr, 1, TID, TIME_NS + 1500); /* a kernel takes the time of the sample first */
}

/* The sample has so many bytes of its stack, all of them right, and the rest is as before. */
static void expect_joined(size_t nr_bytes)
{
	const struct perf_event_header *before = taken.header;
	struct op_stack_record record;
	uint64_t cgroup;

	opd_notes_join(notes, &layout, &taken);
	assert_int_equal(taken.header == before, nr_bytes <= COPIED);
	assert_int_equal(op_stack_record(taken.header, OP_CPUMODE_USER, &layout, &record), 0);
	assert_int_equal(record.nr_stack_bytes, nr_bytes);
	for (size_t i = 0; i < nr_bytes; i++)
		assert_int_equal(record.stack[i], byte_at(i));
	assert_int_equal(record.registers[7], SP);
	assert_int_equal(op_record_sample_cgroup(taken.header, &cgroup), 0);
	assert_int_equal(cgroup, 77);
}

static int setup(void **state OP_UNUSED)
{
	make_sample(3, COPIED);
	return opd_notes_new(&notes);
}

static int teardown(void **state OP_UNUSED)
{
	opd_notes_free(notes);
	return 0;
}

static void test_parts(void **state OP_UNUSED)
{
	take_part(8192, 8192, 20000);
	take_part(16384, 4096, 20000);
	expect_joined(20480);
	assert_int_equal(taken.stack_distance, 20000);
	assert_int_equal(notes->nr_waiting, 0);
	assert_int_equal(notes->counts.nr_joined, 1);
	make_sample(3, COPIED);
	expect_joined(COPIED);
	assert_int_equal(taken.stack_distance, 0);
}

/* The size alone; and a note that does not begin where the kernel stopped. */
static void test_no_bytes(void **state OP_UNUSED)
{
	struct op_stack_record record;

	take_part(8192, 0, 700000);
	expect_joined(COPIED);
	assert_int_equal(taken.stack_distance, 700000);
	make_sample(3, 4096);
	take_part(8192, 8192, 20000);
	opd_notes_join(notes, &layout, &taken);
	assert_int_equal(op_stack_record(taken.header, OP_CPUMODE_USER, &layout, &record), 0);
	assert_int_equal(record.nr_stack_bytes, 4096);
	assert_int_equal(taken.stack_distance, 20000);
	assert_int_equal(notes->counts.nr_joined, 0);
}

/* Pages that are not present are zeros, in the copy of the kernel and behind it. */
static void test_not_present(void **state OP_UNUSED)
{
	struct opd_stack_note note = { .kind = OPD_NOTE_STACK, .nr_bytes = 2048, .sp = SP, .after = 1024, .offset = 5120 };
	struct op_stack_record record;
	uint64_t cgroup;

	make_sample(3, 1024);
	take(&note, note.nr_bytes, 1, TID, TIME_NS);
	note.after = 7168;
	note.offset = 15360;
	take(&note, note.nr_bytes, 1, TID, TIME_NS);
	note.after = 17408;
	note.offset = 17000; /* makes no sense */
	take(&note, note.nr_bytes, 1, TID, TIME_NS);
	opd_notes_join(notes, &layout, &taken);
	assert_int_equal(op_stack_record(taken.header, OP_CPUMODE_USER, &layout, &record), 0);
	assert_int_equal(record.nr_stack_bytes, 17408);
	for (size_t i = 0; i < record.nr_stack_bytes; i++)
		assert_int_equal(record.stack[i], (i < 1024 || (i >= 5120 && i < 7168) || i >= 15360) ? byte_at(i) : 0);
	assert_int_equal(op_record_sample_cgroup(taken.header, &cgroup), 0);
	assert_int_equal(cgroup, 77);
}

/* A part that was lost in the middle: nothing is behind it. */
static void test_gap(void **state OP_UNUSED)
{
	take_part(8192, 4096, 40000);
	take_part(20480, 8192, 40000);
	expect_joined(12288);
	assert_int_equal(notes->nr_waiting, 0);
}

/* The longest record: the copy is as long as fits. */
static void test_longest(void **state OP_UNUSED)
{
	struct op_stack_record record;

	make_sample(700, COPIED);
	for (uint32_t offset = 8192; offset < OPD_DEEP_STACK_MAX; offset += 4096)
		take_part(offset, 4096, 100000);
	opd_notes_join(notes, &layout, &taken);
	assert_int_equal(taken.header->size % 8, 0);
	assert_int_equal(op_stack_record(taken.header, OP_CPUMODE_USER, &layout, &record), 0);
	assert_in_range(record.nr_stack_bytes, 55000, OPD_DEEP_STACK_MAX);
	assert_int_equal(record.stack[record.nr_stack_bytes - 1], byte_at(record.nr_stack_bytes - 1));
}

static void test_of_others(void **state OP_UNUSED)
{
	struct opd_stack_note note = { .kind = OPD_NOTE_STACK, .nr_bytes = 8, .sp = SP, .offset = COPIED, .after = COPIED };

	take(&note, 8, 2, TID, TIME_NS);
	take(&note, 8, 1, TID + 1, TIME_NS);
	take(&note, 8, 1, TID, TIME_NS - OPD_NOTES_APART_NS - 1);
	note.sp += 8;
	take(&note, 8, 1, TID, TIME_NS);
	expect_joined(COPIED);
	assert_int_equal(taken.stack_distance, 0);
	assert_true(notes->nr_waiting);
	/* their samples are lost: after some time they go, but those of other CPUs */
	taken.sample.time_ns += 2 * OPD_NOTES_WAIT_NS;
	expect_joined(COPIED);
	assert_int_equal(notes->counts.nr_dropped, 3);
	assert_true(notes->nr_waiting);
}

static void test_hostile(void **state OP_UNUSED)
{
	struct opd_stack_note note = { .kind = OPD_NOTE_STACK, .nr_bytes = 64, .sp = SP, .offset = COPIED, .after = COPIED };
	uint64_t nr_dropped = 0;

	take(&note, 56, 1, TID, TIME_NS); /* says more bytes than it has */
	note.nr_bytes = UINT32_MAX;
	take(&note, 64, 1, TID, TIME_NS);
	note = (struct opd_stack_note){ .kind = 99, .sp = SP };
	take(&note, 0, 1, TID, TIME_NS);
	begin(&note_record); /* no RAW at all */
	opd_notes_take(notes, finish(&note_record), &taken.sample);
	assert_int_equal(notes->counts.nr_dropped, 4);
	assert_int_equal(notes->nr_waiting, 0);
	/* more than any stack */
	for (int i = 0; i < 30; i++)
		take_part(COPIED + 4096u * (uint32_t)i, 4096, UINT32_MAX);
	expect_joined(OPD_DEEP_STACK_MAX);
	/* notes without samples: the oldest make room */
	nr_dropped = notes->counts.nr_dropped;
	make_sample(3, COPIED);
	for (int i = 0; i < 1000; i++)
		take_part(COPIED, 8192, 20000);
	assert_true(notes->nr_waiting <= OPD_NOTES_BYTES);
	assert_in_range(notes->counts.nr_dropped - nr_dropped, 860, 880);
	expect_joined(COPIED + 8192);
	assert_int_equal(notes->nr_waiting, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_present, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_longest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_of_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
