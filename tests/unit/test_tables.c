/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Row tables of images: who makes them, what is tried again, and what a helper that fails costs.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/stacks/cache.h"
#include "tests/unit/passing_clock.h"
#include "tests/unit/table_box.h"

bool __real_op_helper_is_stopped(const struct op_helper *helper);
bool __wrap_op_helper_is_stopped(const struct op_helper *helper);

static bool is_as_hanging; /* a helper that is stopped stands for one that a file system blocks */

bool __wrap_op_helper_is_stopped(const struct op_helper *helper)
{
	return !is_as_hanging && __real_op_helper_is_stopped(helper);
}

/* Where this program has its code. */
static int find_self(struct dl_phdr_info *info, size_t size OP_UNUSED, void *arg)
{
	struct opd_table_source *source = arg;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uint64_t address = info->dlpi_addr + header->p_vaddr, page = (uint64_t)sysconf(_SC_PAGESIZE);

		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
			continue;
		source->start = address & ~(page - 1);
		source->end = (address + header->p_memsz + page - 1) & ~(page - 1);
	}
	return 1; /* the first one is the program */
}

static void a_program_has_a_table(void **state OP_UNUSED)
{
	for (int with_lookers = 0; with_lookers < 2; with_lookers++) {
		const struct op_row_table *table = NULL;
		struct opd_tables_counts counts;
		uint64_t cookie;

		start(built_program, with_lookers);
		cookie = cookie_of(OP_IMAGE_FILE, "/proc/self/exe", 0);
		assert_int_equal(opd_tables_find(tables, cookie, &nowhere, &table), OPD_CODE_PENDING);
		await_table(cookie, &nowhere, &table);
		assert_true(table->nr_rows > 10);
		opd_tables_get_counts(tables, &counts);
		assert_int_equal(counts.made, 1);
		assert_int_equal(counts.nr_mapped, 1);
		assert_int_equal(counts.failed + counts.crashed + counts.timed_out, 0);
		assert_false(opd_tables_is_busy(tables));
		stop();
	}
}

/* The mapping leads to the file when the path does not. */
static void a_mapping_leads_to_the_file(void **state OP_UNUSED)
{
	struct opd_table_source source = { .pid = (uint32_t)getpid() };
	const struct op_row_table *table = NULL;
	enum opd_walk_code code;

	if (geteuid())
		skip();
	dl_iterate_phdr(find_self, &source);
	start(built_program, true);
	code = await(cookie_of_file("/nowhere/at/all", "/proc/self/exe", 0), &source, &table);
	stop();
	assert_int_equal(code, OPD_CODE_TABLE);
}

static void the_vdso_has_a_table(void **state OP_UNUSED)
{
	const struct op_row_table *table = NULL, *again = NULL;

	start(built_program, true);
	await_table(cookie_of(OP_IMAGE_ANON, "[vdso]", 0), &nowhere, &table);
	assert_true(table->nr_rows > 1);
	/* that of another process is the same */
	assert_int_equal(opd_tables_find(tables, cookie_of(OP_IMAGE_ANON, "[vdso]", 1), &nowhere, &again), OPD_CODE_TABLE);
	assert_ptr_equal(table, again);
	stop();
}

static void others_have_none(void **state OP_UNUSED)
{
	const struct op_row_table *table = NULL;

	start(built_program, true);
	assert_int_equal(opd_tables_find(tables, cookie_of(OP_IMAGE_ANON, "anon", 0), &nowhere, &table), OPD_CODE_NO_TABLE);
	assert_int_equal(opd_tables_find(tables, cookie_of(OP_IMAGE_KERNEL, "ext4", 0), &nowhere, &table), OPD_CODE_NO_TABLE);
	assert_false(opd_tables_is_busy(tables));
	stop();
}

