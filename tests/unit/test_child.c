/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Child processes with limits, the symbols that they return, the cache, and code from a core file.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"

#include "libop/process/stop.h"
#include "tools/code/listing.h"
#include "tools/common/child.h"
#include "tools/elf/bfd_file.h"
#include "tools/elf/lines.h"
#include "tools/symbols/cache.h"
#include "tools/symbols/image_identity.h"
#include "tools/symbols/object_look.h"
#include "tools/symbols/pack.h"
#include "tools/symbols/parallel_read.h"
#include "tools/symbols/serialize.h"
#include "tools/symbols/symbol_sources.h"

#define SELF "/proc/self/exe"

/* ---- children ---- */

static int write_text(FILE *out, void *arg)
{
	fputs(arg, out);
	return 0;
}

static int write_and_fail(FILE *out, void *arg)
{
	fputs(arg, out);
	fflush(out);
	return -ENOEXEC;
}

static int crash(FILE *out OP_UNUSED, void *arg OP_UNUSED)
{
	signal(SIGABRT, SIG_DFL);
	raise(SIGABRT);
	return 0;
}

static int loop(FILE *out OP_UNUSED, void *arg OP_UNUSED)
{
	const struct itimerval soon = { .it_value.tv_usec = 20000 };

	setitimer(ITIMER_PROF, &soon, NULL);
	for (volatile unsigned int i = 1; i; i += 2)
		;
	return 0;
}

static struct opr_child_result run(opr_child_fn *work, const char *text)
{
	struct opr_child_result result = { 0 };
	struct opr_child child;

	assert_int_equal(opr_child_start(&child, work, (void *)(uintptr_t)text), 0);
	assert_int_equal(opr_child_wait(&child, &result), 0);
	return result;
}

struct left {
	int go[2], gone[2]; /* pipes: when the child is to write, and when it has written */
};

/* Leaves a process behind, which writes to the output later. */
static int leave_writer(FILE *out, void *arg)
{
	const struct left *left = arg;
	char *map, byte;
	pid_t pid;

	fputs("as it was", out);
	fflush(out);
	map = mmap(NULL, 9, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(out), 0);
	if (map == MAP_FAILED)
		return -errno;
	pid = fork();
	if (pid)
		return pid < 0 ? -errno : 0;
	close(left->go[1]);
	if (read(left->go[0], &byte, 1) == 1)
		memcpy(map, "something", 9);
	_exit(0);
}

static void test_writer_left(void **state)
{
	struct opr_child_result result = { 0 };
	struct opr_child child;
	struct left left;
	char byte;

	(void)state;
	assert_int_equal(pipe(left.go), 0);
	assert_int_equal(pipe(left.gone), 0);
	assert_int_equal(opr_child_start(&child, leave_writer, &left), 0);
	assert_int_equal(opr_child_wait(&child, &result), 0);
	assert_string_equal(result.bytes, "as it was");
	assert_int_equal(write(left.go[1], "", 1), 1);
	close(left.gone[1]);
	assert_int_equal(read(left.gone[0], &byte, 1), 0);
	assert_string_equal(result.bytes, "as it was");
	opr_child_result_free(&result);
	close(left.go[0]);
	close(left.go[1]);
	close(left.gone[0]);
}

static void test_child(void **state)
{
	struct opr_child_result result = run(write_text, "hello");

	(void)state;
	assert_int_equal(result.err, 0);
	assert_string_equal(result.bytes, "hello");
	opr_child_result_free(&result);
	result = run(write_and_fail, "half");
	assert_int_equal(result.nr_bytes, 4);
	opr_child_result_free(&result);
	assert_int_equal(result.err, -ENOEXEC);
	result = run(crash, "");
	assert_int_equal(result.err, -EFAULT);
	opr_child_result_free(&result);
	result = run(loop, "");
	assert_int_equal(result.err, -ETIME);
	opr_child_result_free(&result);
}

static struct op_stop stop = { .fd = -1 };

static void on_signal(int number OP_UNUSED)
{
	op_stop_set(&stop);
}

/* The child no longer has the parent's handler: the signal ends it. */
static int signal_itself(FILE *out OP_UNUSED, void *arg OP_UNUSED)
{
	raise(SIGTERM);
	return 0;
}

