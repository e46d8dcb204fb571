/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/log.h"
#include "libop/damaged.h"
#include "libop/odb.h"
#include "libop/session.h"
#include "libop/sys.h"
#include "libop/text.h"

bool opd_is_damage(int err)
{
	return err == -EBADMSG || err == -EISDIR || err == -ELOOP;
}

int opd_put_sample_file_aside(int session_fd, const char *path)
{
	char aside[OP_DAMAGED_NAME_BYTES];
	int err = op_damaged_put_aside(session_fd, path, aside);

	if (!err)
		opd_log(SD_WARNING, "%s is not a sample file: kept as %s in the session directory, counting goes on in a new one",
			path, aside);
	return err;
}

struct recovery {
	int session_fd;
	uint64_t nr_files, nr_repaired, dropped_nodes, nr_put_aside;
};

static void fail(const char *path, int err)
{
	opd_log(SD_WARNING, "cannot repair %s after an unclean stop: %s", path, strerror(-err));
}

static bool put_aside(struct recovery *recovery, const char *path)
{
	int err = opd_put_sample_file_aside(recovery->session_fd, path);

	if (err)
		fail(path, err);
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
		put_aside(recovery, path);
		return;
	}
	if (!err && pending) {
		recovery->nr_repaired++;
		recovery->dropped_nodes += dropped;
		err = op_odb_settle(recovery->session_fd, pending);
	}
	if (err)
		fail(path, err);
}

static char *join(const char *directory, const char *path)
{
	struct op_text text = { 0 };

	op_text_printf(&text, "%s/%s", directory, path);
	return op_text_steal(&text);
}

/* What has a name that no sample file has makes room; 0 when the list can be asked for again. */
static int remove_foreign(struct recovery *recovery, const char *directory, int err, char *bad_path)
{
	char *path = bad_path ? join(directory, bad_path) : NULL;
	bool again = path && err == -EBADMSG && put_aside(recovery, path);

	if (!again)
		fail(path ? path : directory, err);
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
		char *path = join(directory, list.files[i].path);

		if (path)
			recover_file(recovery, path);
		free(path);
	}
	op_session_list_free(&list);
}

static void recover_cgroups(struct recovery *recovery)
{
	int fd = op_sys_openat(recovery->session_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	struct op_session_cgroups list = { 0 };

	if (fd < 0)
		return;
	if (op_session_list_cgroups(fd, &list) < 0)
		list = (struct op_session_cgroups){ 0 };
	close(fd);
	for (size_t i = 0; i < list.nr_cgroups; i++) {
		char *directory = join(OP_SESSION_CURRENT, list.cgroups[i].directory);

		if (directory)
			recover_directory(recovery, directory);
		free(directory);
	}
	op_session_cgroups_free(&list);
}

void opd_recover(int session_fd, bool was_unclean)
{
	struct recovery recovery = { .session_fd = session_fd };
	struct op_odb_recovery pending = { 0 };
	int err = op_odb_recover(session_fd, OP_SESSION_TMP_SAMPLE, &pending);

	if (err)
		fail(OP_SESSION_TMP, err);
	op_sys_unlinkat(session_fd, OP_SESSION_TMP "/stats", 0);
	if (!was_unclean)
		return;
	recover_directory(&recovery, OP_SESSION_CURRENT);
	recover_cgroups(&recovery);
	opd_log(SD_NOTICE,
		"the last opd did not end in order: %llu sample files looked at, %llu repaired, %llu torn nodes dropped, %llu put "
		"aside, "
		"%llu replaced by what the disk had",
		(unsigned long long)recovery.nr_files, (unsigned long long)recovery.nr_repaired,
		(unsigned long long)recovery.dropped_nodes, (unsigned long long)recovery.nr_put_aside,
		(unsigned long long)pending.nr_put_back);
}