static void another_file_is_not_taken(void **state OP_UNUSED)
{
	const struct op_row_table *table = NULL;
	struct opd_tables_counts counts;

	start(built_program, true);
	assert_int_equal(await(cookie_of(OP_IMAGE_FILE, "/proc/self/exe", 12345), &nowhere, &table), OPD_CODE_NO_TABLE);
	assert_int_equal(await(cookie_of(OP_IMAGE_FILE, "/nowhere", 0), &nowhere, &table), OPD_CODE_NO_TABLE);
	assert_int_equal(await(cookie_of(OP_IMAGE_FILE, "/dev/null", 0), &nowhere, &table), OPD_CODE_NO_TABLE);
	assert_int_equal(await(cookie_of(OP_IMAGE_FILE, "/etc/passwd", 0), &nowhere, &table), OPD_CODE_NO_TABLE);
	opd_tables_get_counts(tables, &counts);
	assert_int_equal(counts.made, 0);
	assert_int_equal(counts.failed, 4);
	stop();
}

/* ---- programs in the place of opd-tables ---- */

static void write_script(const char *path, const char *body)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fprintf(file, "#!/bin/sh\n%s\n", body);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0755), 0);
}

static const struct {
	const char *body;
	uint64_t crashed, timed_out;
} bad_programs[] = {
	{ "kill -9 $$", 1, 0 },
	{ "kill -XCPU $$", 0, 1 },
	{ "exit 0", 1, 0 },                                 /* nothing is no table */
	{ "echo this is not a table of rows and not short; exit 0", 1, 0 },
	{ "cat /proc/self/exe", 1, 0 },
	{ "cat; kill -SEGV $$", 1, 0 },
	{ "exit 1", 0, 0 },
	{ "exit 126", 0, 0 },      /* OP_ROW_TABLE_NO_SANDBOX */
	{ "kill -9 $PPID", 1, 0 }, /* the process that waits for it */
	{ "exec sleep 1000", 0, 1 },
};

/*
 * Each table begins at normal priority and is made idle (policy 5) after a second, until the credit
 * is spent; on a busy machine that takes more of them. Others begin idle.
 */
static void a_busy_host_has_tables(void **state)
{
	struct box *box = *state;
	char path[PATH_MAX], log[PATH_MAX], image[PATH_MAX], body[2 * PATH_MAX], begun[128] = "";
	FILE *file;

	snprintf(path, sizeof(path), "%s/program", box->path);
	snprintf(log, sizeof(log), "%s/log", box->path);
	snprintf(body, sizeof(body),
		 "policy() { read -r line </proc/$$/stat; set -- $line; eval policy='${41}'; }\n"
		 "policy; echo $policy >>%s; while [ $policy != 5 ]; do policy; done; exit 1\n", log);
	write_script(path, body);
	wait_ns = HOUR_NS; /* at idle priority it may need long */
	start(path, true);
	wait_ns = 0;
	for (size_t i = 0; i < sizeof(begun) / 2 - 1 && !strchr(begun, '5'); i++) {
		const struct op_row_table *table = NULL;

		snprintf(image, sizeof(image), "%s/image-%zu", box->path, i);
		write_script(image, "");
		assert_int_equal(await(cookie_of(OP_IMAGE_FILE, image, 0), &nowhere, &table), OPD_CODE_NO_TABLE);
		file = fopen(log, "re");
		assert_non_null(file);
		assert_int_equal(fread(begun, 1, sizeof(begun) - 1, file), 2 * (i + 1));
		fclose(file);
	}
	stop();
	assert_true(!strncmp(begun, "0\n0\n", 4) && strchr(begun, '5'));
}

static void a_bad_helper_costs_one_table(void **state)
{
	struct box *box = *state;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/program", box->path);
	for (size_t i = 0; i < op_array_size(bad_programs); i++) {
		const struct op_row_table *table = NULL;
		struct opd_tables_counts counts;

		write_script(path, bad_programs[i].body);
		wait_ns = strstr(bad_programs[i].body, "sleep") ? OP_NS_PER_S / 5 : 0;
		start(path, true);
		assert_int_equal(await(cookie_of(OP_IMAGE_FILE, "/proc/self/exe", 0), &nowhere, &table), OPD_CODE_NO_TABLE);
		opd_tables_get_counts(tables, &counts);
		assert_int_equal(counts.made, 0);
		assert_int_equal(counts.failed, 1);
		assert_int_equal(counts.crashed, bad_programs[i].crashed);
		assert_int_equal(counts.timed_out, bad_programs[i].timed_out);
		stop();
	}
	wait_ns = 0;
}

