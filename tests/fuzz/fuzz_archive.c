/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fuzz target for the description of an archive. Input: length of the facts (2 bytes), opd-archive,
 * SHA256SUMS, of an archive with the files `a/prog` and `b`. Paths of the sessions are translated
 * to the other host and back. A check reports each fault. A second session is added to a valid
 * archive; every line and checksum of it stays.
 */
#include "tests/fuzz/fuzz_dir.h"

#include <fcntl.h>
#include <unistd.h>

#include "tests/fuzz/fuzz_log.h"
#include "tools/common/archive.h"
#include "tools/oparchive/check.h"
#include "tools/oparchive/earlier.h"

#define SESSION "/samples/current/{root}/a/prog/{dep}/{root}/a/prog/TIMER.0.0.all.all.all"

static void check_paths(const struct opr_archive *archive)
{
	char *kept = NULL, *home, *again;

	fuzz_check(asprintf(&kept, "%s" SESSION, archive->sessions_dir) >= 0);
	home = opr_archive_to_home(archive, kept);
	again = home ? opr_archive_from_home(archive, home) : NULL;
	fuzz_check(home && again && !strcmp(again, kept));
	fuzz_check(!strcmp(opr_archive_strip(archive, kept), "/" OPR_ARCHIVE_SESSIONS SESSION));
	free(again);
	free(home);
	free(kept);
}

static void check_facts(const struct opr_archive *archive)
{
	const struct opr_words *const lists[] = { &archive->packages, &archive->debug, &archive->absent, &archive->cut };

	for (size_t i = 0; i < op_array_size(lists); i++) {
		const char *fact = opr_archive_fact(lists[i], "/a/prog");

		fuzz_check(!fact || strlen(fact) < SIZE_MAX / 2);
	}
	opr_archive_is_whole(archive, "/samples/current");
	opr_archive_inode_of(archive, archive->sessions_dir);
	for (size_t i = 0; i < archive->nr_inodes; i++)
		fuzz_check(archive->inodes[i].path);
}

static size_t count_lines(const char *text)
{
	size_t nr_lines = 0;

	for (; (text = strchr(text, '\n')); text++)
		nr_lines++;
	return nr_lines;
}

static void check_earlier(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	struct opr_earlier earlier;
	struct op_text sums = { 0 };

	fuzz_check(fd >= 0);
	fuzz_nr_errors = 0;
	err = opr_earlier_read(&earlier, fd, path);
	fuzz_check(err ? fuzz_nr_errors > 0 : earlier.is_there);
	if (!err) {
		fuzz_check(opr_earlier_has(&earlier, OPR_ARCHIVE_FACTS));
		opr_earlier_write_sums(&earlier, &sums);
		fuzz_check(count_lines(op_text_get(&sums)) < earlier.sums.nr_sums);
		for (size_t i = 0; i < earlier.facts.left_out.nr_words; i++)
			fuzz_check(opr_earlier_has_line(&earlier, "left-out", earlier.facts.left_out.words[i]));
		for (size_t i = 0; i < earlier.facts.nr_inodes; i++)
			opr_earlier_inode(&earlier, earlier.facts.inodes[i].path);
		opr_earlier_has_line(&earlier, "absent", "/a/prog");
		opr_earlier_has_session(&earlier, "current");
	}
	op_text_free(&sums);
	opr_earlier_free(&earlier);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	struct opr_archive archive = { 0 };
	struct fuzz_part parts[2];
	char path[FUZZ_PATH_BYTES];
	int err;

	if (!fuzz_split(bytes, nr_bytes, parts))
		return 0;
	fuzz_dir_path(path, "");
	fuzz_check(fuzz_dir_write("a/prog", "hello\n", 6) && fuzz_dir_write("b", "", 0));
	fuzz_check(fuzz_dir_write(OPR_ARCHIVE_FACTS, parts[0].bytes, parts[0].nr_bytes));
	fuzz_check(fuzz_dir_write(OPR_ARCHIVE_SUMS, parts[1].bytes, parts[1].nr_bytes));
	fuzz_check(!opr_archive_open(&archive, path));
	check_paths(&archive);
	check_facts(&archive);
	opr_archive_free(&archive);
	fuzz_nr_errors = 0;
	err = opr_archive_check(path);
	fuzz_check(err ? fuzz_nr_errors > 0 : !fuzz_nr_errors);
	check_earlier(path);
	return 0;
}
