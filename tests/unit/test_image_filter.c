/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * opcontrol --image: samples of which images are kept, and that all others are counted as filtered
 * and leave nothing behind.
 */
#include "tests/unit/cmocka_all.h"

#include "libop/session/ledger_file.h"
#include "libop/session/sum.h"
#include "pipeline/count/image_filter.h"
#include "pipeline/resolve/sideband.h"
#include "tests/unit/pipeline_cpu.h"
#include "tests/unit/sideband_records.h"

#define PID      4000000u /* above any pid_max, so /proc does not have it */
#define OTHER    (PID + 1)
#define EVENT_ID 17
#define EXE      0x400000u
#define REGION   0x600000u
#define LIB      0x7f0000000000u
#define KERNEL   0xffffffff81000000u

static struct opd_pipeline pipeline;
static struct opd_cpu cpu;
static struct opd_event event;
static const struct op_event kind = { .name = "TIMER", .count = 1000000, .type = PERF_TYPE_SOFTWARE };
static struct opd_image_filter *filter;
static char dir[BOX_PATH_BYTES];

static void begin_process(uint32_t pid, const char *name)
{
	sideband_exec(&cpu.sideband, pid, 10);
	sideband_mmap(&cpu.sideband, pid, EXE, 0x1000, 0, name, 11);
	sideband_mmap(&cpu.sideband, pid, LIB, 0x1000, 0, "/no/lib.so", 11);
	sideband_mmap(&cpu.sideband, pid, REGION, 0x1000, 0, "//anon", 11);
}

static int processes_setup(void **state OP_UNUSED)
{
	event = (struct opd_event){ .id = EVENT_ID };
	if (pipeline_cpu_begin(&pipeline, &cpu, &event, &kind, dir))
		return -1;
	pipeline_kernel_text(&pipeline, KERNEL);
	begin_process(PID, "/no/app");
	begin_process(OTHER, "/no/other");
	return 0;
}

static int processes_teardown(void **state OP_UNUSED)
{
	int rc = pipeline_cpu_end(&pipeline, &cpu, dir);

	opd_image_filter_free(filter);
	filter = NULL;
	return rc;
}

static void keep_only(const char *list)
{
	filter = opd_image_filter_new(list);
	assert_non_null(filter);
	pipeline.count.filter = filter;
}

static void sample(uint16_t mode, uint64_t ip, uint32_t pid)
{
	uint64_t words[] = { EVENT_ID, ip, PAIR(pid, pid), 20 };

	assert_true(memory_ring_record(&cpu.pair.rings[0], PERF_RECORD_SAMPLE, mode, words, 4));
}

static void drain(void)
{
	struct opd_sideband_loss loss;

	assert_int_equal(opd_sideband_drain(&pipeline.capture, &pipeline.resolver, UINT64_MAX, &loss), 0);
	opd_drain_ring(&pipeline, &cpu, &cpu.pair.rings[0]);
}