/* The pid of the helper, which is stopped when it makes the first table. */
static int stop_helper(const struct box *box, const struct opd_table_source *source)
{
	const struct op_row_table *table = NULL;
	char program[PATH_MAX], pid_path[PATH_MAX], body[4 * PATH_MAX];
	FILE *file;
	int pid;

	snprintf(program, sizeof(program), "%s/program", box->path);
	snprintf(pid_path, sizeof(pid_path), "%s/pid", box->path);
	snprintf(body, sizeof(body), "[ -e %s ] && exec %s; echo $PPID >%s; kill -STOP $PPID; exec sleep 1000", pid_path,
		 built_program, pid_path);
	write_script(program, body);
	wait_ns = HOUR_NS;
	start(program, true);
	wait_ns = 0;
	assert_int_equal(opd_tables_find(tables, cookie_of(OP_IMAGE_FILE, "/bin/sh", 0), source, &table), OPD_CODE_PENDING);
	while (!(file = fopen(pid_path, "re")) || (fscanf(file, "%d", &pid) != 1 && !fclose(file)))
		turn();
	fclose(file);
	return pid;
}

/*
 * As one that reads from a file system that does not answer: nothing ends it. Files of its user
 * wait then, those of others do not.
 */
static void a_helper_that_hangs_stops_one_user(void **state)
{
	struct opd_table_source own = { .pid = (uint32_t)getpid() }, other = { .pid = 1, .user_ns = 12345 };
	const struct op_row_table *table = NULL;
	struct opd_tables_counts counts;
	int pid;

	is_as_hanging = true;
	pid = stop_helper(*state, &own);
	passed_s += HOUR_NS / OP_NS_PER_S;
	assert_int_equal(await(cookie_of(OP_IMAGE_FILE, "/bin/sh", 0), &own, &table), OPD_CODE_NO_TABLE);
	assert_int_equal(await(cookie_of(OP_IMAGE_FILE, "/bin/ls", 0), &own, &table), OPD_CODE_NO_TABLE);
	opd_tables_get_counts(tables, &counts);
	assert_int_equal(counts.timed_out, 1);
	await_table(cookie_of(OP_IMAGE_FILE, "/bin/cat", 0), &other, &table);
	while (!kill(pid, SIGCONT)) /* and then it ends */
		usleep(1000);
	await_table(cookie_of(OP_IMAGE_FILE, "/bin/cp", 0), &own, &table);
	passed_s += 120; /* perhaps it had no CPU: the first one is tried again */
	turn();
	await_table(cookie_of(OP_IMAGE_FILE, "/bin/sh", 0), &own, &table);
	stop();
	is_as_hanging = false;
}

/* Somebody has stopped it: another one takes its place soon, and no user waits for it. */
static void a_helper_that_is_stopped_stops_nobody(void **state)
{
	struct opd_table_source own = { .pid = (uint32_t)getpid() };
	const struct op_row_table *table = NULL;
	struct opd_tables_counts counts;
	int pid = stop_helper(*state, &own);

	passed_s += 10;
	assert_int_equal(await(cookie_of(OP_IMAGE_FILE, "/bin/sh", 0), &own, &table), OPD_CODE_NO_TABLE);
	await_table(cookie_of(OP_IMAGE_FILE, "/bin/ls", 0), &own, &table);
	passed_s += 10;
	turn();
	await_table(cookie_of(OP_IMAGE_FILE, "/bin/sh", 0), &own, &table);
	opd_tables_get_counts(tables, &counts);
	assert_int_equal(counts.nr_ended, 1);
	assert_int_equal(counts.timed_out, 0);
	while (!kill(pid, SIGCONT))
		usleep(1000);
	stop();
}

