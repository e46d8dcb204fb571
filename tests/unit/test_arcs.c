/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Call chains from a ring in memory to callgraph files: which calls are counted, in which files,
 * with which headers, and where a chain ends.
 */
#include "tests/unit/cmocka_all.h"

#include <stdio.h>

#include "libop/odb/read.h"
#include "pipeline/count/image_filter.h"
#include "pipeline/count/jit_objects.h"
#include "pipeline/jit/space.h"
#include "pipeline/resolve/sideband.h"
#include "tests/unit/pipeline_cpu.h"
#include "tests/unit/sideband_records.h"

/* Each look at a clock lets so much time pass. */
static uint64_t clock_step_ns, passed_ns;

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	int err = __real_clock_gettime(clock, time);

	passed_ns += clock_step_ns;
	time->tv_sec += (time_t)(passed_ns / OP_NS_PER_S);
	return err;
}

#define PID      4000000u /* above any pid_max, so /proc does not have it */
#define EVENT_ID 17
#define APP      0x400000u
#define LIB      0x7f0000000000u
#define REGION   0x600000u
#define KERNEL   0xffffffff81000000u
#define USER     ((uint64_t)PERF_CONTEXT_USER)
#define CORE     ((uint64_t)PERF_CONTEXT_KERNEL)

#define APP_FILE    "{root}/no/app/{dep}/{root}/no/app"
#define LIB_FILE    "{root}/no/app/{dep}/{root}/no/lib.so"
#define REGION_PART "{anon:anon}/4000000.0x600000.0x601000"
#define KERNEL_PART "{root}/proc/kallsyms"

static struct opd_pipeline pipeline;
static struct opd_cpu cpu;
static struct opd_event event;
static struct op_event kind;
static char dir[BOX_PATH_BYTES];

static int callgraph_setup(void **state OP_UNUSED)
{
	kind = (struct op_event){ .name = "TIMER", .count = 1000000, .type = PERF_TYPE_SOFTWARE };
	event = (struct opd_event){ .id = EVENT_ID };
	if (pipeline_cpu_begin(&pipeline, &cpu, &event, &kind, dir))
		return -1;
	pipeline.capture.callgraph = 8;
	pipeline_kernel_text(&pipeline, KERNEL);
	sideband_exec(&cpu.sideband, PID, 10);
	sideband_mmap(&cpu.sideband, PID, APP, 0x2000, 0x1000, "/no/app", 11);
	sideband_mmap(&cpu.sideband, PID, LIB, 0x2000, 0x3000, "/no/lib.so", 11);
	sideband_mmap(&cpu.sideband, PID, REGION, 0x1000, 0, "//anon", 11);
	return 0;
}

static int callgraph_teardown(void **state OP_UNUSED)
{
	return pipeline_cpu_end(&pipeline, &cpu, dir);
}

static void drain(void)
{
	struct opd_sideband_loss loss;

	assert_int_equal(opd_sideband_drain(&pipeline.capture, &pipeline.resolver, UINT64_MAX, &loss), 0);
	opd_drain_ring(&pipeline, &cpu, &cpu.pair.rings[0]);
}

static void sample_with(uint16_t mode, uint64_t ip, uint64_t nr_chain, const uint64_t *chain, size_t nr_words)
{
	uint64_t words[40] = { EVENT_ID, ip, PAIR(PID, PID), 20, nr_chain };

	memcpy(words + 5, chain, nr_words * sizeof(*chain));
	assert_true(memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_SAMPLE, mode, words, 5 + nr_words));
}

