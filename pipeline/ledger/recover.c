/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/ledger/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/log.h"
#include "libop/base/sys.h"
#include "libop/base/text.h"
#include "libop/odb/repair.h"
#include "libop/session/close.h"
#include "libop/session/leftovers.h"
#include "libop/session/layout.h"
#include "libop/session/ledger_file.h"
#include "libop/session/list.h"
#include "libop/session/parts.h"
#include "libop/session/stats_files.h"
#include "libop/session/sum.h"
#include "libop/session/walk.h"

bool opd_is_damage(int err)
{
	return err == -EBADMSG || err == -EISDIR || err == -ELOOP;
}

int opd_put_aside(int session_fd, const char *path, const char *fault)
{
	char aside[OP_DAMAGED_NAME_BYTES];
	int err = op_damaged_put_aside(session_fd, path, aside);

	if (!err)
		op_log(OP_LOG_WARNING, "%s %s: moved to %s in the session directory", path, fault, aside);
	return err;
}

struct recovery {
	int session_fd;
	uint64_t nr_files, nr_repaired, dropped_nodes, nr_put_aside;
	uint64_t nr_closed, nr_closed_files; /* sessions, and the files in them */
};

static void log_failure(const char *path, int err)
{
	op_log(OP_LOG_WARNING, "cannot repair %s after an unclean stop: %s", path, strerror(-err));
}

static bool put_aside(struct recovery *recovery, const char *path, const char *fault)
{
	int err = opd_put_aside(recovery->session_fd, path, fault);

	if (err)
		log_failure(path, err);
	recovery->nr_put_aside += !err;
	return !err;
}

static void recover_file(struct recovery *recovery, const char *path)
{
	struct op_odb_pending *pending = NULL;
	uint32_t dropped;
	int err = op_odb_repair(recovery->session_fd, path, OP_SESSION_TMP_SAMPLE, &dropped, &pending);

	recovery->nr_files++;
	if (opd_is_damage(err)) {
		put_aside(recovery, path, OPD_NO_SAMPLE_FILE);
		return;
	}
	if (!err && pending) {
		recovery->nr_repaired++;
		recovery->dropped_nodes += dropped;
		err = op_odb_sync_pending(recovery->session_fd, pending);
		if (err)
			op_odb_free_pending(pending);
	}
	if (err)
		log_failure(path, err);
}

static char *join(const char *directory, const char *path)
{
	struct op_text text = { 0 };

	op_text_printf(&text, "%s/%s", directory, path);
	return op_text_steal(&text);
}

/* Puts a file aside whose name is not that of a sample file. 0: list the directory again. */
static int remove_foreign(struct recovery *recovery, const char *directory, int err, char *bad_path)
{
	char *path = bad_path ? join(directory, bad_path) : NULL;
	bool again = path && err == -EBADMSG && put_aside(recovery, path, OPD_NO_SAMPLE_FILE);

	if (!again)
		log_failure(path ? path : directory, err);
	free(path);
	free(bad_path);
	return again ? 0 : err;
}

