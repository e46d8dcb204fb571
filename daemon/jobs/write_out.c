/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jobs/write_out.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"
#include "libop/odb/format.h"
#include "libop/odb/replace.h"
#include "libop/session/close.h"
#include "libop/session/dcookie.h"
#include "libop/session/layout.h"
#include "libop/session/ledger_file.h"
#include "libop/session/list.h"
#include "libop/session/pack.h"
#include "libop/session/parts.h"
#include "pipeline/ledger/recover.h"
#include "pipeline/ledger/stats_dir.h"

#define CLOSED_COOKIES_BYTES (sizeof(OP_SESSION_CLOSED_COOKIES "-") + 20)

/*
 * Up to this many files are written one by one, each with a flush of the disk. More are written
 * with one syncfs: that also writes the data of other programs, but flushes once.
 */
#define TOGETHER_PATHS 64
#define PIECE_BYTES    65536

static int sync_path(int current_fd, const char *path, int flags)
{
	int fd = current_fd < 0 ? current_fd : op_file_open_below(current_fd, path, flags, 0);
	int err;

	if (fd < 0)
		return fd;
	err = op_sys_fsync(fd);
	close(fd);
	return err;
}

/* Whether the file is as long as its kind may be. Only sample files have lengths of their own. */
static bool has_good_length(const char *path, const struct stat *st)
{
	const struct op_session_part *part = op_session_part_of(path);

	return op_session_is_jit_object(path) || (part && part->kind == OP_PART_FILE) || op_odb_is_length((uint64_t)st->st_size);
}

/* -ENOENT also when the file was cut short or something else is in its place. */
static int open_sample_file(int current_fd, const char *path)
{
	struct stat st;
	int fd = current_fd < 0 ? current_fd : op_file_open_below(current_fd, path, O_RDONLY, 0);
	int err;

	if (fd < 0)
		return fd == -ELOOP || fd == -ENOTDIR ? -ENOENT : fd;
	err = op_sys_fstat(fd, &st);
	if (!err && (!S_ISREG(st.st_mode) || !has_good_length(path, &st)))
		err = -ENOENT;
	if (err)
		close(fd);
	return err ? err : fd;
}

static int sync_sample_file(int current_fd, const char *path)
{
	int fd = open_sample_file(current_fd, path), err;

	if (fd < 0)
		return fd;
	err = op_sys_fsync(fd);
	close(fd);
	return err;
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Cuts off the last component; false when there is none left. */
static bool parent_of(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash)
		return false;
	*slash = '\0';
	return true;
}

/* Paths are sorted: the directories that two neighbours share are written with the first one. */
static int sync_directories(int current_fd, const char *path, const char *previous)
{
	char *directory = strdup(path);
	int err = directory ? 0 : -ENOMEM;

	while (!err && parent_of(directory)) {
		size_t length = strlen(directory);

		if (!strncmp(directory, previous, length) && previous[length] == '/')
			break;
		err = sync_path(current_fd, directory, O_RDONLY | O_DIRECTORY);
	}
	free(directory);
	return err;
}

static const char *below_current(const char *path)
{
	return path + strlen(OP_SESSION_CURRENT "/");
}

struct failure {
	int err; /* the first one */
	const char *path;
	bool closing, missing;
};

/*
 * A later dump that closes the session may pack the file meanwhile: the pack is on the disk then. A
 * missing file of a closed session does not come back: the ledger is corrected instead.
 */
static void note_failure(struct failure *failure, int current_fd, int err, const char *path)
{
	if (err == -ENOENT && op_session_has_packed(current_fd, below_current(path)))
		return;
	if (err == -ENOENT && failure->closing)
		failure->missing = true;
	else if (err && !failure->err)
		*failure = (struct failure){ .err = err, .path = path, .closing = failure->closing, .missing = failure->missing };
}

/* Goes on after a failure. */
static void write_each(const struct opd_write_out *out, struct failure *failure)
{
	const char *previous = "";

	for (size_t i = 0; i < out->nr_paths; i++) {
		const char *path = below_current(out->paths[i]);
		int err = sync_sample_file(out->current_fd, path);

		if (!err)
			err = sync_directories(out->current_fd, path, previous);
		if (!err)
			previous = path;
		note_failure(failure, out->current_fd, err, out->paths[i]);
	}
}