/* Where memory is short the kernel kills opd-tables or its helper. The image is tried again. */
static void an_image_is_tried_again_after_a_kill(void **state)
{
	static const struct {
		const char *kill;
		uint64_t seconds;
	} kills[] = { { "kill -9 $$", 61 }, { "kill -9 $PPID", 2 } };
	struct box *box = *state;
	char program[PATH_MAX], body[4 * PATH_MAX];

	snprintf(program, sizeof(program), "%s/program", box->path);
	for (size_t i = 0; i < op_array_size(kills); i++) {
		const struct op_row_table *table = NULL;
		struct opd_tables_counts counts;
		uint64_t cookie;

		snprintf(body, sizeof(body), "cd %s; [ -d done ] && exec %s; mkdir done; %s; sleep 1000",
			 box->path, built_program, kills[i].kill);
		write_script(program, body);
		start(program, true);
		cookie = cookie_of(OP_IMAGE_FILE, "/bin/sh", 0);
		assert_int_equal(await(cookie, &nowhere, &table), OPD_CODE_NO_TABLE);
		passed_s += kills[i].seconds;
		turn();
		await_table(cookie, &nowhere, &table);
		opd_tables_get_counts(tables, &counts);
		assert_int_equal(counts.crashed, 1);
		assert_int_equal(counts.nr_ended, i);
		stop();
		snprintf(body, sizeof(body), "rmdir %s/done", box->path);
		assert_int_equal(system(body), 0);
	}
}

/* ---- images that change ---- */

static const char *const changes[] = {
	"printf x >>image",
	"printf x | dd of=image bs=1 seek=5000 conv=notrunc 2>/dev/null",
	"truncate -s 5000 image",
};

/* Somebody writes to the file while its table is made: neither contents have this table. */
static void a_file_that_changes_has_no_table(void **state)
{
	struct box *box = *state;
	char program[PATH_MAX], image[PATH_MAX], body[4 * PATH_MAX];

	snprintf(program, sizeof(program), "%s/program", box->path);
	snprintf(image, sizeof(image), "%s/image", box->path);
	for (size_t i = 0; i < op_array_size(changes); i++) {
		const struct op_row_table *table = NULL;
		struct opd_tables_counts counts;

		snprintf(body, sizeof(body), "cd %s && cp /bin/sh image && touch -d @1000000000 image", box->path);
		assert_int_equal(system(body), 0);
		snprintf(body, sizeof(body), "cd %s && %s && exec %s", box->path, changes[i], built_program);
		write_script(program, body);
		start(program, true);
		assert_int_equal(await(cookie_of(OP_IMAGE_FILE, image, 0), &nowhere, &table), OPD_CODE_NO_TABLE);
		opd_tables_get_counts(tables, &counts);
		assert_int_equal(counts.made, 0);
		assert_int_equal(counts.failed, 1);
		stop();
	}
}

/* The one that is mapped is open already. */
static void a_file_that_is_replaced_keeps_its_table(void **state)
{
	const struct op_row_table *table = NULL;
	struct box *box = *state;
	char program[PATH_MAX], image[PATH_MAX], body[4 * PATH_MAX];

	snprintf(program, sizeof(program), "%s/program", box->path);
	snprintf(image, sizeof(image), "%s/image", box->path);
	snprintf(body, sizeof(body), "cp /bin/sh %s", image);
	assert_int_equal(system(body), 0);
	snprintf(body, sizeof(body), "cd %s && cp /bin/ls new && mv new image && exec %s", box->path, built_program);
	write_script(program, body);
	start(program, true);
	await_table(cookie_of(OP_IMAGE_FILE, image, 0), &nowhere, &table);
	stop();
}

/* ---- the cache ---- */


static struct opd_tables_counts counts_of_known(const char *cache_dir, const char *kept, const char *image)
{
	const struct op_row_table *table = NULL;
	struct opd_tables_counts counts;
	uint64_t cookie;