/* The parent gets a request to stop while it waits. */
static int signal_parent(FILE *out OP_UNUSED, void *arg OP_UNUSED)
{
	kill(getppid(), SIGTERM);
	pause();
	return 0;
}

static void test_stop(void **state)
{
	struct sigaction action = { .sa_handler = on_signal }, old;
	struct opr_child_result result;

	(void)state;
	assert_int_equal(op_stop_open(&stop), 0);
	assert_int_equal(sigaction(SIGTERM, &action, &old), 0);
	opr_child_stop_with(&stop);
	result = run(write_text, "hello");
	assert_int_equal(result.err, 0);
	opr_child_result_free(&result);
	result = run(signal_itself, "");
	assert_int_equal(result.err, -EFAULT);
	assert_false(op_stop_is_set(&stop));
	opr_child_result_free(&result);
	result = run(signal_parent, "");
	assert_int_equal(result.err, -EINTR);
	opr_child_result_free(&result);
	opr_child_stop_with(NULL);
	assert_int_equal(sigaction(SIGTERM, &old, NULL), 0);
	close(stop.fd);
}

/* ---- symbols in bytes ---- */

static void read_self(struct opr_symbols *symbols)
{
	const struct opr_symbol_options options = { .demangle = OPR_DEMANGLE_NORMAL, .sources = OPR_FROM_ALL };

	assert_int_equal(opr_symbols_read_bfd(symbols, SELF, SELF, &options), 0);
	assert_true(symbols->nr_symbols > 10);
}

static char *bytes_of(const struct opr_symbols *symbols, size_t *ret_nr_bytes)
{
	struct opr_symbols_bytes made = { 0 };
	char *bytes;

	assert_int_equal(opr_symbols_serialize(&made, symbols), 0);
	*ret_nr_bytes = made.nr_head_bytes + made.strings.length;
	bytes = malloc(*ret_nr_bytes);
	assert_non_null(bytes);
	memcpy(bytes, made.head, made.nr_head_bytes);
	memcpy(bytes + made.nr_head_bytes, made.strings.data, made.strings.length);
	opr_symbols_bytes_free(&made);
	return bytes;
}

static void assert_same_names(const struct opr_symbol *a, const struct opr_symbol *b)
{
	const char *of_a = a->name, *of_b = b->name;

	for (; of_a && of_b; of_a = opr_symbol_next_name(a, of_a), of_b = opr_symbol_next_name(b, of_b))
		assert_string_equal(of_a, of_b);
	assert_true(!of_a && !of_b);
	assert_string_equal(a->shown, b->shown);
}

static void assert_same(const struct opr_symbols *a, const struct opr_symbols *b)
{
	assert_int_equal(a->nr_symbols, b->nr_symbols);
	assert_int_equal(a->start_offset, b->start_offset);
	for (size_t i = 0; i < a->nr_symbols; i++) {
		assert_int_equal(a->symbols[i].start, b->symbols[i].start);
		assert_int_equal(a->symbols[i].size, b->symbols[i].size);
		assert_int_equal(a->symbols[i].vma, b->symbols[i].vma);
		assert_int_equal(a->symbols[i].section, b->symbols[i].section);
		assert_same_names(&a->symbols[i], &b->symbols[i]);
	}
}

/* A function that has two names. */
int child_alias(void);
int child_alias_too(void) __attribute__((weak, alias("child_alias")));

int child_alias(void)
{
	return 0;
}

static size_t count_aliases(const struct opr_symbols *symbols)
{
	size_t nr_aliases = 0;

	for (size_t i = 0; i < symbols->nr_symbols; i++) {
		const char *name = symbols->symbols[i].name;

		while ((name = opr_symbol_next_name(&symbols->symbols[i], name)))
			nr_aliases++;
	}
	return nr_aliases;
}

static void test_file(void **state)
{
	struct opr_symbols symbols = { 0 }, again = { 0 };
	size_t nr_bytes = 0;
	char *bytes;

	(void)state;
	read_self(&symbols);
	bytes = bytes_of(&symbols, &nr_bytes);
	assert_int_equal(opr_symbols_deserialize(&again, bytes, nr_bytes, SELF, true), 0);
	assert_same(&symbols, &again);
	assert_true(count_aliases(&again) > 0);
	assert_string_equal(again.code_path, SELF);
	opr_symbols_free(&again);
	opr_symbols_free(&symbols);
	free(bytes);
}