/* Writes the whole file system. A file that is gone is not in it. */
static void write_together(const struct opd_write_out *out, struct failure *failure)
{
	for (size_t i = 0; i < out->nr_paths; i++) {
		int fd = open_sample_file(out->current_fd, below_current(out->paths[i]));

		if (fd >= 0)
			close(fd);
		else
			note_failure(failure, out->current_fd, fd, out->paths[i]);
	}
	note_failure(failure, out->current_fd, op_sys_syncfs(out->session_fd), OP_SESSION_CURRENT "/");
}

static int write_paths(struct opd_write_out *out, const char **ret_failed)
{
	struct failure failure = { .closing = out->closing };

	qsort(out->paths, out->nr_paths, sizeof(*out->paths), compare_strings);
	if (out->nr_paths > TOGETHER_PATHS)
		write_together(out, &failure);
	else
		write_each(out, &failure);
	out->missing |= failure.missing;
	if (failure.err)
		*ret_failed = failure.path;
	return failure.err;
}

/* What lies beside the sample files, and the directories above them. */
static int write_rest(struct opd_write_out *out, const char **ret_failed)
{
	int err = 0;

	for (const struct op_session_part *part = op_session_parts; part->name && out->current_fd >= 0; part++) {
		if (!part->is_dumped)
			continue;
		snprintf(out->part_path, sizeof(out->part_path), OP_SESSION_CURRENT "/%s", part->name);
		*ret_failed = out->part_path;
		err = sync_path(out->current_fd, part->name, O_RDONLY | O_NONBLOCK);
		if (err && err != -ENOENT)
			return err;
	}
	if (out->current_fd >= 0) {
		*ret_failed = OP_SESSION_CURRENT "/stats";
		err = opd_stats_dir_sync(out->current_fd);
		if (err && err != -ENOENT)
			return err;
		*ret_failed = OP_SESSION_CURRENT;
		err = op_sys_fsync(out->current_fd);
		if (err)
			return err;
	}
	*ret_failed = "the session directory";
	return op_session_sync_dirs(out->session_fd);
}