	start_with_cache(built_program, true, cache_dir, 0);
	cookie = cookie_of(OP_IMAGE_FILE, image, 0);
	set_build_id(cookie, kept);
	(void)await(cookie, &nowhere, &table);
	await_disk();
	opd_tables_get_counts(tables, &counts);
	stop();
	return counts;
}

static void spoil_byte(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char byte;

	assert_int_equal(pread(fd, &byte, 1, 100), 1);
	byte = (char)~byte;
	assert_int_equal(pwrite(fd, &byte, 1, 100), 1);
	close(fd);
}

static void a_table_is_kept(void **state)
{
	struct box *box = *state;
	struct opd_tables_counts counts = counts_of_one(built_program, box->path, 0, "/bin/sh");
	char path[PATH_MAX];

	assert_int_equal(counts.made, 1);
	assert_int_equal(counts.uncached, 0);
	find_kept(box->path, path);
	assert_string_not_equal(path, "");
	counts = counts_of_known(box->path, path, "/bin/sh");
	assert_int_equal(counts.from_cache, 1);
	assert_int_equal(counts.made, 0);
	counts = counts_of_known(box->path, path, "/gone"); /* its build-id is enough */
	assert_int_equal(counts.from_cache, 1);
	spoil_byte(path);
	counts = counts_of_known(box->path, path, "/bin/sh");
	assert_int_equal(counts.from_cache, 0);
	assert_int_equal(counts.made, 1);
	counts = counts_of_known(box->path, path, "/bin/sh"); /* the good one has replaced it */
	assert_int_equal(counts.from_cache, 1);
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(counts_of_known(box->path, path, "/bin/sh").made, 1);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(counts_of_known(box->path, path, "/bin/sh").made, 1);
	if (geteuid())
		return;
	assert_int_equal(chown(path, 1000, 1000), 0);
	assert_int_equal(counts_of_known(box->path, path, "/bin/sh").made, 1);
	assert_int_equal(counts_of_known(box->path, path, "/bin/sh").from_cache, 1);
}

/* A kernel before 6.11 does not tell build-ids: then that in the file finds the table. */
static void a_table_is_found_without_a_build_id(void **state)
{
	struct box *box = *state;
	struct opd_tables_counts counts = counts_of_one(built_program, box->path, 0, "/bin/sh");

	assert_int_equal(counts.made, 1);
	counts = counts_of_one(built_program, box->path, 0, "/bin/sh");
	assert_int_equal(counts.from_cache, 1);
	assert_int_equal(counts.made, 0);
}

/* As one that somebody has copied. */
static void an_entry_of_another_image_is_not_taken(void **state)
{
	struct box *box = *state;
	char sh[PATH_MAX], ls[PATH_MAX], command[3 * PATH_MAX];

	counts_of_one(built_program, box->path, 0, "/bin/sh");
	find_kept(box->path, sh);
	snprintf(command, sizeof(command), "mv %s %s/kept && rm -r %s/[0-9a-f]*", sh, box->path, box->path);
	assert_int_equal(system(command), 0);
	counts_of_one(built_program, box->path, 0, "/bin/ls");
	snprintf(command, sizeof(command), "mv %s/kept $(find %s/[0-9a-f]* -type f ! -name kept)", box->path, box->path);
	find_kept(box->path, ls);
	assert_int_equal(system(command), 0);
	assert_int_equal(counts_of_known(box->path, ls, "/bin/ls").made, 1);
	assert_int_equal(counts_of_known(box->path, ls, "/bin/ls").from_cache, 1);
}