/* No byte sequence makes the reader read out of bounds: the sanitizers watch. */
static void test_damaged_file(void **state)
{
	struct opr_symbols symbols = { 0 };
	size_t nr_bytes = 0;
	uint32_t chance = 12345;
	char *bytes;

	(void)state;
	read_self(&symbols);
	symbols.nr_symbols = 8;
	bytes = bytes_of(&symbols, &nr_bytes);
	for (unsigned int i = 0; i < 4000; i++) {
		struct opr_symbols again = { 0 };
		size_t length = i % 3 ? nr_bytes : i % nr_bytes;
		char *copy = malloc(length + 1);

		assert_non_null(copy);
		memcpy(copy, bytes, length);
		for (unsigned int j = 0; j < 3 && length; j++) {
			chance = chance * 1664525 + 1013904223;
			copy[(chance >> 8) % (j ? length : op_min_u64(length, 64))] = (char)chance;
		}
		if (!opr_symbols_deserialize(&again, copy, length, SELF, true))
			assert_true(count_aliases(&again) <= again.nr_symbols * nr_bytes);
		opr_symbols_free(&again);
		free(copy);
	}
	opr_symbols_free(&symbols);
	free(bytes);
}

/* ---- jobs and the cache ---- */

static time_t time_ahead;

time_t __real_time(time_t *ret_time);
time_t __wrap_time(time_t *ret_time);

time_t __wrap_time(time_t *ret_time)
{
	time_t now = __real_time(NULL) + time_ahead;

	if (ret_time)
		*ret_time = now;
	return now;
}

static void do_job_below(const char *root, const char *path, struct opr_symbols *symbols, int err)
{
	struct opr_symbol_job job = { .path = path,
				      .name = path,
				      .options = { .demangle = OPR_DEMANGLE_NORMAL, .sources = OPR_FROM_ALL, .root = root },
				      .symbols = symbols };

	assert_int_equal(opr_symbol_jobs_run(&job, 1), 0);
	assert_true(job.done);
	assert_int_equal(job.err, err);
}

static void do_job(const char *path, struct opr_symbols *symbols, int err)
{
	do_job_below(NULL, path, symbols, err);
}

static char *copy_of(const char *from, const char *dir, const char *name)
{
	char *path = NULL, command[512];

	assert_true(asprintf(&path, "%s/%s", dir, name) >= 0);
	snprintf(command, sizeof(command), "cp /proc/%d/exe %s && chmod go-w %s", (int)getpid(), path, path);
	(void)from;
	assert_int_equal(system(command), 0);
	return path;
}

