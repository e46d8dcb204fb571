/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Measures sample files. Usage: bench_files [FILES [DIRTY]], default 20000 and 2000, in a directory
 * below TMPDIR or /tmp.
 *
 * It measures: a sample in an existing node and in a new node, in batches as in opd; making a file;
 * reopening a file when more files are in use than may be open; a dump with many changed files,
 * with opd's own code; reading all files. To show the disk's part of the dump, it also writes and
 * syncs as many plain files one by one in the same directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/jobs/dump.h"
#include "libop/odb/odb.h"
#include "libop/odb/read.h"
#include "libop/base/parse.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/session/list.h"
#include "pipeline/count/file_sinks.h"
#include "tests/bench/bench.h"
#include "tests/die.h"

#define NR_KEYS    4096u
#define NR_COUNTS  (1u << 22)
#define NR_NEW     (1u << 20)
#define MAX_OPEN   4096u
#define MAX_IMAGES 1000100u
#define BATCH      OP_ODB_ADDITIONS_MAX

static const struct op_event event = { .name = "TIMER", .count = 1000000 };
static struct opd_pipeline pipeline;
static struct opd_event account;
static char directory[256];

static void row(const char *what, uint64_t spent_ns, uint64_t nr, const char *unit)
{
	printf("%-52s %12.1f ns each %12.1f ms for %llu %s\n", what, (double)spent_ns / (double)nr, (double)spent_ns / 1e6,
	       (unsigned long long)nr, unit);
	fflush(stdout);
}

/* ---- nodes ---- */

static uint64_t add_keys(struct op_odb *odb, uint64_t nr_samples, uint64_t nr_keys, uint64_t *seed)
{
	struct op_odb_addition additions[BATCH];
	uint64_t begin_ns = bench_cpu_ns(), key = 0;

	for (uint64_t done = 0; done < nr_samples; done += BATCH) {
		for (size_t i = 0; i < BATCH; i++) {
			*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			key = nr_keys ? (*seed >> 33) % nr_keys : key + 1;
			additions[i] = (struct op_odb_addition){ .odb = odb, .key = key * 16, .count = 1 };
		}
		op_odb_add_all(additions, BATCH);
		for (size_t i = 0; i < BATCH; i++)
			if (additions[i].error)
				die("op_odb_add_all", additions[i].error);
	}
	return bench_cpu_ns() - begin_ns;
}

static void bench_nodes(void)
{
	struct op_odb_header header = { .magic = { 'D', 'A', 'E', '\n' }, .version = OP_ODB_VERSION };
	uint64_t seed = 1;
	struct op_odb *odb;
	int err = op_odb_open(pipeline.count.session_fd, "samples/nodes", OP_SESSION_TMP_SAMPLE, &header, &odb);

	if (err)
		die("samples/nodes", err);
	add_keys(odb, 64 * NR_KEYS, NR_KEYS, &seed);
	row("a sample into an existing node", add_keys(odb, NR_COUNTS, NR_KEYS, &seed), NR_COUNTS, "samples");
	op_odb_close(odb);
	err = op_odb_open(pipeline.count.session_fd, "samples/new-nodes", OP_SESSION_TMP_SAMPLE, &header, &odb);
	if (err)
		die("samples/new-nodes", err);
	row("a sample into a new node, growth and all", add_keys(odb, NR_NEW, 0, &seed), NR_NEW, "samples");
	op_odb_close(odb);
}

/* ---- files ---- */

static uint64_t cookie_of(uint64_t number)
{
	char name[64];
	struct op_image_id id = { .name = { .kind = OP_IMAGE_FILE, .name = name }, .inode = number + 1, .mtime_ns = 1 };

	snprintf(name, sizeof(name), "/usr/lib/dir%llu/image%llu", (unsigned long long)number / 100, (unsigned long long)number);
	return op_dcookie_get(pipeline.resolver.table, &id);
}

/* One sample into each of so many images. */
static uint64_t count_in_files(const uint64_t *cookies, uint64_t nr_files, uint64_t offset)
{
	uint64_t begin_ns = bench_cpu_ns();

	for (uint64_t i = 0; i < nr_files; i++) {
		struct opd_resolved resolved = { .location = { .cookie = cookies[i], .offset = offset } };
		struct opd_counted counted = { .resolved = &resolved, .account = &account, .amount = 1, .pid = 1, .tid = 1 };

		opd_count_sample(&pipeline.count, &counted);
	}
	opd_count_flush(&pipeline.count);
	return bench_cpu_ns() - begin_ns;
}