/* Nothing is read or written through a link. */
static void links_are_not_followed(void **state)
{
	struct box *box = *state;
	char kept[PATH_MAX], cache[PATH_MAX], command[6 * PATH_MAX], left[32] = "";
	FILE *output;

	snprintf(cache, sizeof(cache), "%s/cache", box->path);
	counts_of_one(built_program, cache, 0, "/bin/sh");
	find_kept(cache, kept);
	snprintf(command, sizeof(command), "mv %s %s/other && ln -s %s/other %s", kept, box->path, box->path, kept);
	assert_int_equal(system(command), 0);
	assert_int_equal(counts_of_known(cache, kept, "/bin/sh").made, 1);
	assert_int_equal(counts_of_known(cache, kept, "/bin/sh").from_cache, 1);
	snprintf(command, sizeof(command), "cd %s && mkdir away && mv cache/*/* away && rmdir cache/* && ln -s ../away cache/%.2s",
		 box->path, strrchr(kept, '/') + 1);
	assert_int_equal(system(command), 0);
	assert_int_equal(counts_of_known(cache, kept, "/bin/sh").from_cache, 0);
	snprintf(command, sizeof(command), "rm %s/away/*; exec true", box->path);
	assert_int_equal(system(command), 0);
	assert_int_equal(counts_of_known(cache, kept, "/bin/sh").uncached, 1);
	snprintf(command, sizeof(command), "ls %s/away | wc -l", box->path);
	output = popen(command, "re");
	assert_non_null(fgets(left, sizeof(left), output));
	assert_int_equal(pclose(output), 0);
	assert_int_equal(strtoul(left, NULL, 10), 0);
}

/* While the table of one image takes long, others come from the cache. */
static void the_cache_helps_beside_a_table_that_takes_long(void **state)
{
	const struct op_row_table *table = NULL;
	struct box *box = *state;
	char kept[PATH_MAX], cache[PATH_MAX], program[PATH_MAX];
	uint64_t slow, known;

	snprintf(cache, sizeof(cache), "%s/cache", box->path);
	snprintf(program, sizeof(program), "%s/program", box->path);
	counts_of_one(built_program, cache, 0, "/bin/sh");
	find_kept(cache, kept);
	write_script(program, "exec sleep 1000");
	start_with_cache(program, true, cache, 0);
	slow = cookie_of(OP_IMAGE_FILE, "/bin/ls", 0);
	assert_int_equal(opd_tables_find(tables, slow, &nowhere, &table), OPD_CODE_PENDING);
	opd_tables_turn(tables);
	known = cookie_of(OP_IMAGE_FILE, "/bin/sh", 0);
	set_build_id(known, kept);
	await_table(known, &nowhere, &table);
	assert_int_equal(opd_tables_find(tables, slow, &nowhere, &table), OPD_CODE_PENDING);
	stop();
}

#define NR_SMALL 100000u