static void remove_dir(const char *dir)
{
	char command[512];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static void test_jobs(void **state)
{
	struct opr_symbols direct = { 0 }, symbols[3] = { { 0 } };
	struct opr_symbol_job jobs[3];
	const char *paths[] = { SELF, "/proc/self/status", SELF };

	(void)state;
	assert_int_equal(setenv("OPD_CACHE_DIR", "", 1), 0);
	read_self(&direct);
	for (size_t i = 0; i < 3; i++)
		jobs[i] = (struct opr_symbol_job){ .path = paths[i],
						   .name = SELF,
						   .options = { .demangle = OPR_DEMANGLE_NORMAL, .sources = OPR_FROM_ALL },
						   .symbols = &symbols[i] };
	assert_int_equal(opr_symbol_jobs_run(jobs, 3), 0);
	assert_int_equal(jobs[0].err, 0);
	assert_int_equal(jobs[1].err, -ENOEXEC);
	assert_int_equal(jobs[2].err, 0);
	assert_same(&direct, &symbols[0]);
	assert_same(&direct, &symbols[2]);
	for (size_t i = 0; i < 3; i++)
		opr_symbols_free(&symbols[i]);
	opr_symbols_free(&direct);
}

static char pack_bytes[32 << 20]; /* a program with sanitizers has 8 MiB of symbols and more */

/* Somebody who edits the cache and wants to be believed writes new checksums. */
static void sum_anew(const char *dir, const char *name)
{
	char path[512];
	struct opr_pack_foot foot;
	struct opr_pack_row *rows;
	char *names;
	size_t nr_bytes;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "r+e");
	assert_non_null(file);
	nr_bytes = fread(pack_bytes, 1, sizeof(pack_bytes), file);
	assert_in_range(nr_bytes, sizeof(foot), sizeof(pack_bytes) - 1);
	memcpy(&foot, pack_bytes + nr_bytes - sizeof(foot), sizeof(foot));
	names = pack_bytes + nr_bytes - sizeof(foot) - foot.nr_name_bytes;
	rows = calloc(foot.nr_rows, sizeof(*rows));
	assert_non_null(rows);
	memcpy(rows, names - foot.nr_rows * sizeof(*rows), foot.nr_rows * sizeof(*rows));
	for (size_t i = 0; i < foot.nr_rows; i++) {
		const char *row_name = names + rows[i].name;

		rows[i].sum = opr_pack_sum(opr_pack_sum(0, row_name, strlen(row_name)), pack_bytes + rows[i].at, rows[i].nr_bytes);
	}
	foot.sum = opr_pack_sum(opr_pack_sum(0, rows, foot.nr_rows * sizeof(*rows)), names, foot.nr_name_bytes);
	memcpy(names - foot.nr_rows * sizeof(*rows), rows, foot.nr_rows * sizeof(*rows));
	memcpy(pack_bytes + nr_bytes - sizeof(foot), &foot, sizeof(foot));
	rewind(file);
	assert_int_equal(fwrite(pack_bytes, 1, nr_bytes, file), nr_bytes);
	assert_int_equal(fclose(file), 0);
	free(rows);
}

static void sum_all_anew(const char *dir)
{
	char path[64];
	struct dirent *entry;
	DIR *files;

	snprintf(path, sizeof(path), "%s/symbols", dir);
	files = opendir(path);
	assert_non_null(files);
	while ((entry = readdir(files)))
		if (entry->d_name[0] != '.')
			sum_anew(path, entry->d_name);
	closedir(files);
}

/* Changes a name in the files of the cache, as damage does. Returns how often. */
static size_t damage_cache(const char *dir, const char *from, const char *to)
{
	char command[1024], line[64] = "";
	FILE *pipe;

	snprintf(command, sizeof(command), "ls %s/symbols | wc -l; sed -i s/%s/%s/g %s/symbols/*", dir, from, to, dir);
	pipe = popen(command, "re");
	assert_non_null(pipe);
	assert_non_null(fgets(line, sizeof(line), pipe));
	pclose(pipe);
	return strtoul(line, NULL, 10);
}

/*
 * Changes the name and writes the checksum anew: a reader that shows this name got it from the
 * cache.
 */
static size_t rename_in_cache(const char *dir, const char *from, const char *to)
{
	size_t nr_files = damage_cache(dir, from, to);

	sum_all_anew(dir);
	return nr_files;
}

static bool has_symbol(const struct opr_symbols *symbols, const char *name)
{
	for (size_t i = 0; i < symbols->nr_symbols; i++)
		if (!strcmp(symbols->symbols[i].name, name))
			return true;
	return false;
}

static void strip_copy(const char *dir)
{
	char command[512];

	snprintf(command, sizeof(command), "strip -o %s/stripped %s/image", dir, dir);
	assert_int_equal(system(command), 0);
}

