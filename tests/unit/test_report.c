/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whole reports, from sample files to text, without a program's own options. The images of the
 * sessions do not exist, so each is one symbol; only the tests of replaced images make one.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "libop/session/contents.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "tests/unit/sample_writer.h"
#include "tools/common/packages.h"
#include "tools/profile/profile.h"
#include "tools/profile/image_list.h"
#include "tools/profile/image_name.h"
#include "tools/profile/open_sessions.h"
#include "tools/profile/read_samples.h"
#include "tools/profile/select_files.h"
#include "tools/report/make_rows.h"
#include "tools/report/symbol_sort.h"
#include "tools/symbols/symbol_sources.h"
#include "tools/report/writer.h"
#include "tests/unit/test_box.h"

#define TIMER            "/TIMER.0.0.all.all.all"
#define CPU_LINES        "CPU: CPU with timer interrupt\nProfiling through timer interrupt\n"
#define SUMMARY_HEADER   CPU_LINES "          TIMER:0|\n  samples|      %|\n------------------\n"
#define DEPENDENT_HEADER "\t          TIMER:0|\n\t  samples|      %|\n\t------------------\n"

static char directory[BOX_PATH_BYTES];
static int session_fd;
static const char *image_root = "/nothing-is-here";
static struct opr_words image_dirs;

static int directory_setup(void **state OP_UNUSED)
{
	return box_make(directory);
}

static int directory_teardown(void **state OP_UNUSED)
{
	static const char *const rest[] = { "samples/current", "samples", "tmp" };
	int dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	unlinkat(dir_fd, "abi", 0);
	for (size_t i = 0; i < op_array_size(rest); i++)
		unlinkat(dir_fd, rest[i], AT_REMOVEDIR);
	close(dir_fd);
	return rmdir(directory);
}