/* An entry that is used is made newer; the oldest go first. Each takes a block of the disk. */
static void small_entries_have_a_limit(void **state)
{
	const uint64_t max_use = 64 << 20;
	const struct op_build_id id = { .nr_bytes = 20 }; /* "00...", older than all others */
	struct box *box = *state;
	struct opd_cache cache;
	uint64_t nr_bytes;
	size_t nr_left = 0;
	char name[64];
	int fd;

	opd_cache_open(&cache, box->path, 0);
	fd = opd_cache_add(&cache, &id, 0, "small", 5);
	assert_true(fd >= 0);
	close(fd);
	for (uint32_t i = 0; i < NR_SMALL; i++) {
		struct timespec times[2] = { { .tv_sec = 1000000 + i }, { .tv_sec = 1000000 + i } };

		snprintf(name, sizeof(name), "00/%08x", i);
		fd = openat(cache.dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		assert_true(fd >= 0 && !ftruncate(fd, 1) && !futimens(fd, times));
		close(fd);
	}
	snprintf(name, sizeof(name), "00/%040d", 0);
	assert_int_equal(utimensat(cache.dir_fd, name, (struct timespec[2]){ { .tv_sec = 1 }, { .tv_sec = 1 } }, 0), 0);
	fd = opd_cache_find(&cache, &id, 0, &nr_bytes);
	assert_true(fd >= 0);
	close(fd);
	opd_cache_close(&cache);
	opd_cache_open(&cache, box->path, max_use);
	fd = opd_cache_add(&cache, &id, 1, "small", 5);
	assert_true(fd >= 0);
	close(fd);
	assert_true(cache.used <= max_use);
	fd = opd_cache_find(&cache, &id, 0, &nr_bytes);
	assert_true(fd >= 0);
	close(fd);
	for (uint32_t i = 0; i < NR_SMALL; i++) {
		snprintf(name, sizeof(name), "00/%08x", i);
		fd = faccessat(cache.dir_fd, name, F_OK, 0);
		nr_left += !fd;
		assert_true(i < NR_SMALL - 1 || !fd);
		assert_true(i > NR_SMALL / 2 || fd);
	}
	assert_in_range(nr_left, 1000, max_use / 4096);
	opd_cache_close(&cache);
}

/* Its owner could give it any build-id, and any contents behind opd's back. */
static void a_file_of_a_user_is_kept_apart(void **state)
{
	struct box *box = *state;
	char image[PATH_MAX], cache[PATH_MAX], path[PATH_MAX], command[3 * PATH_MAX];

	if (geteuid())
		skip();
	snprintf(image, sizeof(image), "%s/program", box->path);
	snprintf(cache, sizeof(cache), "%s/cache", box->path);
	snprintf(command, sizeof(command), "cp /bin/sh %s && chown 1000 %s", image, image);
	assert_int_equal(system(command), 0);
	assert_int_equal(counts_of_one(built_program, cache, 0, image).made, 1);
	find_kept(cache, path);
	assert_string_equal(path + strlen(path) - 5, ".1000");
	assert_int_equal(counts_of_known(cache, path, "/bin/sh").made, 1);
	assert_int_equal(counts_of_known(cache, path, image).from_cache, 1);
	assert_int_equal(chmod(image, 0777), 0);
	assert_int_equal(unlink(path), 0);
	snprintf(command, sizeof(command), "rm -r %s", cache);
	assert_int_equal(system(command), 0);
	counts_of_one(built_program, cache, 0, image);
	find_kept(cache, path);
	assert_string_equal(path, ""); /* anybody may write to it */
}

/* How many lines of /proc/self/maps have this text. */
static size_t nr_mappings(const char *text)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 200];
	size_t nr = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		nr += strstr(line, text) != NULL;
	fclose(maps);
	return nr;
}

/* A table that is not kept needs no memory, unless it is small. */
static void a_large_table_is_in_a_file(void **state)
{
	struct box *box = *state;
	const struct op_row_table *table = NULL;
	char image[PATH_MAX], cache[PATH_MAX], path[PATH_MAX], command[3 * PATH_MAX];
	uint64_t cookie;

	snprintf(image, sizeof(image), "%s/library", box->path);
	snprintf(cache, sizeof(cache), "%s/cache", box->path);
	snprintf(command, sizeof(command), "cp $(ldd /bin/sh | awk '/libc.so/ { print $3 }') %s && chmod 0666 %s", image, image);
	assert_int_equal(system(command), 0);
	start_with_cache(built_program, true, cache, 0);
	cookie = cookie_of(OP_IMAGE_FILE, image, 0);
	await_table(cookie, &nowhere, &table);
	assert_int_not_equal(nr_mappings("opd-table"), 0);
	await_disk();
	assert_int_equal(nr_mappings("opd-table"), 0);
	assert_int_equal(nr_mappings(cache), 1);
	assert_int_equal(opd_tables_find(tables, cookie, &nowhere, &table), OPD_CODE_TABLE);
	assert_non_null(op_row_table_find(table, le32toh(table->starts[table->nr_rows / 2])));
	stop();
	find_kept(cache, path);
	assert_string_equal(path, "");
}