static void test_cache(void **state)
{
	char dir[] = "/tmp/opd-cache-XXXXXX", path[64];
	struct opr_symbols symbols = { 0 };
	char *image;

	(void)state;
	assert_non_null(mkdtemp(dir));
	image = copy_of(SELF, dir, "image");
	assert_int_equal(setenv("OPD_CACHE_DIR", dir, 1), 0);
	do_job(image, &symbols, 0);
	assert_true(has_symbol(&symbols, "main"));
	opr_symbols_free(&symbols);
	assert_int_equal(rename_in_cache(dir, "write_and_fail", "kept_and_shown"), 1);
	do_job(image, &symbols, 0);
	assert_true(has_symbol(&symbols, "kept_and_shown"));
	opr_symbols_free(&symbols);
	strip_copy(dir);
	snprintf(path, sizeof(path), "%s/stripped", dir);
	do_job(path, &symbols, 0);
	assert_false(has_symbol(&symbols, "kept_and_shown")); /* an image with the same build-id */
	opr_symbols_free(&symbols);
	snprintf(path, sizeof(path), "%s/symbols", dir);
	assert_int_equal(chmod(path, 0777), 0);
	do_job(image, &symbols, 0);
	assert_true(has_symbol(&symbols, "write_and_fail"));
	opr_symbols_free(&symbols);
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(damage_cache(dir, "write_text", "wrote_text"), 1); /* both images */
	do_job(image, &symbols, 0);
	assert_true(has_symbol(&symbols, "write_text"));
	opr_symbols_free(&symbols);
	/* the new entries were merged with the others */
	assert_int_equal(rename_in_cache(dir, "opdsym", "damage"), 1);
	do_job(image, &symbols, 0);
	assert_true(has_symbol(&symbols, "write_and_fail"));
	opr_symbols_free(&symbols);
	setenv("OPD_CACHE_DIR", "", 1);
	free(image);
	remove_dir(dir);
}

#define MANY_JOBS 40

static void change_file(const char *dir, const char *command)
{
	char line[512];

	snprintf(line, sizeof(line), "cd %s && %s", dir, command);
	assert_int_equal(system(line), 0);
}

/*
 * A user makes a program with the build-id and size of another user's program, and with other
 * symbols. Only that user sees those symbols.
 */
static void test_cache_of_strangers(void **state)
{
	static const struct {
		uid_t owner;
		mode_t mode;
	} strangers[] = { { 65534, 0755 }, { 0, 0775 }, { 0, 0757 } };
	char dir[] = "/tmp/opd-cache-XXXXXX";
	struct opr_symbols symbols = { 0 };
	char *image, *forged;

	(void)state;
	if (geteuid())
		skip();
	assert_non_null(mkdtemp(dir));
	image = copy_of(SELF, dir, "image");
	change_file(dir, "sed s/write_and_fail/write_and_hide/g image >forged");
	assert_true(asprintf(&forged, "%s/forged", dir) >= 0);
	assert_int_equal(setenv("OPD_CACHE_DIR", dir, 1), 0);
	time_ahead = 60;
	for (size_t i = 0; i < op_array_size(strangers); i++) {
		assert_int_equal(chown(forged, strangers[i].owner, 0), 0);
		assert_int_equal(chmod(forged, strangers[i].mode), 0);
		do_job(forged, &symbols, 0);
		assert_true(has_symbol(&symbols, "write_and_hide"));
		opr_symbols_free(&symbols);
		do_job(image, &symbols, 0);
		assert_true(has_symbol(&symbols, "write_and_fail"));
		opr_symbols_free(&symbols);
	}
	time_ahead = 0;
	setenv("OPD_CACHE_DIR", "", 1);
	free(forged);
	free(image);
	remove_dir(dir);
}

static void do_many_jobs(const char *image, const char *wanted)
{
	struct opr_symbols symbols[MANY_JOBS] = { { 0 } };
	struct opr_symbol_job jobs[MANY_JOBS];

	for (size_t i = 0; i < MANY_JOBS; i++)
		jobs[i] = (struct opr_symbol_job){ .path = image,
						   .name = image,
						   .options = { .demangle = OPR_DEMANGLE_NORMAL, .sources = OPR_FROM_ALL },
						   .symbols = &symbols[i] };
	assert_int_equal(opr_symbol_jobs_run(jobs, MANY_JOBS), 0);
	for (size_t i = 0; i < MANY_JOBS; i++) {
		assert_int_equal(jobs[i].err, 0);
		assert_true(has_symbol(&symbols[i], wanted));
		opr_symbols_free(&symbols[i]);
	}
}