#define SAMPLE(mode, ip, ...)                                                                                                      \
	do {                                                                                                                       \
		const uint64_t chain_[] = { __VA_ARGS__ };                                                                         \
		sample_with(PERF_RECORD_MISC_##mode, ip, op_array_size(chain_), chain_, op_array_size(chain_));                    \
	} while (0)

static int read_file(const char *image, struct op_odb_samples *ret_samples)
{
	char path[512];

	snprintf(path, sizeof(path), "samples/current/%s/TIMER.1000000.0.all.all.all", image);
	return op_odb_read(pipeline.count.session_fd, path, ret_samples, NULL);
}

/* How often the key is in the file; UINT64_MAX: there is no file, or it has other keys, too. */
static uint64_t only(const char *image, uint64_t key)
{
	struct op_odb_samples samples;
	uint64_t count = UINT64_MAX;

	if (read_file(image, &samples) < 0)
		return UINT64_MAX;
	if (samples.nr_nodes == 1 && samples.nodes[0].key == key)
		count = samples.nodes[0].value;
	op_odb_samples_free(&samples);
	return count;
}

static uint64_t sum(const char *image)
{
	struct op_odb_samples samples;
	uint64_t total = 0;

	if (read_file(image, &samples) < 0)
		return 0;
	for (uint32_t i = 0; i < samples.nr_nodes; i++)
		total += samples.nodes[i].value;
	op_odb_samples_free(&samples);
	return total;
}

static void expect_stats(enum op_arc_stat stat, uint64_t value, uint64_t nr_stored)
{
	for (size_t i = 0; i < OP_NR_ARC_STATS; i++)
		assert_int_equal(pipeline.count.arcs[i], i == stat ? value : i == OP_ARC_stored ? nr_stored : 0);
	/* All samples are counted, whatever their chains are. */
	assert_int_equal(event.received, event.stored);
}

/* The example of the description of the format: from the sample in the library outwards. */
static void each_frame_calls_the_one_inside_it(void **state OP_UNUSED)
{
	for (int i = 0; i < 3; i++)
		SAMPLE(USER, LIB + 0x114, USER, LIB + 0x114, LIB + 0x118, APP + 0x16d, APP + 0x182);
	drain();
	assert_int_equal(event.stored, 3);
	expect_stats(OP_ARC_stored, 9, 9);
	assert_int_equal(only(LIB_FILE, 0x3114), 3);
	assert_int_equal(only(LIB_FILE "/{cg}/{root}/no/lib.so", 0x311800003114), 3);
	assert_int_equal(only(APP_FILE "/{cg}/{root}/no/lib.so", 0x116d00003118), 3);
	assert_int_equal(only(APP_FILE "/{cg}/{root}/no/app", 0x11820000116d), 3);
	assert_int_equal(sum(APP_FILE), 0);
}

static void nothing_of_it_without_call_graphs(void **state OP_UNUSED)
{
	pipeline.capture.callgraph = 0;
	SAMPLE(USER, LIB + 0x114, USER, LIB + 0x114, APP + 0x16d);
	SAMPLE(USER, LIB + 0x114, USER, LIB + 0x114, APP + 0x16d);
	drain();
	expect_stats(OP_ARC_stored, 0, 0);
	assert_int_equal(pipeline.count.files.nr_entries, 1);
	assert_int_equal(only(LIB_FILE, 0x3114), 2);
}

static void headers_tell_both_sides(void **state OP_UNUSED)
{
	static const struct {
		const char *file;
		uint32_t is_kernel, cg_to_is_kernel;
		uint64_t anon_start, cg_to_anon_start;
	} rows[] = {
		{ "{root}/no/app/{dep}/" KERNEL_PART "/{cg}/" KERNEL_PART, 1, 1, 0, 0 },
		{ LIB_FILE "/{cg}/" KERNEL_PART, 0, 1, 0, 0 },
		{ "{root}/no/app/{dep}/" REGION_PART "/{cg}/{root}/no/lib.so", 0, 0, REGION, 0 },
		{ APP_FILE "/{cg}/" REGION_PART, 0, 0, 0, REGION },
		{ "{root}/no/app/{dep}/" KERNEL_PART, 1, 0, 0, 0 },
	};

	SAMPLE(KERNEL, KERNEL + 0x40, CORE, KERNEL + 0x40, KERNEL + 0x80, USER, LIB + 0x10, REGION + 0x20, APP + 0x30);
	drain();
	expect_stats(OP_ARC_stored, 4, 4);
	for (size_t i = 0; i < op_array_size(rows); i++) {
		struct op_odb_samples samples;

		assert_int_equal(read_file(rows[i].file, &samples), 0);
		assert_int_equal(samples.header.is_kernel, rows[i].is_kernel);
		assert_int_equal(samples.header.cg_to_is_kernel, rows[i].cg_to_is_kernel);
		assert_int_equal(samples.header.anon_start, rows[i].anon_start);
		assert_int_equal(samples.header.cg_to_anon_start, rows[i].cg_to_anon_start);
		op_odb_samples_free(&samples);
	}
	assert_int_equal(only(rows[0].file, 0x8000000040), 1);
	assert_int_equal(only(rows[1].file, 0x301000000080), 1);
	assert_int_equal(only(rows[2].file, 0x2000003010), 1);
	assert_int_equal(only(rows[3].file, 0x103000000020), 1);
}

static void application_is_that_of_a_sample_in_the_caller(void **state OP_UNUSED)
{
	pipeline.count.separate_lib = pipeline.count.separate_kernel = false;
	SAMPLE(KERNEL, KERNEL + 0x40, CORE, KERNEL + 0x40, KERNEL + 0x80, USER, LIB + 0x10, APP + 0x30);
	drain();
	assert_int_equal(only(KERNEL_PART "/{dep}/" KERNEL_PART "/{cg}/" KERNEL_PART, 0x8000000040), 1);
	assert_int_equal(only("{root}/no/lib.so/{dep}/{root}/no/lib.so/{cg}/" KERNEL_PART, 0x301000000080), 1);
	assert_int_equal(only(APP_FILE "/{cg}/{root}/no/lib.so", 0x103000003010), 1);
}

static void threads_have_calls_of_their_own(void **state OP_UNUSED)
{
	struct op_odb_samples samples;

	pipeline.count.separate_thread = true;
	SAMPLE(USER, LIB + 0x10, USER, LIB + 0x10, APP + 0x30);
	drain();
	assert_int_equal(op_odb_read(pipeline.count.session_fd,
				     "samples/current/" APP_FILE "/{cg}/{root}/no/lib.so/TIMER.1000000.0.4000000.4000000.all",
				     &samples, NULL),
			 0);
	assert_int_equal(samples.nr_nodes, 1);
	op_odb_samples_free(&samples);
}

static void a_chain_ends_where_nothing_is_mapped(void **state OP_UNUSED)
{
	SAMPLE(USER, APP + 0x10, USER, APP + 0x10, APP + 0x20, 0x10, APP + 0x30);
	drain();
	expect_stats(OP_ARC_ended_no_mapping, 1, 1);
	assert_int_equal(only(APP_FILE "/{cg}/{root}/no/app", 0x102000001010), 1);
}

static void a_chain_ends_at_what_cannot_be_followed(void **state OP_UNUSED)
{
	SAMPLE(USER, APP + 0x10, USER, APP + 0x10, PERF_CONTEXT_GUEST_USER, APP + 0x20);
	SAMPLE(USER, APP + 0x10, USER, APP + 0x10, (uint64_t)-4000, APP + 0x20);
	drain();
	expect_stats(OP_ARC_ended_other, 2, 0);
}

static void samples_that_belong_nowhere_call_nothing(void **state OP_UNUSED)
{
	SAMPLE(USER, 0x10, USER, 0x10, APP + 0x20);
	drain();
	expect_stats(OP_ARC_of_nowhere, 1, 0);
}

static void a_chain_of_another_mode_is_not_the_samples(void **state OP_UNUSED)
{
	SAMPLE(USER, APP + 0x10, CORE, KERNEL + 0x40, USER, APP + 0x20);
	drain();
	expect_stats(OP_ARC_of_another, 1, 0);
}

static void the_sample_is_its_own_innermost_frame(void **state OP_UNUSED)
{
	SAMPLE(USER, APP + 0x10, USER, APP + 0x18, APP + 0x20);
	drain();
	assert_int_equal(only(APP_FILE "/{cg}/{root}/no/app", 0x102000001010), 1);
}

static void chains_that_lie_lose_no_sample(void **state OP_UNUSED)
{
	static const uint64_t chain[] = { USER, APP + 0x10, APP + 0x20 };

	sample_with(PERF_RECORD_MISC_USER, APP + 0x10, 4, chain, 3);
	sample_with(PERF_RECORD_MISC_USER, APP + 0x10, UINT64_MAX, chain, 3);
	drain();
	expect_stats(OP_ARC_undecodable, 2, 0);
	SAMPLE(USER, APP + 0x10, USER);
	sample_with(PERF_RECORD_MISC_USER, APP + 0x10, 0, chain, 0);
	drain();
	expect_stats(OP_ARC_undecodable, 2, 0);
	assert_int_equal(only(APP_FILE, 0x1010), 4);
}

static void deeper_than_the_deepest_is_cut(void **state OP_UNUSED)
{
	uint64_t words[5 + 1 + 1 + 2 * OP_CHAIN_DEPTH_MAX] = {
		EVENT_ID, APP + 1, PAIR(PID, PID), 20, 2 + 2 * OP_CHAIN_DEPTH_MAX, USER
	};
	struct perf_event_header header = { PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, sizeof(header) + sizeof(words) };

	for (size_t i = 6; i < op_array_size(words); i++)
		words[i] = APP + 1;
	assert_true(memory_ring_write(&cpu.pair.rings[0], &header, sizeof(header)));
	assert_true(memory_ring_write(&cpu.pair.rings[0], words, sizeof(words)));
	drain();
	expect_stats(OP_ARC_stored, OP_CHAIN_DEPTH_MAX, OP_CHAIN_DEPTH_MAX);
	assert_int_equal(only(APP_FILE "/{cg}/{root}/no/app", 0x100100001001), OP_CHAIN_DEPTH_MAX);
}

/* ---- no room ---- */

static void call_from(uint32_t number)
{
	uint64_t start = 0x10000000 + 0x10000 * (uint64_t)number;
	char name[32];

	snprintf(name, sizeof(name), "/no/lib%u", number);
	sideband_mmap(&cpu.sideband, PID, start, 0x1000, 0, name, 12);
	SAMPLE(USER, APP + 0x10, USER, APP + 0x10, start + 1);
	drain();
}

static void calls_leave_files_for_samples(void **state OP_UNUSED)
{
	pipeline.count.limit.max = 16;
	for (uint32_t i = 0; i < 20; i++)
		call_from(i);
	/* One sample file and nine callgraph files: ten files are five eighths of the limit. */
	assert_int_equal(pipeline.count.limit.nr, 10);
	expect_stats(OP_ARC_lost_no_room, 11, 9);
	assert_int_equal(only(APP_FILE, 0x1010), 20);
	/* Keys that have a file are still counted. */
	call_from(3);
	expect_stats(OP_ARC_lost_no_room, 11, 10);
	SAMPLE(USER, LIB + 1, USER, LIB + 1, APP + 0x20);
	drain();
	assert_int_equal(only(LIB_FILE, 0x3001), 1);
	expect_stats(OP_ARC_lost_no_room, 12, 10);
}

static void calls_leave_bytes_for_samples(void **state OP_UNUSED)
{
	SAMPLE(USER, APP + 0x10, USER, APP + 0x10, APP + 0x20);
	drain();
	pipeline.count.limit.space.max_bytes = pipeline.count.limit.space.taken_bytes / 5 * 8;
	SAMPLE(USER, APP + 0x10, USER, APP + 0x10, APP + 0x20);
	SAMPLE(USER, APP + 0x11, USER, APP + 0x11, APP + 0x20);
	drain();
	expect_stats(OP_ARC_lost_no_room, 1, 2);
	assert_int_equal(sum(APP_FILE), 3);
}

static void calls_of_images_beyond_the_limit_are_not_kept(void **state OP_UNUSED)
{
	op_dcookie_limit(pipeline.resolver.table, SIZE_MAX, 2, pipeline.resolver.pseudo[OPD_PSEUDO_TOO_MANY_IMAGES]);
	call_from(0);
	call_from(1);
	SAMPLE(USER, LIB + 1, USER, LIB + 1, APP + 0x10);
	drain();
	expect_stats(OP_ARC_lost_no_room, 2, 1);
	assert_int_equal(only("{root}/no/app/{dep}/{root}/no/lib0/{cg}/{root}/no/app", 0x100001010), 1);
	assert_int_equal(event.stored, 3);
}

static void visit(uint64_t image_cookie OP_UNUSED, const char *path, void *arg)
{
	op_text_printf(arg, "%s\n", path);
}

/* JIT code has its object beside the sample files of both ends of a call. */
static void anonymous_ends_are_visited(void **state OP_UNUSED)
{
	struct op_text seen = { 0 };

	SAMPLE(USER, LIB + 0x10, USER, LIB + 0x10, REGION + 0x20, APP + 0x30);
	drain();
	opd_count_visit_files(&pipeline.count, visit, &seen);
	assert_non_null(
		strstr(op_text_get(&seen), "samples/current/{root}/no/app/{dep}/" REGION_PART "/TIMER.1000000.0.all.all.all\n"));
	assert_non_null(strstr(op_text_get(&seen), "samples/current/" LIB_FILE "/TIMER.1000000.0.all.all.all\n"));
	assert_null(strstr(op_text_get(&seen), "{cg}"));
	op_text_free(&seen);
}

/* ---- what is gone, and what is made of nothing ---- */

static void calls_that_are_gone_are_not_stored(void **state OP_UNUSED)
{
	static const char path[] = "samples/current/" APP_FILE "/{cg}/{root}/no/app/TIMER.1000000.0.all.all.all";

	for (int i = 0; i < 2; i++)
		SAMPLE(USER, APP + 0x10, USER, APP + 0x10, APP + 0x20);
	drain();
	opd_count_release_files(&pipeline.count);
	assert_int_equal(unlinkat(pipeline.count.session_fd, path, 0), 0);
	SAMPLE(USER, APP + 0x10, USER, APP + 0x10, APP + 0x20);
	drain();
	expect_stats(OP_ARC_lost_io_error, 2, 1);
}

/* Chains to addresses without code do not use up MaxImages=. */
static void calls_without_room_take_no_images(void **state OP_UNUSED)
{
	op_dcookie_limit(pipeline.resolver.table, SIZE_MAX, 6, pipeline.resolver.pseudo[OPD_PSEUDO_TOO_MANY_IMAGES]);
	pipeline.count.limit.max = 8;
	for (uint32_t i = 0; i < 20; i++) {
		pipeline.count.limit.strangers = i > 10;
		call_from(i);
	}
	expect_stats(OP_ARC_lost_no_room, 16, 4);
	SAMPLE(USER, LIB + 1, USER);
	drain();
	assert_int_equal(only(LIB_FILE, 0x3001), 1);
	assert_int_equal(pipeline.count.nr_too_many, 0);
}

static void forget_verdict(struct op_dcookie_row *row, void *arg OP_UNUSED)
{
	row->wanted = OP_DCOOKIE_NOT_ASKED;
}

/* For each chain: the calls that are stored, and the calls that are not. */
static void filter_calls(const char *list, bool separated, uint64_t nr_stored, uint64_t nr_filtered)
{
	struct opd_image_filter *filter = opd_image_filter_new(list);
	uint64_t stored_before = pipeline.count.arcs[OP_ARC_stored], filtered_before = pipeline.count.arcs[OP_ARC_filtered];

	assert_non_null(filter);
	pipeline.count.filter = filter;
	pipeline.count.separate_lib = pipeline.count.separate_kernel = separated;
	opd_count_close_files(&pipeline.count);
	op_dcookie_visit(pipeline.resolver.table, forget_verdict, NULL);
	SAMPLE(USER, LIB + 0x10, USER, LIB + 0x10, LIB + 0x18, REGION + 0x20, APP + 0x30, APP + 0x38);
	drain();
	assert_int_equal(pipeline.count.arcs[OP_ARC_stored] - stored_before, nr_stored);
	assert_int_equal(pipeline.count.arcs[OP_ARC_filtered] - filtered_before, nr_filtered);
	pipeline.count.filter = NULL;
	opd_image_filter_free(filter);
}

/* The calls are lib to lib, region to lib, app to region, app to app. */
static void calls_want_both_ends(void **state OP_UNUSED)
{
	filter_calls("/no/app", true, 4, 0);
	filter_calls("/no/app", false, 2, 2);
	filter_calls("/no/lib.so", true, 1, 3);
	filter_calls("/no/lib.so", false, 1, 3);
	filter_calls("/no/lib.so,/no/app", false, 4, 0);
	filter_calls("/no/such", true, 0, 4);
	assert_int_equal(event.received, event.stored + event.filtered);
	assert_int_equal(event.filtered, 2);
	assert_int_equal(only(APP_FILE "/{cg}/{root}/no/app", 0x103800001030), 3);
}

static struct op_location image_at(const char *path, uint64_t offset)
{
	struct op_image_id id = { .name = { .kind = OP_IMAGE_FILE, .name = path } };

	return (struct op_location){ op_dcookie_get(pipeline.resolver.table, &id), offset };
}

static void call_jit_from(const char *path, const struct opd_jit_space *space)
{
	const struct opd_resolved callee = { .location = { space->cookie, OPD_JIT_RANGE_START }, .is_region = true };
	struct opd_resolved caller = { .location = image_at(path, 0x10) };
	struct opd_counted counted = { .resolved = &caller, .account = &event, .amount = 1 };

	opd_count_call(&pipeline.count, &counted, &callee);
}

static void add_function(struct opd_jit_map *map, uint64_t start)
{
	const struct opd_jit_code code = { .start = start, .bytes = 16, .name = "f", .from_ns = 1 };
	uint64_t offset;

	assert_int_equal(opd_jit_map_add(map, &code, 0), 0);
	assert_true(opd_jit_map_find(map, start, 2, &offset));
}

/*
 * A process whose JIT code is known only from the libraries that call it. No library has a
 * directory for it.
 */
static struct opd_jit_space *add_space(struct opd_jit *jit, const char *label)
{
	struct op_image_id id = { .name = { OP_IMAGE_ANON, label, PID, OPD_JIT_RANGE_START, UINT32_MAX } };
	struct opd_jit_space *space = calloc(1, sizeof(*space));

	assert_non_null(space);
	*space = (struct opd_jit_space){ .jit = jit, .refs = 1, .owner = { .pid = PID, .proc_fd = -1 } };
	space->next = jit->spaces;
	space->link = &jit->spaces;
	if (space->next)
		space->next->link = &space->next;
	space->map.counters = jit->counters;
	space->dump.file.fd = -1;
	space->map_file.fd = -1;
	snprintf(space->label, sizeof(space->label), "%s", label);
	space->cookie = op_dcookie_get(pipeline.resolver.table, &id);
	jit->spaces = space;
	jit->nr_spaces++;
	add_function(&space->map, 0x1000);
	pipeline.count.separate_lib = pipeline.count.separate_kernel = false;
	call_jit_from("/no/a.so", space);
	call_jit_from("/no/b.so", space);
	opd_count_flush(&pipeline.count);
	return space;
}

static struct opd_jit_space *begin_jit(struct opd_jit *jit)
{
	opd_jit_init(jit, pipeline.resolver.table);
	return add_space(jit, OP_JIT_LABEL "1");
}

#define OBJECT(library) "samples/current/{root}/no/" library "/{dep}/{anon:jit-1}/4000000.jo"

static void expect_objects(struct opd_jit *jit, uint64_t nr_written, uint64_t nr_failed)
{
	assert_true(opd_jit_write(jit, &pipeline.count, UINT64_MAX));
	assert_int_equal(jit->counters[OP_JIT_objects], nr_written);
	assert_int_equal(jit->counters[OP_JIT_failed_objects], nr_failed);
}

static void an_object_that_fails_is_tried_alone(void **state OP_UNUSED)
{
	struct opd_jit jit;
	struct opd_jit_space *space = begin_jit(&jit);
	int fd = pipeline.count.session_fd;

	expect_objects(&jit, 2, 0);
	expect_objects(&jit, 2, 0);
	assert_int_equal(unlinkat(fd, OBJECT("a.so"), 0), 0);
	assert_int_equal(mkdirat(fd, OBJECT("a.so"), 0755), 0); /* cannot be replaced */
	add_function(&space->map, 0x2000);
	expect_objects(&jit, 3, 1);
	expect_objects(&jit, 3, 2);
	opd_jit_space_put(space);
	expect_objects(&jit, 3, 3);
	assert_int_equal(jit.nr_spaces, 1);
	assert_int_equal(unlinkat(fd, OBJECT("a.so"), AT_REMOVEDIR), 0);
	expect_objects(&jit, 4, 3);
	assert_int_equal(jit.nr_spaces, 0);
	opd_jit_free(&jit);
}

/*
 * One process has its turn in each call while the clock runs fast. A process that has new functions
 * again and again does not keep the others from theirs.
 */
static void objects_are_written_in_turns(void **state OP_UNUSED)
{
	struct opd_jit_space *spaces[5];
	struct opd_jit jit;
	uint64_t since_ns;

	spaces[0] = begin_jit(&jit);
	for (size_t i = 1; i < op_array_size(spaces); i++)
		spaces[i] = add_space(&jit, ((const char *[]){ "jit-2", "jit-3", "jit-4", "jit-5" })[i - 1]);
	clock_step_ns = OP_NS_PER_S;
	since_ns = op_now_ns();
	for (size_t i = 1; i < op_array_size(spaces); i++) {
		assert_false(opd_jit_write(&jit, &pipeline.count, since_ns));
		assert_int_equal(jit.counters[OP_JIT_objects], 2 * i);
		for (size_t k = 0; k < op_array_size(spaces); k++)
			if (spaces[k]->nr_written)
				add_function(&spaces[k]->map, 0x2000 + 0x100 * i);
	}
	assert_true(opd_jit_write(&jit, &pipeline.count, since_ns));
	assert_int_equal(jit.counters[OP_JIT_objects], 2 * op_array_size(spaces));
	assert_true(opd_jit_write(&jit, &pipeline.count, since_ns));
	assert_int_equal(jit.counters[OP_JIT_objects], 2 * op_array_size(spaces));
	clock_step_ns = 0;
	opd_jit_free(&jit);
}

static uint64_t inode_of(const char *path)
{
	struct stat st;

	return fstatat(pipeline.count.session_fd, path, &st, 0) ? 0 : st.st_ino;
}

static void an_object_that_is_not_whole_is_not_renewed(void **state OP_UNUSED)
{
	struct opd_jit jit;
	uint64_t a, b;
	int fd;

	begin_jit(&jit);
	expect_objects(&jit, 2, 0);
	a = inode_of(OBJECT("a.so"));
	b = inode_of(OBJECT("b.so"));
	fd = openat(pipeline.count.session_fd, OBJECT("a.so"), O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	close(fd);
	assert_int_equal(opd_count_renew(&pipeline.count), 0);
	assert_int_equal(inode_of(OBJECT("a.so")), a);
	assert_int_not_equal(inode_of(OBJECT("b.so")), b);
	assert_int_equal(pipeline.count.nr_failed_objects, 1);
	opd_jit_free(&jit);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, callgraph_setup, callgraph_teardown)
	const struct CMUnitTest tests[] = {
		TEST(each_frame_calls_the_one_inside_it),
		TEST(nothing_of_it_without_call_graphs),
		TEST(headers_tell_both_sides),
		TEST(application_is_that_of_a_sample_in_the_caller),
		TEST(threads_have_calls_of_their_own),
		TEST(a_chain_ends_where_nothing_is_mapped),
		TEST(a_chain_ends_at_what_cannot_be_followed),
		TEST(samples_that_belong_nowhere_call_nothing),
		TEST(a_chain_of_another_mode_is_not_the_samples),
		TEST(the_sample_is_its_own_innermost_frame),
		TEST(chains_that_lie_lose_no_sample),
		TEST(deeper_than_the_deepest_is_cut),
		TEST(calls_leave_files_for_samples),
		TEST(calls_leave_bytes_for_samples),
		TEST(calls_of_images_beyond_the_limit_are_not_kept),
		TEST(calls_want_both_ends),
		TEST(anonymous_ends_are_visited),
		TEST(calls_that_are_gone_are_not_stored),
		TEST(calls_without_room_take_no_images),
		TEST(an_object_that_fails_is_tried_alone),
		TEST(objects_are_written_in_turns),
		TEST(an_object_that_is_not_whole_is_not_renewed),
	};
#undef TEST

	return cmocka_run_group_tests_name("arcs", tests, NULL, NULL);
}