static void an_unused_table_leaves_the_memory(void **state)
{
	struct box *box = *state;
	const struct op_row_table *table = NULL;
	struct opd_tables_counts counts;
	char path[PATH_MAX];
	uint64_t cookie;

	counts_of_one(built_program, box->path, 0, "/bin/sh");
	find_kept(box->path, path);
	unused_ns = 1;
	start_with_cache(built_program, true, box->path, 0);
	unused_ns = 0;
	cookie = cookie_of(OP_IMAGE_FILE, "/bin/sh", 0);
	set_build_id(cookie, path);
	for (uint64_t nr = 1; nr <= 2; nr++) {
		await_table(cookie, &nowhere, &table);
		do {
			opd_tables_turn(tables);
			opd_tables_get_counts(tables, &counts);
		} while (counts.nr_mapped);
		assert_int_equal(counts.dropped, nr);
		assert_int_equal(counts.from_cache, nr);
	}
	stop();
}

static void the_cache_has_a_limit(void **state)
{
	static const char *const programs[] = { "/bin/sh", "/bin/ls", "/bin/cat", "/bin/cp", "/bin/mv", "/bin/dd" };
	struct box *box = *state;
	char command[PATH_MAX], text[32] = "";
	FILE *output;

	for (size_t i = 0; i < op_array_size(programs); i++)
		counts_of_one(built_program, box->path, 100000, programs[i]);
	snprintf(command, sizeof(command), "find %s -type f -printf '%%s\\n' | awk '{ n += $1 } END { print n + 0 }'", box->path);
	output = popen(command, "re");
	assert_non_null(fgets(text, sizeof(text), output));
	assert_int_equal(pclose(output), 0);
	assert_in_range(strtoul(text, NULL, 10), 1, 100000);
}

static void without_a_disk_there_are_tables(void **state)
{
	struct box *box = *state;
	char path[PATH_MAX];

	assert_int_equal(counts_of_one(built_program, "/dev/null/cache", 0, "/bin/sh").made, 1);
	assert_int_equal(counts_of_one(built_program, "/proc/cache", 0, "/bin/sh").made, 1);
	assert_int_equal(chmod(box->path, 0777), 0);
	assert_int_equal(counts_of_one(built_program, box->path, 0, "/bin/sh").made, 1);
	find_kept(box->path, path);
	assert_string_equal(path, "");
	assert_int_equal(chmod(box->path, 0700), 0);
	if (access("/dev/full", W_OK))
		return;
	snprintf(path, sizeof(path), "mount -t tmpfs -o size=4k opd-test %s 2>/dev/null", box->path);
	if (system(path))
		return;
	assert_int_equal(counts_of_one(built_program, box->path, 0, "/bin/sh").uncached, 1);
	snprintf(path, sizeof(path), "mount -o remount,ro %s && umount %s", box->path, box->path);
	assert_int_equal(system(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_has_a_table),
		cmocka_unit_test(a_mapping_leads_to_the_file),
		cmocka_unit_test(the_vdso_has_a_table),
		cmocka_unit_test(others_have_none),
		cmocka_unit_test(another_file_is_not_taken),
		box_test(a_bad_helper_costs_one_table),
		box_test(a_busy_host_has_tables),
		box_test(a_helper_that_hangs_stops_one_user),
		box_test(a_helper_that_is_stopped_stops_nobody),
		box_test(an_image_is_tried_again_after_a_kill),
		cache_test(a_file_that_changes_has_no_table),
		cache_test(a_file_that_is_replaced_keeps_its_table),
		cache_test(a_table_is_kept),
		cache_test(a_table_is_found_without_a_build_id),
		cache_test(an_entry_of_another_image_is_not_taken),
		cache_test(links_are_not_followed),
		cache_test(the_cache_helps_beside_a_table_that_takes_long),
		cache_test(small_entries_have_a_limit),
		cache_test(a_file_of_a_user_is_kept_apart),
		cache_test(a_large_table_is_in_a_file),
		cache_test(an_unused_table_leaves_the_memory),
		cache_test(the_cache_has_a_limit),
		cache_test(without_a_disk_there_are_tables),
	};

	if (!realpath("tools/opd-tables/opd-tables", built_program))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