/* The same number as with several threads. */
static void test_cache_of_many(void **state)
{
	char dir[] = "/tmp/opd-cache-XXXXXX";
	char *image;

	(void)state;
	assert_non_null(mkdtemp(dir));
	image = copy_of(SELF, dir, "image");
	assert_int_equal(setenv("OPD_CACHE_DIR", dir, 1), 0);
	do_many_jobs(image, "write_and_fail");
	assert_int_equal(rename_in_cache(dir, "write_and_fail", "kept_and_shown"), 1);
	do_many_jobs(image, "kept_and_shown");
	setenv("OPD_CACHE_DIR", "", 1);
	free(image);
	remove_dir(dir);
}

/* A module has no program headers with a build-id. Its debug file appears later. */
static void test_cache_of_module(void **state)
{
	char dir[] = "/tmp/opd-cache-XXXXXX", path[64];
	struct opr_symbols symbols = { 0 };

	(void)state;
	assert_non_null(mkdtemp(dir));
	change_file(
		dir,
		"echo 'int in_module(void) { return 1; }' | ${CC:-cc} -xc -O1 -c -o a.o - && ld -r --build-id=sha1 -o m.ko a.o && "
		"gzip -n m.ko");
	assert_int_equal(setenv("OPD_CACHE_DIR", dir, 1), 0);
	snprintf(path, sizeof(path), "%s/m.ko.gz", dir);
	time_ahead = 60;
	do_job_below(dir, path, &symbols, 0);
	assert_non_null(symbols.build_id);
	assert_int_equal(strlen(symbols.build_id), 40);
	opr_symbols_free(&symbols);
	assert_int_equal(rename_in_cache(dir, "in_module", "was_found"), 1);
	do_job_below(dir, path, &symbols, 0);
	assert_true(has_symbol(&symbols, "was_found"));
	opr_symbols_free(&symbols);
	change_file(dir, "gunzip -k m.ko.gz && id=$(readelf -n m.ko | sed -n 's/.*Build ID: //p') && "
			 "to=usr/lib/debug/.build-id/${id%${id#??}} && "
			 "mkdir -p $to && objcopy --redefine-sym in_module=in_debug_file m.ko $to/${id#??}.debug");
	do_job_below(dir, path, &symbols, 0);
	assert_true(has_symbol(&symbols, "in_debug_file"));
	opr_symbols_free(&symbols);
	time_ahead = 0;
	setenv("OPD_CACHE_DIR", "", 1);
	remove_dir(dir);
}

static void test_cache_without_build_id(void **state)
{
	char dir[] = "/tmp/opd-cache-XXXXXX";
	struct opr_symbols symbols = { 0 };
	char *image;

	(void)state;
	assert_non_null(mkdtemp(dir));
	image = copy_of(SELF, dir, "image");
	change_file(dir, "objcopy --remove-section .note.gnu.build-id image");
	assert_int_equal(setenv("OPD_CACHE_DIR", dir, 1), 0);
	do_job(image, &symbols, 0);
	opr_symbols_free(&symbols);
	change_file(dir, "test -z \"$(ls symbols)\""); /* it was written just now */
	time_ahead = 60;
	do_job(image, &symbols, 0);
	opr_symbols_free(&symbols);
	assert_int_equal(rename_in_cache(dir, "write_and_fail", "kept_and_shown"), 1);
	do_job(image, &symbols, 0);
	assert_true(has_symbol(&symbols, "kept_and_shown"));
	opr_symbols_free(&symbols);
	/* The same inode, size and time of modification. */
	change_file(dir, "touch -r image time && sed s/write_and_fail/write_and_hide/g image >other && cat other >image && touch "
			 "-r time image");
	do_job(image, &symbols, 0);
	assert_true(has_symbol(&symbols, "write_and_hide"));
	opr_symbols_free(&symbols);
	time_ahead = 0;
	setenv("OPD_CACHE_DIR", "", 1);
	free(image);
	remove_dir(dir);
}

/* ---- what an object says of itself ---- */

static bool bfd_crashes;

bfd *__real_opr_bfd_open(const char *path);
bfd *__wrap_opr_bfd_open(const char *path);

bfd *__wrap_opr_bfd_open(const char *path)
{
	if (bfd_crashes)
		crash(NULL, NULL);
	return __real_opr_bfd_open(path);
}

