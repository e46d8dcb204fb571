/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/oparchive/check.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/session/walk.h"
#include "libop/base/sys.h"
#include "tools/common/archive.h"
#include "tools/oparchive/copy.h"
#include "tools/common/log.h"

struct checking {
	const char *dir; /* as the user named it */
	int dir_fd;
	struct opr_sums sums;
	bool is_wrong;
};

/* ---- files with a checksum ---- */

static int sum_file(int fd, struct opr_copy *copy)
{
	struct stat st;
	int err = op_sys_fstat(fd, &st);

	if (!err)
		err = S_ISREG(st.st_mode) ? opr_copy_begin(copy, fd, &st, NULL) : -EBADMSG;
	/* A copy has no holes that need a cut. */
	return err ? err : copy->end < UINT64_MAX ? -EFBIG : opr_copy_run(copy, -1);
}

static int check_sum(const struct checking *checking, const struct opr_sum *sum)
{
	struct opr_copy copy;
	int fd = op_file_open_below(checking->dir_fd, sum->name, O_RDONLY | O_NONBLOCK, 0);
	int err = fd < 0 ? fd : sum_file(fd, &copy);

	if (fd >= 0)
		close(fd);
	if (err)
		return opr_error(-EBADMSG, "%s/%s: %s", checking->dir, sum->name, strerror(-err));
	return strncmp(copy.digits, sum->digits, OPR_SUM_DIGITS)
		       ? opr_error(-EBADMSG, "%s/%s: its checksum is wrong", checking->dir, sum->name)
		       : 0;
}

static void check_sums(struct checking *checking)
{
	if (!checking->sums.has_end)
		checking->is_wrong = opr_error(true, "%s/" OPR_ARCHIVE_SUMS " is cut short", checking->dir);
	if (checking->sums.nr_damaged)
		checking->is_wrong = opr_error(true, "%s/" OPR_ARCHIVE_SUMS ": a line is damaged", checking->dir);
	for (size_t i = 0; i < checking->sums.nr_sums; i++)
		checking->is_wrong |= check_sum(checking, &checking->sums.sums[i]) != 0;
}

/* ---- files without one ---- */

static int check_entry(const char *path, unsigned char type OP_UNUSED, void *arg)
{
	struct checking *checking = arg;

	if (!opr_sums_find(&checking->sums, path))
		checking->is_wrong = opr_error(true, "%s/%s: it has no checksum", checking->dir, path);
	return 0;
}

static void report_dir(const char *path, int why, void *arg)
{
	struct checking *checking = arg;

	checking->is_wrong = opr_error(true, "%s/%s: %s", checking->dir, path, strerror(-why));
}

/* Only in the sessions: a report reads all that is there. */
static void check_sessions(struct checking *checking)
{
	const struct op_session_bad_paths bad_paths = { report_dir, checking };
	int err = op_session_walk_skip_bad(checking->dir_fd, OPR_ARCHIVE_SAMPLES, check_entry, checking, &bad_paths);

	if (err)
		checking->is_wrong = opr_error(true, "%s/" OPR_ARCHIVE_SAMPLES ": %s", checking->dir, strerror(-err));
}

/* ---- files that the archive notes as left out ---- */

static void check_facts(struct checking *checking)
{
	struct opr_archive archive = { 0 };

	if (opr_archive_open(&archive, checking->dir))
		checking->is_wrong = true;
	for (size_t i = 0; i < archive.left_out.nr_words; i++)
		checking->is_wrong = opr_error(true, "%s: %s could not be read when the archive was made", checking->dir,
					       archive.left_out.words[i]);
	for (size_t i = 0; i < archive.cut.nr_words; i++)
		checking->is_wrong = opr_error(true, "%s: %.*s was cut off when the archive was made: it had too many holes",
					       checking->dir, (int)strcspn(archive.cut.words[i], "\t"), archive.cut.words[i]);
	for (size_t i = 0; i < archive.other.nr_words; i++)
		checking->is_wrong = opr_error(
			true, "%s: %s of a later session was left out, because an earlier session has another file there",
			checking->dir, archive.other.words[i]);
	opr_archive_free(&archive);
}

int opr_archive_check(const char *dir)
{
	struct checking checking = { .dir = dir, .dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	int err = checking.dir_fd < 0 ? -errno : opr_sums_read(&checking.sums, checking.dir_fd);

	if (err)
		opr_error(err, "%s/" OPR_ARCHIVE_SUMS ": %s", dir, strerror(-err));
	else
		check_sums(&checking);
	if (!err)
		check_sessions(&checking);
	if (checking.dir_fd >= 0)
		check_facts(&checking);
	opr_sums_free(&checking.sums);
	if (checking.dir_fd >= 0)
		close(checking.dir_fd);
	return err ? err : checking.is_wrong ? -EBADMSG : 0;
}