/* The table of a closed session with its last times. The rows are in the file already. */
static int write_closed_cookies(const struct opd_write_out *out)
{
	const struct op_text *text = &out->closed_cookies;
	char path[CLOSED_COOKIES_BYTES];
	const char *name;
	int tmp_fd, fd, err;

	if (text->failed)
		return -ENOMEM;
	if (!text->length || out->current_fd < 0)
		return 0;
	snprintf(path, sizeof(path), OP_SESSION_CLOSED_COOKIES "-%llu", (unsigned long long)out->number);
	tmp_fd = op_file_open_parent(out->session_fd, path, true, &name);
	if (tmp_fd < 0)
		return tmp_fd;
	fd = op_file_open_below(tmp_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	err = fd < 0 ? fd : op_sys_write_all(fd, text->data, text->length);
	if (!err)
		err = op_sys_fsync(fd);
	if (fd >= 0)
		close(fd);
	if (!err)
		err = op_sys_renameat(tmp_fd, name, out->current_fd, OP_DCOOKIE_FILE);
	if (err)
		op_sys_unlinkat(tmp_fd, name, 0);
	close(tmp_fd);
	return err;
}

/* Files that were replaced. A file that cannot be written stays in the list. */
static int write_replaced(struct opd_write_out *out)
{
	struct op_odb_pending **link = &out->pending;
	int first_err = 0;

	while (*link) {
		struct op_odb_pending *pending = *link, *next = pending->next;
		int err = out->current_fd < 0 ? out->current_fd : op_odb_open_pending(pending, out->current_fd, OP_SESSION_CURRENT);

		if (!err)
			err = op_odb_sync_pending(out->session_fd, pending);
		if (!first_err)
			first_err = err;
		if (err)
			link = &pending->next;
		else
			*link = next;
	}
	return first_err;
}

static int write_cookies(struct opd_write_out *out)
{
	if (out->closing)
		return write_closed_cookies(out);
	return out->cookie_file ? opd_cookie_file_publish(out->cookie_file, out->cookies) : 0;
}

struct opd_write_out *opd_write_out_new(int session_fd, bool closing)
{
	struct opd_write_out *out = calloc(1, sizeof(*out));

	if (!out)
		return NULL;
	out->session_fd = session_fd;
	out->closing = closing;
	out->current_fd = op_sys_openat(session_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	return out;
}

void opd_write_out_free(struct opd_write_out *out)
{
	for (size_t i = 0; i < out->nr_paths; i++)
		free(out->paths[i]);
	free(out->paths);
	op_text_free(&out->closed_cookies);
	op_odb_free_pending(out->pending);
	if (out->current_fd >= 0)
		close(out->current_fd);
	free(out);
}

/*
 * After such an error the kernel marks the pages as clean, may drop them, and does not report the
 * error again (fsync(2)). The data can only be written again to other files.
 */
static bool may_have_dropped(int err)
{
	return err == -EIO || err == -ENOSPC || err == -EDQUOT;
}

/* The ledger, the other files, and the directory. */
static int write_session(struct opd_write_out *out, const char **ret_failed)
{
	int err;

	if (out->missing && out->current_fd >= 0) {
		*ret_failed = OP_SESSION_LEDGER;
		err = opd_correct_ledger(out->current_fd);
		if (err)
			return err;
	}
	err = write_rest(out, ret_failed);
	if (err)
		return err;
	if (out->closing && out->current_fd >= 0)
		op_session_compact(out->current_fd);
	if (!out->whole && !out->closing)
		return 0;
	/* Another dump or the syncer may have unfinished files of a closed session. */
	*ret_failed = "the session";
	return op_sys_syncfs(out->session_fd);
}

/* Writes all but the sample files. After their error `err`, only what does not need them. */
static int end(struct opd_write_out *out, int err, const char **ret_failed)
{
	int replaced_err = write_replaced(out), table_err = write_cookies(out);

	out->dropped = may_have_dropped(err ? err : replaced_err);
	if (err)
		return err;
	if (replaced_err) {
		*ret_failed = "a sample file that has grown";
		return replaced_err;
	}
	if (table_err) {
		*ret_failed = OP_SESSION_CURRENT "/" OP_DCOOKIE_FILE;
		return table_err;
	}
	err = write_session(out, ret_failed);
	out->dropped |= may_have_dropped(err);
	if (!err && out->closing && out->current_fd >= 0)
		op_session_mark_whole(out->current_fd);
	return err;
}

/* ---- a closed session after a failure ---- */

/* Nobody counts in a closed session, so the file has not changed since it was read. */
static int rewrite(int fd)
{
	char piece[PIECE_BYTES];
	off_t at = 0;
	ssize_t nr;

	while ((nr = op_sys_pread(fd, piece, sizeof(piece), at)) > 0) {
		int err = op_sys_pwrite_all(fd, piece, (size_t)nr, at);

		if (err)
			return err;
		at += nr;
	}
	return nr < 0 ? (int)nr : op_sys_fsync(fd);
}

static int write_entry_anew(const char *path, unsigned char type, void *arg)
{
	const struct opd_write_out *out = arg;
	int fd, err;

	if (type != DT_REG)
		return 0;
	fd = op_sys_openat(out->current_fd, path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd; /* it was removed */
	err = rewrite(fd);
	close(fd);
	return err;
}

/* Writing again also covers the files that the syncer could not write. */
static int write_anew(struct opd_write_out *out, const char **ret_failed)
{
	if (out->current_fd < 0)
		return out->current_fd;
	*ret_failed = "the files";
	out->missing = true; /* the walk does not see a missing file */
	if (out->syncer)
		op_odb_append_pending(&out->pending, opd_syncer_take_failed(out->syncer, out->syncer_session));
	return op_session_walk(out->current_fd, ".", write_entry_anew, out);
}

int opd_write_out_write_again(struct opd_write_out *out, const char **ret_failed)
{
	return end(out, write_anew(out, ret_failed), ret_failed);
}

int opd_write_out_write(struct opd_write_out *out, const char **ret_failed)
{
	if (out->closing && out->syncer && opd_syncer_has_failed(out->syncer))
		return opd_write_out_write_again(out, ret_failed);
	return end(out, write_paths(out, ret_failed), ret_failed);
}