static int list_files(struct recovery *recovery, const char *directory, struct op_session_list *ret_list)
{
	int fd = op_sys_openat(recovery->session_fd, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	char *bad_path;
	int err, list_err;

	if (fd < 0)
		return fd;
	do {
		bad_path = NULL;
		list_err = op_session_list(fd, ret_list, &bad_path);
		err = list_err ? remove_foreign(recovery, directory, list_err, bad_path) : 0;
	} while (list_err && !err);
	close(fd);
	return err;
}

static void recover_directory(struct recovery *recovery, const char *directory)
{
	struct op_session_list list;

	if (list_files(recovery, directory, &list))
		return;
	for (size_t i = 0; i < list.nr_files; i++) {
		char *path = list.files[i].is_packed ? NULL : join(directory, list.files[i].path);

		if (path)
			recover_file(recovery, path);
		free(path);
	}
	op_session_list_free(&list);
}

/* A new object may be damaged after a power cut, and readers would report it. */
static int recover_object(const char *path, unsigned char type OP_UNUSED, void *arg)
{
	struct recovery *recovery = arg;
	int err = 0;

	if (!op_session_is_jit_object(path))
		return 0;
	err = op_jit_object_check(recovery->session_fd, path);
	if (opd_is_damage(err))
		put_aside(recovery, path, "is an incomplete file of symbols of JIT code");
	else if (err)
		log_failure(path, err);
	return 0;
}

static void recover_part(struct recovery *recovery, const char *session, const struct op_session_part *part)
{
	char *path = join(session, part->name), *tmp_path = join(OP_SESSION_TMP, part->name);
	uint64_t nr_dropped = 0;
	int err = path && tmp_path ? part->recover(recovery->session_fd, path, tmp_path, &nr_dropped) : -ENOMEM;
	struct op_text fault = { 0 };

	recovery->dropped_nodes += nr_dropped;
	op_text_printf(&fault, "is not a %s", part->noun);
	if (opd_is_damage(err))
		put_aside(recovery, path, op_text_get(&fault));
	else if (err && err != -ENOENT)
		log_failure(session, err);
	op_text_free(&fault);
	free(path);
	free(tmp_path);
}

static void recover_session(struct recovery *recovery, const char *session)
{
	int fd = op_sys_openat(recovery->session_fd, session, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	struct op_session_cgroups list = { 0 };
	int err;

	if (fd < 0)
		return;
	recover_directory(recovery, session);
	for (const struct op_session_part *part = op_session_parts; part->name; part++)
		if (part->recover)
			recover_part(recovery, session, part);
	if (op_session_list_cgroups(fd, &list) < 0)
		list = (struct op_session_cgroups){ 0 };
	close(fd);
	for (size_t i = 0; i < list.nr_cgroups; i++) {
		char *directory = join(session, list.cgroups[i].directory);

		if (directory)
			recover_directory(recovery, directory);
		free(directory);
	}
	op_session_cgroups_free(&list);
	err = op_session_walk(recovery->session_fd, session, recover_object, recovery);
	if (err)
		log_failure(session, err);
}

/* ---- sessions that were closed ---- */

static int follow_files(struct op_session_ledger *ledger, int dir_fd)
{
	int err = op_session_ledger_recount(ledger, dir_fd);

	if (!err)
		err = op_session_ledger_publish(ledger, dir_fd);
	return err ? err : op_stats_raise(dir_fd, ledger);
}

int opd_correct_ledger(int dir_fd)
{
	struct op_session_ledger ledger = { 0 };
	int err = op_session_ledger_read(dir_fd, &ledger, NULL);
	uint64_t before = op_session_ledger_lost(&ledger, OP_LOSS_io_error);

	if (err)
		return err == -ENOENT || err == -EBADMSG ? 0 : err;
	err = follow_files(&ledger, dir_fd);
	if (!err && op_session_ledger_lost(&ledger, OP_LOSS_io_error) > before)
		op_log(OP_LOG_WARNING, "%llu samples of a closed session are lost: some of its files were removed",
			(unsigned long long)(op_session_ledger_lost(&ledger, OP_LOSS_io_error) - before));
	op_session_ledger_free(&ledger);
	return err;
}

/* Makes a new ledger when there is none or it is damaged. */
static int correct_ledger(int session_fd, const char *session, int dir_fd)
{
	const char *name = strrchr(session, '/') + 1;
	struct op_session_ledger ledger = { 0 };
	char aside[OP_DAMAGED_NAME_BYTES], *path;
	int err = op_session_ledger_read(dir_fd, &ledger, NULL);

	if (err == -ENOENT || err == -EBADMSG) {
		ledger.ended = op_session_is_time_name(name) ? OP_SESSION_rotated : OP_SESSION_saved;
		op_session_ledger_guess_times(&ledger, dir_fd);
		path = join(session, OP_SESSION_LEDGER);
		err = err == -ENOENT ? 0 : path ? op_damaged_put_aside(session_fd, path, aside) : -ENOMEM;
		free(path);
	}
	if (!err)
		err = follow_files(&ledger, dir_fd);
	op_session_ledger_free(&ledger);
	return err;
}

static int write_closed(struct recovery *recovery, const char *session, int fd)
{
	int err = correct_ledger(recovery->session_fd, session, fd);

	if (err)
		return err;
	err = op_sys_syncfs(fd); /* op_session_compact drops errors */
	if (err)
		return err;
	op_session_compact(fd);
	return op_sys_syncfs(fd);
}

/*
 * Recovers a session that was closed and not completely written to the disk (OP_SESSION_CLOSING).
 */
static void recover_closed(struct recovery *recovery, const char *session)
{
	int fd = op_sys_openat(recovery->session_fd, session, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0), err;

	if (fd < 0)
		return;
	if (!faccessat(fd, OP_SESSION_CLOSING, F_OK, AT_SYMLINK_NOFOLLOW)) {
		recover_session(recovery, session);
		err = write_closed(recovery, session, fd);
		if (err)
			log_failure(session, err);
		else
			op_session_mark_whole(fd);
		recovery->nr_closed++;
	}
	close(fd);
}

/* Removes an empty session: a daemon was killed while it closed one. */
static int visit_session(const char *name, void *arg)
{
	struct recovery *recovery = arg;
	char *path = join("samples", name);

	if (!path)
		return -ENOMEM;
	if (strcmp(path, OP_SESSION_CURRENT) != 0 && op_sys_unlinkat(recovery->session_fd, path, AT_REMOVEDIR))
		recover_closed(recovery, path);
	free(path);
	return 0;
}

/* Removes a temporary table of images of a closed session. */
static int remove_cookies(const char *name, void *arg)
{
	static const char prefix[] = OP_SESSION_CLOSED_COOKIES;
	struct op_text path = { 0 };

	op_text_printf(&path, OP_SESSION_TMP "/%s", name);
	if (!path.failed && !strncmp(op_text_get(&path), prefix, strlen(prefix)))
		op_file_unlink_below(*(int *)arg, op_text_get(&path));
	op_text_free(&path);
	return 0;
}

/* A session without a ledger may be one of oprofile 0.9, whose files are converted. */
static bool has_no_ledger(int session_fd)
{
	return faccessat(session_fd, OP_SESSION_CURRENT "/" OP_SESSION_LEDGER, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

static void log_summary(const struct recovery *recovery, bool was_unclean, uint64_t nr_put_back)
{
	const char *why = was_unclean           ? "the last opd did not shut down cleanly"
			  : recovery->nr_closed ? "a closed session was not on the disk"
						: OP_SESSION_CURRENT " has no ledger";

	if (!was_unclean && !recovery->nr_closed && !recovery->nr_files)
		return;
	op_log(OP_LOG_NOTICE,
		"%s: %llu sample files checked, %llu of them in closed sessions, %llu repaired, %llu torn nodes dropped, "
		"%llu put aside, %llu replaced by an older version",
		why, (unsigned long long)recovery->nr_files, (unsigned long long)recovery->nr_closed_files,
		(unsigned long long)recovery->nr_repaired, (unsigned long long)recovery->dropped_nodes,
		(unsigned long long)recovery->nr_put_aside, (unsigned long long)nr_put_back);
}

void opd_recover(int session_fd, bool was_unclean)
{
	struct recovery recovery = { .session_fd = session_fd };
	uint64_t nr_put_back = 0, nr_imports;
	int err = op_session_recover_pending(session_fd, &nr_put_back);

	if (err)
		log_failure(OP_SESSION_TMP, err);
	nr_imports = op_session_import_sweep(session_fd);
	if (nr_imports)
		op_log(OP_LOG_NOTICE, "removed from " OP_SESSION_TMP "/ the files of %llu interrupted runs of opimport",
		       (unsigned long long)nr_imports);
	op_file_unlink_below(session_fd, OP_SESSION_TMP "/stats");
	err = op_session_visit_dir(session_fd, OP_SESSION_TMP, remove_cookies, &session_fd);
	if (err)
		log_failure(OP_SESSION_TMP, err);
	err = op_session_visit_dir(session_fd, "samples", visit_session, &recovery);
	if (err)
		log_failure("samples", err);
	recovery.nr_closed_files = recovery.nr_files;
	if (was_unclean || has_no_ledger(session_fd))
		recover_session(&recovery, OP_SESSION_CURRENT);
	op_file_unlink_below(session_fd, OP_SESSION_CURRENT "/" OP_SESSION_CLOSING);
	log_summary(&recovery, was_unclean, nr_put_back);
}