static int open_session(void **state OP_UNUSED)
{
	int dir_fd = op_session_open(directory);

	session_fd = openat(dir_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(dir_fd);
	return session_fd < 0 ? -1 : 0;
}

static int clear_session(void **state OP_UNUSED)
{
	int err = op_session_clear(session_fd, NULL);

	close(session_fd);
	return err;
}

static void put(const char *path, uint64_t key, uint32_t value)
{
	const struct sample sample = { key, value };
	struct op_odb_header header = sample_header();

	sample_write(session_fd, path, &header, &sample, 1);
}

struct request {
	const char *words[4];
	struct opr_query query;
	struct opr_layout layout;
};

struct stages {
	struct opr_spec spec;
	struct opr_profile profile;
	struct opr_classes classes;
	struct opr_finder finder;
};

static int open_stages(struct stages *stages, const struct request *request)
{
	size_t nr_words = 0;
	int err;

	while (nr_words < op_array_size(request->words) && request->words[nr_words])
		nr_words++;
	err = opr_spec_parse(&stages->spec, request->words, nr_words);
	if (!err)
		err = opr_finder_init(&stages->finder, image_root, &image_dirs);
	if (!err)
		err = opr_sessions_open(&stages->profile, directory, &stages->spec);
	if (!err)
		err = opr_files_select(&stages->profile, &request->query, &stages->spec, directory);
	if (!err)
		err = opr_samples_read(&stages->profile);
	if (!err)
		err = opr_classes_find(&stages->classes, &stages->profile, &request->query.merge.merge);
	return err ? err : opr_profile_arrange(&stages->profile, request->query.merge.merge.lib);
}

static void close_stages(struct stages *stages)
{
	opr_classes_free(&stages->classes);
	opr_profile_free(&stages->profile);
	opr_finder_free(&stages->finder);
	opr_spec_free(&stages->spec);
}

static int write_summary(struct stages *stages, const struct request *request, struct opr_layout *layout, FILE *out)
{
	struct opr_summary summary = { 0 };
	struct opr_writer writer = { 0 };
	int err = opr_summary_make(&summary, &stages->profile, stages->classes.nr_classes, false);

	layout->totals = layout->origin.totals = summary.totals;
	if (!err)
		err = opr_writer_init(&writer, &opr_text_writer, layout, out);
	if (!err)
		opr_report_summary(&writer, &summary, request->query.threshold);
	opr_writer_free(&writer);
	opr_summary_free(&summary);
	return err;
}

static int write_symbols(struct stages *stages, const struct request *request, struct opr_layout *layout, FILE *out)
{
	static const struct opr_words no_words;
	const struct opr_naming naming = { .demangle = true, .sources = OPR_FROM_SYMTAB };
	struct opr_symbol_report report = { 0 };
	struct opr_image_cache cache = { 0 };
	struct opr_writer writer = { 0 };
	struct opr_sort_order order = { 0 };
	const char *bad_key;
	int err = opr_sort_order_make(&order, &no_words, &bad_key);

	if (!err)
		err = opr_image_cache_init(&cache, &stages->profile, &stages->finder, &naming);
	if (!err)
		err = opr_image_cache_read(&cache);
	if (!err)
		err = opr_symbol_report_make(&report, &stages->profile, stages->classes.nr_classes, &cache, &request->query,
					     &no_words);
	layout->totals = layout->origin.totals = report.totals;
	if (!err)
		err = opr_writer_init(&writer, &opr_text_writer, layout, out);
	if (!err) {
		opr_symbol_report_limit(&report, request->query.threshold);
		err = opr_symbol_sort(&report, &order);
	}
	if (!err)
		opr_report_symbols(&writer, &report);
	opr_writer_free(&writer);
	opr_symbol_report_free(&report);
	opr_image_cache_free(&cache);
	return err;
}

static void assert_report(const struct request *request, const char *expected)
{
	struct stages stages = { 0 };
	static const struct opr_recorded no_ledger; /* as of the genuine tools */
	struct opr_layout layout = request->layout;
	char *text = NULL;
	size_t nr_bytes;
	FILE *out = open_memstream(&text, &nr_bytes);
	int err;

	assert_non_null(out);
	err = open_stages(&stages, request);
	layout.classes = &stages.classes;
	layout.origin = (struct opr_origin){ .profile = &stages.profile, .classes = &stages.classes, .recorded = &no_ledger };
	if (!err)
		err = layout.symbols ? write_symbols(&stages, request, &layout, out)
				     : write_summary(&stages, request, &layout, out);
	fclose(out);
	assert_int_equal(err, 0);
	assert_string_equal(text, expected);
	free(text);
	close_stages(&stages);
}

static void assert_refused(const struct request *request)
{
	struct stages stages = { 0 };

	assert_true(open_stages(&stages, request) < 0);
	close_stages(&stages);
}

static void put_two_applications(void)
{
	put("{root}/bin/b/{dep}/{root}/bin/b" TIMER, 0x1000, 6);
	put("{root}/bin/b/{dep}/{root}/lib/c.so" TIMER, 0x1000, 3);
	put("{root}/bin/b/{dep}/{root}/lib/empty.so" TIMER, 0x1000, 0);
	put("{root}/bin/a/{dep}/{kern}/no-mapping" TIMER, 0x1000, 1);
	put("{kern}/no-vmlinux/{dep}/{kern}/no-vmlinux" TIMER, 0xffffffff81000010, 10);
}

static void test_summary(void **state OP_UNUSED)
{
	put_two_applications();
	assert_report(&(struct request){ 0 },
		      SUMMARY_HEADER "       10 50.0000 no-vmlinux\n"
				     "        9 45.0000 b\n" DEPENDENT_HEADER "\t        6 66.6667 b\n"
				     "\t        3 33.3333 c.so\n"
				     "        1  5.0000 a\n" DEPENDENT_HEADER "\t        1 100.000 no-mapping\n");
	assert_report(&(struct request){ .layout = { .no_header = true, .long_names = true, .global_percent = true } },
		      "       10 50.0000 /no-vmlinux\n"
		      "        9 45.0000 /bin/b\n"
		      "\t        6 30.0000 /bin/b\n"
		      "\t        3 15.0000 /lib/c.so\n"
		      "        1  5.0000 /bin/a\n"
		      "\t        1  5.0000 /no-mapping\n");
	assert_report(
		&(struct request){ .layout = { .no_header = true }, .query = { .threshold = 45.0, .exclude_dependent = true } },
		"       10 62.5000 no-vmlinux\n");
	assert_report(&(struct request){ .layout = { .no_header = true }, .query.merge.merge.lib = true, .words = { "*.so" } },
		      "        3 100.000 c.so\n        0       0 empty.so\n");
}

static void test_symbols(void **state OP_UNUSED)
{
	put_two_applications();
	assert_report(&(struct request){ .layout = { .symbols = true } },
		      CPU_LINES "samples  %        image name               symbol name\n"
				"10       50.0000  no-vmlinux               /no-vmlinux\n"
				"6        30.0000  b                        /bin/b\n"
				"3        15.0000  c.so                     /lib/c.so\n"
				"1         5.0000  no-mapping               /no-mapping\n");
	assert_report(&(struct request){ .layout = { .symbols = true, .no_header = true, .app_column = true, .accumulated = true },
					 .query.threshold = 15.0 },
		      "10       10            50.0000  50.0000    no-vmlinux               no-vmlinux               /no-vmlinux\n"
		      "6        16            30.0000  80.0000    b                        b                        /bin/b\n"
		      "3        19            15.0000  95.0000    c.so                     b                        /lib/c.so\n");
}

static void test_excluded_symbols_leave_the_total(void **state OP_UNUSED)
{
	static char name[] = "/no-vmlinux";
	char *words[] = { name };

	put_two_applications();
	assert_report(&(struct request){ .layout = { .symbols = true, .no_header = true },
					 .query.exclude_symbols = { .words = words, .nr_words = 1 } },
		      "6        60.0000  b                        /bin/b\n"
		      "3        30.0000  c.so                     /lib/c.so\n"
		      "1        10.0000  no-mapping               /no-mapping\n");
}

static void test_details(void **state OP_UNUSED)
{
	static const struct sample samples[] = { { 0x30, 1 }, { 0x10, 2 }, { 0x10, UINT32_MAX }, { 0x20, 0 } };
	struct op_odb_header header = sample_header();

	sample_write(session_fd, "{root}/x/{dep}/{root}/x" TIMER, &header, samples, op_array_size(samples));
	assert_report(&(struct request){ .layout = { .symbols = true, .show_address = true }, .query.details = true },
		      CPU_LINES "vma      samples  %        symbol name\n"
				"00000000 4294967298 100.000  /x\n"
				"  00000010 4294967297 100.000\n"
				"  00000020 0              0\n"
				"  00000030 1        2.3e-08\n");
}

static void test_anonymous_regions_and_speed(void **state OP_UNUSED)
{
	static const struct sample sample = { 0x10, 2 };
	struct op_odb_header header = sample_header();

	header.cpu_speed_mhz = 2000.125;
	sample_write(session_fd, "{root}/x/{dep}/{anon:[heap]}/12.0x1000.0x2000" TIMER, &header, &sample, 1);
	assert_report(&(struct request){ .layout = { .symbols = true } },
		      "CPU: CPU with timer interrupt, speed 2000.12 MHz (estimated)\nProfiling through timer interrupt\n"
		      "samples  %        image name               symbol name\n"
		      "2        100.000  [heap] (tgid:12 range:0x1000-0x2000) [heap] (tgid:12 range:0x1000-0x2000)\n");
}

/*
 * Names that would move the cursor, begin a line or change colours are escaped; letters beyond
 * ASCII are not.
 */
static void test_control_characters(void **state OP_UNUSED)
{
	put("{root}/bin/\033[31mred\n       99 99.0000 fake/{dep}/{root}/bin/\033[31mred\n       99 99.0000 fake" TIMER, 0x10, 2);
	put("{root}/bin/b/{dep}/{root}/bin/b" TIMER, 0x10, 1);
	put("{root}/bin/b/{dep}/{root}/lib/\x7f\xc2\x9b\x9b.so" TIMER, 0x10, 1);
	put("{root}/bin/m\xc3\xbcsli\\\xfc\xf0\x9f\x8e\x81/{dep}/{root}/bin/m\xc3\xbcsli\\\xfc\xf0\x9f\x8e\x81" TIMER, 0x10, 1);
	assert_report(&(struct request){ .layout = { .no_header = true } },
		      "        2 40.0000 \\x1b[31mred\\x0a       99 99.0000 fake\n"
		      "        2 40.0000 b\n\t        1 50.0000 b\n\t        1 50.0000 \\x7f\\xc2\\x9b\\x9b.so\n"
		      "        1 20.0000 m\xc3\xbcsli\\\\xfc\xf0\x9f\x8e\x81\n");
	assert_report(&(struct request){ .layout = { .symbols = true, .no_header = true }, .words = { "lib-image:*.so" } },
		      "1        100.000  \\x7f\\xc2\\x9b\\x9b.so      /lib/\\x7f\\xc2\\x9b\\x9b.so\n");
}

static void put_event(const char *path, uint32_t number, uint32_t unit_mask, uint32_t value)
{
	const struct sample sample = { 0x10, value };
	struct op_odb_header header = sample_header();

	header.ctr_event = number;
	header.ctr_um = unit_mask;
	header.ctr_count = 1;
	sample_write(session_fd, path, &header, &sample, 1);
}

static void test_two_events(void **state OP_UNUSED)
{
	put_event("{root}/x/{dep}/{root}/x/page-faults.1.0.all.all.all", 9, 0, 4);
	put_event("{root}/x/{dep}/{root}/x/NO_EVENT_OF_OPD.200000.65.all.all.all", 10, 65, 5);
	assert_report(&(struct request){ 0 },
		      "CPU: CPU with timer interrupt\n"
		      "Counted page-faults events (Page faults) with a unit mask of 0x00 (No unit mask) count 1\n"
		      "Profiling through timer interrupt\n"
		      "    page-faults:1|NO_EVENT_OF_OP...|\n"
		      "  samples|      %|  samples|      %|\n"
		      "------------------------------------\n"
		      "        4 100.000         5 100.000 x\n");
}

static void test_threads(void **state OP_UNUSED)
{
	put("{root}/x/{dep}/{root}/x/TIMER.0.0.100.100.all", 0x10, 4);
	put("{root}/x/{dep}/{root}/x/TIMER.0.0.100.101.all", 0x10, 5);
	put("{root}/x/{dep}/{root}/x/TIMER.0.0.200.200.all", 0x10, 6);
	assert_refused(&(struct request){ 0 });
	assert_report(&(struct request){ .query.merge.merge = { .tid = true } },
		      /* the lines of the genuine tools would be four */
		      "Samples: 15 of TIMER:0\n"
				"         tgid:100|         tgid:200|\n  samples|      %|  samples|      %|\n"
				"------------------------------------\n"
				"        9 100.000         6 100.000 x\n");
	assert_report(&(struct request){ .words = { "tid:100,200" }, .layout = { .no_header = true } },
		      "        4 100.000         6 100.000 x\n");
	assert_report(&(struct request){ .query.merge.merge.tgid = true, .layout.no_header = true }, "       15 100.000 x\n");
	assert_refused(&(struct request){ .words = { "tid:5" } });
	assert_refused(&(struct request){ .words = { "cpu:0" } });
}

static void test_merged_files_must_agree(void **state OP_UNUSED)
{
	const struct sample sample = { 0x10, 2 };
	struct op_odb_header header = sample_header();
	struct stages stages = { 0 };
	struct request request = { .query.merge.merge = { .tgid = true },
				   .layout = { .symbols = true, .no_header = true, .classes = &stages.classes } };

	header.mtime = 1;
	sample_write(session_fd, "{root}/x/{dep}/{root}/x/TIMER.0.0.1.1.all", &header, &sample, 1);
	header.mtime = 2;
	sample_write(session_fd, "{root}/x/{dep}/{root}/x/TIMER.0.0.2.2.all", &header, &sample, 1);
	assert_int_equal(open_stages(&stages, &request), 0);
	assert_int_equal(write_symbols(&stages, &request, &request.layout, stdout), -EINVAL);
	assert_int_equal(write_summary(&stages, &(struct request){ .query.threshold = 200 },
				       &(struct opr_layout){ .classes = &stages.classes, .no_header = true }, stdout),
			 0);
	close_stages(&stages);
	assert_report(&(struct request){ .words = { "tid:1,2" }, .layout = { .symbols = true, .no_header = true } },
		      "2        100.000  2        100.000  /x\n"); /* two classes are not merged */
}

static void test_errors(void **state OP_UNUSED)
{
	assert_refused(&(struct request){ 0 }); /* no files */
	assert_refused(&(struct request){ .words = { "session:nothing" } });
	put("{root}/x/{dep}/{root}/x/{cg}/{root}/x" TIMER, 0x10, 2);
	assert_refused(&(struct request){ 0 }); /* callgraph files only */
	put("{root}/x/{dep}/{root}/x" TIMER, 0x10, 2);
	assert_refused(&(struct request){ .words = { "session:current,./nothing" } });
	assert_refused(&(struct request){ .words = { "/y" } });
	sample_write_bytes(session_fd, "{root}/x/{dep}/{root}/x" TIMER, "DAE\n", 4);
	assert_refused(&(struct request){ 0 });
}

/* ---- images that took the place of others ---- */

#define PLAIN    "{root}/prog/{dep}/{root}/prog" TIMER
#define TOLD(by) "{root}/prog (" by ")/{dep}/{root}/prog (" by ")" TIMER
#define OLD_TIME 1500000000
#define NEW_TIME 1600000000

static char program[sizeof(directory) + 8];
static uint64_t work_position; /* of its function `work` */
static char inode_path[128];   /* of its sample file when the file is identified by its inode */

static int make_program(void **state)
{
	static const struct timespec times[2] = { { .tv_sec = NEW_TIME }, { .tv_sec = NEW_TIME } };
	struct opr_symbols symbols = { 0 };
	char command[256];
	struct stat st;

	snprintf(program, sizeof(program), "%s/prog", directory);
	snprintf(command, sizeof(command),
		 "echo 'int work(void); int work(void) { return 0; } int main(void) { return work(); }' |"
		 "${CC:-cc} -O0 -x c -o %s -Wl,--build-id=0x00112233445566778899 -",
		 program);
	if (system(command) || utimensat(AT_FDCWD, program, times, 0) || stat(program, &st))
		return -1;
	snprintf(inode_path, sizeof(inode_path), "{root}/prog (inode %1$ju)/{dep}/{root}/prog (inode %1$ju)" TIMER,
		 (uintmax_t)st.st_ino);
	if (opr_symbols_read_bfd(&symbols, program, "/prog", &(struct opr_symbol_options){ .sources = OPR_FROM_SYMTAB }))
		return -1;
	for (size_t i = 0; i < symbols.nr_symbols; i++)
		if (!strcmp(symbols.symbols[i].name, "work"))
			work_position = symbols.symbols[i].start;
	opr_symbols_free(&symbols);
	image_root = directory;
	return work_position ? open_session(state) : -1;
}

static int remove_program(void **state)
{
	image_root = "/nothing-is-here";
	image_dirs = (struct opr_words){ 0 };
	return clear_session(state) | unlink(program);
}

static void put_work(const char *path, uint64_t mtime, uint32_t value)
{
	const struct sample sample = { work_position, value };
	struct op_odb_header header = sample_header();

	header.mtime = mtime;
	sample_write(session_fd, path, &header, &sample, 1);
}

/* The argument is the plain name. */
static void assert_work(const char *expected)
{
	assert_report(&(struct request){ .layout = { .symbols = true, .no_header = true }, .words = { "/prog" } }, expected);
}

static void test_rebuilt(void **state OP_UNUSED)
{
	put_work(PLAIN, OLD_TIME, 3);
	put_work(TOLD("build-id 001122334455"), NEW_TIME, 5);
	assert_work("5        62.5000  work\n3        37.5000  /prog\n");
	put_work(PLAIN, 0, 3);
	assert_work("5        62.5000  work\n3        37.5000  /prog\n");
	/* as old as the new one: only the build-id tells them apart */
	put_work(PLAIN, NEW_TIME, 3);
	assert_work("5        62.5000  work\n3        37.5000  /prog\n");
	assert_report(&(struct request){ .layout = { .symbols = true, .no_header = true }, .words = { "/prog (build-id *)" } },
		      "5        100.000  work\n");
	assert_report(&(struct request){ .layout = { .no_header = true } },
		      "        5 62.5000 prog (build-id 001122334455)\n        3 37.5000 prog\n");
}

/* A file of another mount namespace with the same path: the file of the host has the plain name. */
static void test_elsewhere(void **state OP_UNUSED)
{
	put_work(PLAIN, NEW_TIME, 3);
	put_work(TOLD("build-id ffffffffffff"), OLD_TIME, 5);
	assert_work("5        62.5000  /prog (build-id ffffffffffff)\n3        37.5000  work\n");
}

static void test_told_by_inode(void **state OP_UNUSED)
{
	char expected[128];

	put_work(PLAIN, OLD_TIME, 3);
	put_work(inode_path, NEW_TIME, 5);
	assert_work("5        62.5000  work\n3        37.5000  /prog\n");
	put_work(inode_path, OLD_TIME, 5); /* an inode is used again */
	snprintf(expected, sizeof(expected), "5        62.5000  %.*s\n3        37.5000  /prog\n",
		 (int)(strchr(inode_path, ')') + 1 - strchr(inode_path, '/')), strchr(inode_path, '/'));
	assert_work(expected);
}

static void test_told_by_nothing(void **state OP_UNUSED)
{
	put_work(PLAIN, OLD_TIME, 3);
	put_work(TOLD("inode 0"), NEW_TIME, 5);
	assert_work("5        62.5000  work\n3        37.5000  /prog\n");
}

/* Nothing shows that another file was there: as oprofile, with a warning. */
static void test_modified(void **state OP_UNUSED)
{
	put_work(PLAIN, OLD_TIME, 3);
	assert_work("3        100.000  work\n");
}

static void test_copy_in_search_directory(void **state OP_UNUSED)
{
	char *dirs[] = { directory };

	image_root = "/nothing-is-here";
	image_dirs = (struct opr_words){ .words = dirs, .nr_words = 1 };
	put_work(TOLD("build-id 001122334455"), OLD_TIME, 5);
	assert_work("5        100.000  work\n");
	put_work(TOLD("build-id ffffffffffff"), OLD_TIME, 3);
	assert_work("5        62.5000  work\n3        37.5000  /prog (build-id ffffffffffff)\n");
}

/*
 * Samples of both files under one name: the symbols of the new file do not get samples of the old
 * one.
 */
static void test_one_name_for_two_files(void **state OP_UNUSED)
{
	put_work("{root}/prog/{dep}/{root}/prog/TIMER.0.0.all.all.0", OLD_TIME, 3);
	put_work("{root}/prog/{dep}/{root}/prog/TIMER.0.0.all.all.1", NEW_TIME, 4);
	put_work("{root}/prog (build-id 001122334455)/{dep}/{root}/prog (build-id 001122334455)/TIMER.0.0.all.all.0", NEW_TIME, 5);
	assert_work("5        62.5000  0              0  work\n"
		    "3        37.5000  0              0  /prog\n"
		    "0              0  4        100.000  work\n");
}

/* ---- the list of images ---- */

static void write_images(const char *expected, size_t nr_expected)
{
	struct stages stages = { 0 };
	struct opr_layout layout = { .long_names = true, .no_header = true, .images = true };
	struct opr_image_report report = { .sources = OPR_FROM_ALL };
	struct opr_writer writer = { 0 };
	char *text = NULL;
	size_t nr_bytes;
	FILE *out = open_memstream(&text, &nr_bytes);

	assert_int_equal(open_stages(&stages, &(struct request){ 0 }), 0);
	layout.classes = &stages.classes;
	assert_int_equal(opr_image_report_make(&report, &stages.profile, stages.classes.nr_classes, &stages.finder, 0, false), 0);
	assert_int_equal(report.nr_rows, nr_expected);
	layout.totals = report.totals;
	assert_int_equal(opr_writer_init(&writer, &opr_text_writer, &layout, out), 0);
	assert_int_equal(opr_report_images(&writer, &report), 0);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
	opr_writer_free(&writer);
	opr_image_report_free(&report);
	close_stages(&stages);
}

/*
 * Rows of another file at the program's path; of the program under a name that says nothing; and
 * without samples.
 */
#define TABLE_HEAD "opd-dcookies 1\n"
#define TABLE_ROW(cookie, name, build_id, inode)                                                                                   \
	cookie "\tfile\t" name "\t/prog\t-\t-\t" build_id "\t8:1\t" inode "\t0\t1600000000.000000000\t1\t0\t1\t2\n"

static void test_images_with_a_table(void **state OP_UNUSED)
{
	static const char table[] = TABLE_HEAD TABLE_ROW("1", "/prog", "ffeeddccbbaa99887766", "5")
		TABLE_ROW("2", "/prog (inode 77)", "00112233445566778899", "77") TABLE_ROW("3", "/prog (inode 6)", "-", "6");
	char expected[1024];

	sample_write_bytes(session_fd, OP_DCOOKIE_FILE, table, strlen(table));
	put_work(PLAIN, OLD_TIME, 2);
	put_work(TOLD("inode 77"), NEW_TIME, 5);
	put_work(TOLD("inode 6"), NEW_TIME, 1);
	put("{root}/prog/{dep}/{kern}/no-mapping" TIMER, 0x1000, 2);
	snprintf(expected, sizeof(expected),
		 "5        50.0000  00112233445566778899                      symbols     /prog                    "
		 "%1$s/usr/lib/debug/.build-id/00/112233445566778899.debug (missing)\n"
		 "2        20.0000  -                                         -           /no-mapping              -\n"
		 "2        20.0000  ffeeddccbbaa99887766                      replaced    /prog                    "
		 "%1$s/usr/lib/debug/.build-id/ff/eeddccbbaa99887766.debug (missing)\n"
		 "1        10.0000  inode 6                                   replaced    /prog                    -\n",
		 directory);
	unsetenv("DEBUGINFOD_URLS");
	write_images(expected, 4);
	/* The table says which file a name means: its symbols are shown, and no others. */
	assert_work("5        50.0000  prog (inode 77)          work\n"
		    "2        20.0000  no-mapping               /no-mapping\n"
		    "2        20.0000  prog                     /prog\n"
		    "1        10.0000  prog (inode 6)           /prog (inode 6)\n");
}

static void test_images_without_a_table(void **state OP_UNUSED)
{
	char expected[1024];

	put_work(PLAIN, NEW_TIME, 3);
	put("{root}/bin/gone/{dep}/{root}/bin/gone" TIMER, 0x1000, 1);
	snprintf(
		expected, sizeof(expected),
		"3        75.0000  00112233445566778899                      symbols     /prog                    "
		"%s/usr/lib/debug/.build-id/00/112233445566778899.debug (missing; debuginfod-find debuginfo 00112233445566778899)\n"
		"1        25.0000  -                                         not found   /bin/gone                -\n",
		directory);
	setenv("DEBUGINFOD_URLS", "https://debuginfod.example", 1);
	write_images(expected, 2);
	unsetenv("DEBUGINFOD_URLS");
}

static void test_a_damaged_table_is_not_needed(void **state OP_UNUSED)
{
	sample_write_bytes(session_fd, OP_DCOOKIE_FILE, "opd-dcookies 99\n", 16);
	put_work(PLAIN, NEW_TIME, 3);
	assert_work("3        100.000  work\n");
}

/* An image may have the path of another image, or one that a list has without /usr. */
static void test_debug_packages(void **state OP_UNUSED)
{
	static const char *const lists[][2] = {
		{ "libc6:amd64.list", "/.\n/lib\n/lib/x86_64-linux-gnu/libc.so.6\n/lib/x86_64-linux-gnu/libm.so.6\n" },
		{ "xz-utils.list", "/usr/bin/xz\n/usr/bin/xzcat\n" },
		{ "linux-image-6.1.0-9-amd64.list", "/boot/vmlinuz: a\n" },
		{ "xz-utils.md5sums", "/usr/bin/md5\n" },
	};
	static const char *const paths[] = { "/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/xz", "/usr/bin/x", NULL,
					     "/boot/vmlinuz: a", "/usr/bin/xz", "/usr/bin/md5", "/usr/bin/xz\n/usr/bin/xzcat",
					     "/lib/x86_64-linux-gnu/libc.so.6" };
	static const char *const expected[] = { "libc6-dbg", "xz-utils-dbgsym", NULL, NULL, "linux-image-6.1.0-9-amd64-dbg",
						"xz-utils-dbgsym", NULL, NULL, "libc6-dbg" };
	char *packages[op_array_size(paths)], dir[64];

	for (size_t i = 0; i < op_array_size(lists); i++)
		sample_write_bytes(session_fd, lists[i][0], lists[i][1], strlen(lists[i][1]));
	snprintf(dir, sizeof(dir), "/proc/self/fd/%d", session_fd);
	assert_int_equal(opr_packages_find(dir, paths, op_array_size(paths), packages), 0);
	for (size_t i = 0; i < op_array_size(paths); i++) {
		assert_int_equal(packages[i] != NULL, expected[i] != NULL);
		if (packages[i])
			assert_string_equal(packages[i], expected[i]);
		free(packages[i]);
	}
	for (size_t i = 0; i < op_array_size(lists); i++)
		assert_int_equal(unlinkat(session_fd, lists[i][0], 0), 0);
	assert_int_equal(opr_packages_find("/nothere", paths, 1, packages), 0);
	assert_null(packages[0]);
}

/* Only a release whose archive is known is named; a name with other characters is none. */
static void test_debug_archive(void **state OP_UNUSED)
{
	static const struct {
		const char *os_release, *line;
	} releases[] = {
		{ "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_CODENAME=bookworm\nID=debian\n",
		  "deb http://deb.debian.org/debian-debug/ bookworm-debug main" },
		{ "ID=ubuntu\nVERSION_CODENAME=\"noble\"",
		  "deb http://ddebs.ubuntu.com/ noble main restricted universe multiverse" },
		{ "ID='debian'\nVERSION_CODENAME='sid'\n", "deb http://deb.debian.org/debian-debug/ sid-debug main" },
		{ "ID=fedora\nVERSION_CODENAME=\"\"\n", NULL },
		{ "ID=other\nID_LIKE=debian\nVERSION_CODENAME=bookworm\n", NULL },
		{ "ID=debian\nVERSION_CODENAME=a b; rm\n", NULL },
		{ "ID=debian\n", NULL },
		{ "NO_ID=debian\nVERSION_CODENAME=bookworm\n", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < op_array_size(releases); i++) {
		char *line = opr_packages_debug_archive_of(releases[i].os_release);

		assert_int_equal(line != NULL, releases[i].line != NULL);
		if (line)
			assert_string_equal(line, releases[i].line);
		free(line);
	}
}

#define SESSION_TEST(function) cmocka_unit_test_setup_teardown(function, open_session, clear_session)
#define PROGRAM_TEST(function) cmocka_unit_test_setup_teardown(function, make_program, remove_program)

/* ---- the order of rows ---- */

#define NR_ROWS 600

/* The order of the manual page, row by row; opr_symbol_sort sorts by fewer keys. */
static int compare_plainly(const struct opr_symbol_report *report, const struct opr_symbol_row *a, const struct opr_symbol_row *b,
			   const struct opr_sort_order *order)
{
	int result = 0;

	for (size_t i = 0; i < OPR_NR_SORT_KEYS && !result; i++) {
		uint64_t count_a = report->counts.values[a->counts], count_b = report->counts.values[b->counts];
		const int results[] = {
			[OPR_SORT_sample] = count_a > count_b ? -1 : count_a < count_b,
			[OPR_SORT_image] = order->long_names ? strcmp(a->image, b->image)
							     : strcmp(opr_base_name(a->image), opr_base_name(b->image)),
			[OPR_SORT_app_name] =
				order->long_names ? strcmp(a->app, b->app) : strcmp(opr_base_name(a->app), opr_base_name(b->app)),
			[OPR_SORT_symbol] = strcmp(a->name, b->name),
			[OPR_SORT_debug] = 0,
			[OPR_SORT_vma] = a->vma < b->vma ? -1 : a->vma > b->vma,
			[OPR_SORT_change] = 0, /* no row has changes */
		};

		result = results[order->keys[i]];
	}
	if (order->reverse)
		result = -result;
	return result ? result : a->order < b->order ? -1 : 1;
}

static void check_order(const char *key, bool reverse, bool long_names)
{
	/* One name at two addresses, and two rows that differ only in their directories. */
	static const char again[] = "/lib/b";
	static const char *const images[] = { "/lib/b", "/bin/b", "/lib/a", again, "/z/c" };
	struct opr_symbol_row *rows = calloc(NR_ROWS, sizeof(*rows));
	uint64_t counts[NR_ROWS];
	struct opr_symbol_report report = { .nr_classes = 1, .rows = rows, .nr_rows = NR_ROWS, .counts.values = counts };
	struct opr_sort_order order = { .reverse = reverse, .long_names = long_names };
	struct opr_words keys = { 0 };
	const char *bad_key;
	uint32_t chance = 12345;
	bool seen[NR_ROWS] = { false };

	assert_non_null(rows);
	for (size_t i = 0; i < NR_ROWS; i++) {
		uint32_t picked[5];

		for (size_t j = 0; j < op_array_size(picked); j++) {
			chance = chance * 1664525 + 1013904223;
			picked[j] = chance >> 16;
		}
		counts[i] = picked[0] % 4;
		rows[i] = (struct opr_symbol_row){ .image = images[picked[1] % 5],
						   .app = images[picked[2] % 5],
						   .name = images[picked[3] % 5],
						   .vma = picked[4] % 3,
						   .counts = i,
						   .order = i };
	}
	assert_int_equal(opr_words_add(&keys, key), 0);
	assert_int_equal(opr_sort_order_make(&order, &keys, &bad_key), 0);
	assert_int_equal(opr_symbol_sort(&report, &order), 0);
	rows = report.rows;
	for (size_t i = 0; i < NR_ROWS; i++) {
		assert_false(seen[rows[i].order]);
		seen[rows[i].order] = true;
		assert_int_equal(rows[i].counts, rows[i].order);
		assert_true(!i || compare_plainly(&report, &rows[i - 1], &rows[i], &order) < 0);
	}
	opr_words_free(&keys);
	free(rows);
}

static void test_order(void **state)
{
	static const char *const keys[] = { "sample", "image", "app-name", "symbol", "vma" };
	struct opr_symbol_report none = { .nr_classes = 1 };
	struct opr_sort_order order = { 0 };

	(void)state;
	for (size_t i = 0; i < 4 * op_array_size(keys); i++)
		check_order(keys[i / 4], i % 2, i / 2 % 2);
	assert_int_equal(opr_symbol_sort(&none, &order), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SESSION_TEST(test_summary),
		SESSION_TEST(test_symbols),
		SESSION_TEST(test_excluded_symbols_leave_the_total),
		SESSION_TEST(test_details),
		SESSION_TEST(test_anonymous_regions_and_speed),
		SESSION_TEST(test_control_characters),
		SESSION_TEST(test_two_events),
		SESSION_TEST(test_threads),
		SESSION_TEST(test_merged_files_must_agree),
		SESSION_TEST(test_errors),
		PROGRAM_TEST(test_rebuilt),
		PROGRAM_TEST(test_elsewhere),
		PROGRAM_TEST(test_told_by_inode),
		PROGRAM_TEST(test_told_by_nothing),
		PROGRAM_TEST(test_modified),
		PROGRAM_TEST(test_copy_in_search_directory),
		PROGRAM_TEST(test_one_name_for_two_files),
		PROGRAM_TEST(test_images_with_a_table),
		PROGRAM_TEST(test_images_without_a_table),
		PROGRAM_TEST(test_a_damaged_table_is_not_needed),
		SESSION_TEST(test_debug_packages),
		cmocka_unit_test(test_debug_archive),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, directory_setup, directory_teardown);
}