static uint64_t sync_plain_files(uint64_t nr_files)
{
	uint64_t begin_ns = bench_now_ns();
	char path[64], page[2664] = "";

	for (uint64_t i = 0; i < nr_files; i++) {
		int fd;

		snprintf(path, sizeof(path), "plain-%llu", (unsigned long long)i);
		fd = openat(pipeline.count.session_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || write(fd, page, sizeof(page)) != (ssize_t)sizeof(page) || fsync(fd) < 0)
			die(path, -errno);
		close(fd);
	}
	return bench_now_ns() - begin_ns;
}

static void bench_dump(const uint64_t *cookies, uint64_t nr_dirty)
{
	struct opd_background background;
	struct opd_job_queue queue;
	struct opd_dumps dumps;
	struct opd_job job = { .kind = OPD_JOB_DUMP };
	uint64_t begin_ns;
	int err = opd_job_queue_open(&queue);

	if (err)
		die("eventfd", err);
	opd_background_init(&background);
	opd_dumps_init(&dumps, &pipeline, &background, &queue);
	count_in_files(cookies, nr_dirty, 64);
	row("the same number of plain files, written and synced", sync_plain_files(nr_dirty), nr_dirty, "files");
	begin_ns = bench_now_ns();
	err = opd_dump_start(&dumps, &job);
	if (err)
		die("opd_dump_start", err);
	opd_background_wait(&background);
	if (job.error)
		die(job.message, job.error);
	row("--dump, per changed file", bench_now_ns() - begin_ns, nr_dirty, "files");
	opd_dumps_free(&dumps);
	opd_background_free(&background);
	opd_job_queue_close(&queue);
}

static void bench_sum(uint64_t nr_files)
{
	uint64_t begin_ns = bench_now_ns(), sum = 0;
	struct op_odb_samples samples;
	struct op_session_list list;
	int fd = openat(pipeline.count.session_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;

	err = fd < 0 ? -errno : op_session_list(fd, &list, NULL);
	if (err)
		die(OP_SESSION_CURRENT, err);
	for (size_t i = 0; i < list.nr_files; i++) {
		err = op_odb_read(fd, list.files[i].path, &samples, NULL);
		if (err)
			die(list.files[i].path, err);
		for (uint32_t n = 0; n < samples.nr_nodes; n++)
			sum += samples.nodes[n].value;
		op_odb_samples_free(&samples);
	}
	row("opening and adding up a session", bench_now_ns() - begin_ns, list.nr_files, "files");
	if (list.nr_files != nr_files || sum != account.stored)
		die("files or samples are missing", -EBADMSG);
	op_session_list_free(&list);
	close(fd);
}

static void bench_files(uint64_t nr_files, uint64_t nr_dirty)
{
	uint64_t *cookies = calloc(nr_files, sizeof(*cookies));

	if (!cookies)
		die("cookies", -ENOMEM);
	for (uint64_t i = 0; i < nr_files; i++)
		cookies[i] = cookie_of(i);
	row("a sample into a new file", count_in_files(cookies, nr_files, 16), nr_files, "files");
	row("a sample into a file that has to be opened again", count_in_files(cookies, nr_files, 16), nr_files, "files");
	count_in_files(cookies, nr_dirty, 16);
	row("a sample into a new node of a file that is open", count_in_files(cookies, nr_dirty, 32), nr_dirty, "files");
	bench_sum(nr_files);
	opd_count_close_files(&pipeline.count);
	bench_dump(cookies, nr_dirty);
	if (account.stored != 2 * nr_files + 3 * nr_dirty)
		die("samples are missing", -EBADMSG);
	free(cookies);
}

static void set_up(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(directory, sizeof(directory), "%s/opd-bench.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(directory) || opd_resolver_init(&pipeline.resolver, op_dcookie_table_new(), MAX_IMAGES, NULL) < 0)
		die(directory, -errno);
	pipeline.count = (struct opd_count){
		.session_fd = op_session_open(directory),
		.table = pipeline.resolver.table,
		.events = &event,
		.max_open = MAX_OPEN,
	};
	opd_file_sinks_open(&pipeline.count);
	if (pipeline.count.session_fd < 0)
		die(directory, pipeline.count.session_fd);
}

static int tear_down(void)
{
	char command[300];

	opd_count_close_files(&pipeline.count);
	close(pipeline.count.session_fd);
	opd_resolver_free(&pipeline.resolver);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command) ? 1 : 0;
}

int main(int argc, char **argv)
{
	uint64_t nr_files = 20000, nr_dirty = 2000;

	if ((argc > 1 && op_parse_u64(argv[1], 1, 1000000, &nr_files)) ||
	    (argc > 2 && op_parse_u64(argv[2], 1, nr_files, &nr_dirty))) {
		fprintf(stderr, "usage: bench_files [FILES [DIRTY]]\n");
		return 2;
	}
	set_up();
	printf("sample files in %s, at most %u open\n", directory, MAX_OPEN);
	bench_nodes();
	bench_files(nr_files, nr_dirty);
	return tear_down();
}