static void test_object(void **state)
{
	char dir[] = "/tmp/opd-object-XXXXXX", digits[OP_BUILD_ID_DIGITS] = "";
	struct opr_object object = { 0 };
	struct stat st;
	char *image;

	(void)state;
	assert_non_null(mkdtemp(dir));
	image = copy_of(SELF, dir, "image");
	change_file(dir, "mkdir .debug && objcopy --only-keep-debug image .debug/other");
	change_file(dir, "strip image && objcopy --add-gnu-debuglink=.debug/other image");
	assert_int_equal(opr_elf_build_id(image, digits, &st), 0);
	assert_int_equal(st.st_mode & S_IFMT, S_IFREG);
	assert_int_equal(opr_object_look(&object, image, image, NULL, OPR_FROM_ALL, false), 0);
	assert_true(object.is_object && object.debug_symbols >= OPR_OBJECT_TABLE);
	assert_int_equal(object.symbols, OPR_OBJECT_EXPORTED);
	assert_string_equal(object.build_id, digits);
	assert_string_equal(object.debug_link, "other");
	assert_true(object.debug_file && strstr(object.debug_file, "/.debug/other"));
	opr_object_free(&object);
	assert_int_equal(opr_object_look(&object, image, NULL, NULL, 0, false), 0);
	assert_true(object.is_object && !object.debug_file);
	opr_object_free(&object);
	assert_int_equal(opr_object_look(&object, "/proc/self/status", NULL, NULL, 0, false), 0);
	assert_false(object.is_object);
	bfd_crashes = true;
	assert_int_equal(opr_object_look(&object, image, NULL, NULL, 0, false), 0);
	assert_true(!object.is_object && !*object.build_id);
	bfd_crashes = false;
	free(image);
	remove_dir(dir);
}

/* ---- code from memory ---- */

#define CODE_VMA 0xffffffff81000000u

static void test_core(void **state)
{
	static const uint8_t code[] = { 0x90, 0x31, 0xc0, 0xc3 }; /* nop; xor %eax,%eax; ret */
	const Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
				    .e_type = ET_CORE,
				    .e_machine = EM_X86_64,
				    .e_phoff = sizeof(header),
				    .e_phentsize = sizeof(Elf64_Phdr),
				    .e_phnum = 1 };
	const Elf64_Phdr program = { .p_type = PT_LOAD, .p_vaddr = CODE_VMA, .p_filesz = sizeof(code), .p_offset = 256 };
	struct opr_symbol symbol = { .start = 0, .size = 4, .vma = CODE_VMA, .name = "entry", .shown = "entry" };
	const struct opr_symbols symbols = { .symbols = &symbol, .nr_symbols = 1 };
	struct opr_code_reader *reader = NULL;
	struct opr_code listed = { 0 };
	char path[] = "/tmp/opd-core-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
#ifndef __x86_64__
	skip();
#endif
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
	assert_int_equal(pwrite(fd, &program, sizeof(program), sizeof(header)), sizeof(program));
	assert_int_equal(pwrite(fd, code, sizeof(code), 256), sizeof(code));
	assert_int_equal(opr_code_open_core(path, &symbols, NULL, &reader), 0);
	assert_int_equal(opr_code_list(reader, OPR_CODE_ALL_SECTIONS, CODE_VMA, CODE_VMA + 4, NULL, 0, &listed), 0);
	assert_int_equal(listed.nr_lines, 4);
	assert_string_equal(opr_code_text(&listed, &listed.lines[0]), "entry");
	assert_string_equal(opr_code_text(&listed, &listed.lines[2]), "xor    %eax,%eax");
	assert_int_equal(listed.lines[3].vma, CODE_VMA + 3);
	assert_int_equal(opr_code_list(reader, OPR_CODE_ALL_SECTIONS, 4096, 8192, NULL, 0, &listed), -EFAULT);
	opr_code_free(&listed);
	opr_code_close(reader);
	assert_int_equal(ftruncate(fd, 20), 0);
	assert_int_equal(opr_code_open_core(path, &symbols, NULL, &reader), -ENOEXEC);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_writer_left),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_damaged_file),
		cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_cache_without_build_id),
		cmocka_unit_test(test_cache_of_module),
		cmocka_unit_test(test_cache_of_strangers),
		cmocka_unit_test(test_cache_of_many),
		cmocka_unit_test(test_object),
		cmocka_unit_test(test_core),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