/* The sum of all files is the number of stored samples. */
static void expect(uint64_t nr_stored, uint64_t nr_filtered)
{
	struct op_session_ledger sums = { 0 };
	uint64_t nr_bad = 0, sum = 0;
	int fd = openat(pipeline.count.session_fd, "samples/current", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		assert_int_equal(op_session_ledger_add_files(&sums, fd, &nr_bad), 0);
	for (size_t i = 0; i < sums.nr_events; i++)
		sum += sums.events[i].stored;
	op_session_ledger_free(&sums);
	if (fd >= 0)
		close(fd);
	assert_int_equal(nr_bad, 0);
	assert_int_equal(sum, nr_stored);
	assert_int_equal(event.stored, nr_stored);
	assert_int_equal(event.filtered, nr_filtered);
	assert_int_equal(event.received, nr_stored + nr_filtered);
}

/*
 * One sample in each of the four places of both programs, first of one program and then of the
 * other.
 */
static void sample_all(void)
{
	static const struct {
		uint16_t mode;
		uint64_t ip;
	} places[] = { { PERF_RECORD_MISC_USER, EXE },
		       { PERF_RECORD_MISC_USER, LIB },
		       { PERF_RECORD_MISC_USER, REGION },
		       { PERF_RECORD_MISC_KERNEL, KERNEL } };

	for (size_t i = 0; i < op_array_size(places); i++) {
		sample(places[i].mode, places[i].ip, OTHER);
		sample(places[i].mode, places[i].ip, PID);
	}
	drain();
}

static bool is_in_session(const char *name)
{
	struct op_image_name image = { .kind = OP_IMAGE_FILE, .name = name };

	return op_dcookie_by_name(pipeline.resolver.table, &image) != OP_DCOOKIE_NONE;
}

static bool wants(uint64_t cookie)
{
	return opd_image_filter_wants(filter, pipeline.resolver.table, cookie, cookie);
}

static void separate(bool lib, bool kernel)
{
	pipeline.count.separate_lib = lib;
	pipeline.count.separate_kernel = kernel;
}

/* A region has only its own application. */
static void an_application_has_its_regions_alone(void **state OP_UNUSED)
{
	separate(false, false);
	keep_only("/no/app");
	sample_all();
	expect(2, 6);
	assert_true(is_in_session("/no/app"));
	assert_false(is_in_session("/no/other") || is_in_session("/no/lib.so") || is_in_session("/proc/kallsyms"));
}

static void an_application_has_its_libraries_where_separated(void **state OP_UNUSED)
{
	separate(true, false);
	keep_only("/no/app");
	sample_all();
	expect(3, 5);
	assert_true(is_in_session("/no/lib.so"));
	assert_false(is_in_session("/no/other") || is_in_session("/proc/kallsyms"));
}

static void an_application_has_its_kernel_where_separated(void **state OP_UNUSED)
{
	keep_only("/no/app");
	sample_all();
	expect(4, 4);
	assert_false(is_in_session("/no/other"));
}

static void a_library_is_wanted_by_its_own_name(void **state OP_UNUSED)
{
	keep_only("/no/lib.so");
	sample_all();
	expect(2, 6);
	assert_true(is_in_session("/no/other") && is_in_session("/no/app"));
}

static void the_kernel_is_wanted_by_its_own_name(void **state OP_UNUSED)
{
	separate(false, false);
	keep_only("/proc/kallsyms,/no/such");
	sample_all();
	expect(2, 6);
}

static void all_that_is_named_is_wanted(void **state OP_UNUSED)
{
	separate(false, false);
	keep_only(",/no/other,,/no/lib.so,");
	sample_all();
	expect(4, 4);
}

static void without_a_filter_nothing_is(void **state OP_UNUSED)
{
	sample_all();
	expect(8, 0);
}

/* Equal samples wait as one entry. More samples than fit are flushed early. */
static void repeated_samples_are_all_counted(void **state OP_UNUSED)
{
	keep_only("/no/app");
	for (uint32_t i = 0; i < 3 * OPD_WAITING_MAX; i++)
		for (uint32_t n = 0; n < 3; n++) {
			sample(PERF_RECORD_MISC_USER, EXE + i, OTHER);
			sample(PERF_RECORD_MISC_USER, EXE + (i & 1), n ? OTHER : PID);
			if (i % 16 == 0)
				drain();
		}
	drain();
	expect(3 * OPD_WAITING_MAX, 3 * OPD_WAITING_MAX * 5);
	/* A filtered key has no file that is known. */
	assert_int_equal(pipeline.count.files.nr_entries, 1);
	assert_int_equal(op_dcookie_nr_counted(pipeline.resolver.table), 1);
}

/* Beyond MaxImages= the filter cannot judge images without a name. Filtered images take no room. */
static void wanted_images_beyond_the_limit_are_kept(void **state OP_UNUSED)
{
	op_dcookie_limit(pipeline.resolver.table, SIZE_MAX, 1, pipeline.resolver.pseudo[OPD_PSEUDO_TOO_MANY_IMAGES]);
	separate(false, false);
	keep_only("/no/app,/no/lib.so");
	sample(PERF_RECORD_MISC_USER, EXE, OTHER);
	sample(PERF_RECORD_MISC_USER, EXE, PID);
	sample(PERF_RECORD_MISC_USER, LIB, PID);
	drain();
	expect(2, 1);
	assert_int_equal(pipeline.count.nr_too_many, 1);
	assert_true(wants(op_dcookie_overflow(pipeline.resolver.table)));
}

/* ---- names ---- */

static uint64_t image(enum op_image_kind image_kind, const char *name)
{
	struct op_image_id id = { .name = { .kind = image_kind, .name = name } };

	return op_dcookie_get(pipeline.resolver.table, &id);
}

static void links_lead_to_files(void **state OP_UNUSED)
{
	char list[2 * BOX_PATH_BYTES + 8], target[BOX_PATH_BYTES + 8];

	assert_true(mkdirat(pipeline.count.session_fd, "real", 0755) == 0);
	assert_int_equal(symlinkat("real", pipeline.count.session_fd, "link"), 0);
	snprintf(list, sizeof(list), "%s/link", dir);
	snprintf(target, sizeof(target), "%s/real", dir);
	keep_only(list);
	assert_true(wants(image(OP_IMAGE_FILE, target)));
	assert_true(wants(image(OP_IMAGE_FILE, list)));
	assert_false(wants(image(OP_IMAGE_FILE, dir)));
}

static void names_of_the_host_count(void **state OP_UNUSED)
{
	uint64_t inside = image(OP_IMAGE_FILE, "/bin/inside");

	keep_only("/host/layer/bin/inside,ext4,[vdso],anon");
	assert_false(wants(inside));
	assert_int_equal(op_dcookie_set_place(pipeline.resolver.table, inside, "/host/layer/bin/inside", "c1"), 0);
	assert_true(wants(inside));
	assert_true(wants(image(OP_IMAGE_KERNEL, "ext4")));
	assert_false(wants(image(OP_IMAGE_KERNEL, "ext")));
	assert_false(wants(image(OP_IMAGE_ANON, "[vdso]")) || wants(image(OP_IMAGE_ANON, "anon")));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, processes_setup, processes_teardown)
	static const struct CMUnitTest tests[] = {
		TEST(an_application_has_its_regions_alone),
		TEST(an_application_has_its_libraries_where_separated),
		TEST(an_application_has_its_kernel_where_separated),
		TEST(a_library_is_wanted_by_its_own_name),
		TEST(the_kernel_is_wanted_by_its_own_name),
		TEST(all_that_is_named_is_wanted),
		TEST(without_a_filter_nothing_is),
		TEST(repeated_samples_are_all_counted),
		TEST(wanted_images_beyond_the_limit_are_kept),
		TEST(links_lead_to_files),
		TEST(names_of_the_host_count),
	};
#undef TEST

	return cmocka_run_group_tests_name("image_filter", tests, NULL, NULL);
}
