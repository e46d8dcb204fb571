/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/ledger/cookie_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/session/leftovers.h"
#include "libop/base/log.h"
#include "libop/base/file.h"
#include "libop/session/layout.h"
#include "libop/base/sys.h"

#define PATH	   OP_SESSION_CURRENT "/" OP_DCOOKIE_FILE
#define TMP_PATH   OP_SESSION_TMP "/" OP_DCOOKIE_FILE
#define FILE_MODE  0644
#define RETRY_NS   1000000000u
#define RESERVED   1024u /* numbers that one such line reserves */

static void note_error(struct opd_cookie_file *file, int err)
{
	pthread_mutex_lock(&file->lock);
	file->nr_errors++;
	file->last_error = err;
	pthread_mutex_unlock(&file->lock);
}

uint64_t opd_cookie_file_errors(struct opd_cookie_file *file, int *ret_error)
{
	uint64_t nr_errors;

	pthread_mutex_lock(&file->lock);
	nr_errors = file->nr_errors;
	*ret_error = file->last_error;
	pthread_mutex_unlock(&file->lock);
	return nr_errors;
}

/* ---- reading ---- */

static void tell(const struct op_dcookie_reading *reading)
{
	if (reading->nr_bad)
		op_log(OP_LOG_WARNING, "%s (%llu lines are skipped)", reading->complaint,
		       (unsigned long long)reading->nr_bad);
	if (reading->is_torn)
		op_log(OP_LOG_NOTICE, PATH ": the last line is incomplete after an unclean stop");
}

/* A damaged table, or one of a later opd, is put aside. */
static int put_aside(struct opd_cookie_file *file, const struct op_dcookie_reading *reading, int err)
{
	char aside[OP_DAMAGED_NAME_BYTES];
	int aside_err = op_damaged_put_aside(file->session_fd, PATH, aside);

	note_error(file, err);
	if (aside_err)
		op_log(OP_LOG_WARNING, PATH ": %s: %s", reading->complaint ? reading->complaint : strerror(-err),
		       strerror(-aside_err));
	else
		op_log(OP_LOG_WARNING, "%s: moved to %s in the session directory; opd begins a new table",
			reading->complaint ? reading->complaint : PATH, aside);
	return 0;
}

int opd_cookie_file_open(struct opd_cookie_file *file, int session_fd, struct op_dcookie_table *table)
{
	struct op_dcookie_reading reading;
	int err;

	*file = (struct opd_cookie_file){ .session_fd = session_fd, .table = table };
	pthread_mutex_init(&file->lock, NULL);
	err = op_dcookie_table_read(table, session_fd, PATH, &reading);
	if (!err) {
		tell(&reading);
		file->nr_bytes = reading.nr_bytes;
		file->nr_damaged_lines = reading.nr_bad + reading.is_torn;
		file->reserved = op_dcookie_next(table);
	} else if (err != -ENOMEM && err != -ENOENT) {
		err = put_aside(file, &reading, err);
	}
	free(reading.complaint);
	if (err == -ENOMEM)
		pthread_mutex_destroy(&file->lock);
	return err == -ENOENT ? 0 : err;
}

void opd_cookie_file_close(struct opd_cookie_file *file)
{
	op_text_free(&file->since);
	pthread_mutex_destroy(&file->lock);
}

/* ---- appending ---- */

static int open_current(int session_fd, int flags)
{
	return op_file_open_below(session_fd, PATH, flags, FILE_MODE);
}

/*
 * Reserves the numbers that are given until the next such line. The line comes before the rows, so
 * the number of a torn row is not given again.
 */
static void reserve(struct opd_cookie_file *file, struct op_text *text)
{
	if (op_dcookie_next(file->table) <= file->reserved)
		return;
	file->reserved = op_dcookie_next(file->table) + RESERVED;
	op_dcookie_format_next(file->reserved, text);
}

static void format_unwritten(struct opd_cookie_file *file, bool is_new, struct op_text *text)
{
	if (is_new) {
		op_dcookie_format_head(text);
		file->reserved = 0;
	}
	reserve(file, text);
	op_dcookie_format_unwritten(file->table, text);
}

/*
 * Mostly one write. The next one tells why it was cut short, on a full disk or by a limit. The part
 * is cut off. Under the lock.
 */
static int append_text(struct opd_cookie_file *file, int fd, const struct op_text *text)
{
	ssize_t nr = op_sys_write(fd, text->data, text->length);
	int err = nr < 0 ? (int)nr : op_sys_write_all(fd, text->data + nr, text->length - (size_t)nr);

	if (!err) {
		file->nr_bytes += text->length;
		if (file->publishing)
			op_text_add_bytes(&file->since, text->data, text->length);
		return 0;
	}
	/* When this fails, the next append tries it again. */
	return nr > 0 && op_sys_ftruncate(fd, (off_t)file->nr_bytes) < 0 ? -EIO : err;
}

/*
 * Opens the file. A longer one than expected ends with a part of a failed write, which is cut off.
 * Another program has changed a shorter one: it is written anew. *ret_is_new when the head must be
 * written. Under the lock.
 */
static int make_sound(struct opd_cookie_file *file, int fd, bool *ret_is_new)
{
	struct stat st;
	int err = op_sys_fstat(fd, &st);

	if (err)
		return err;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((uint64_t)st.st_size < file->nr_bytes) {
		err = op_dcookie_none_written(file->table);
		file->nr_bytes = 0;
	}
	if (!err && (uint64_t)st.st_size > file->nr_bytes)
		err = op_sys_ftruncate(fd, (off_t)file->nr_bytes);
	*ret_is_new = !file->nr_bytes;
	return err;
}

static int append(struct opd_cookie_file *file)
{
	struct op_text text = { 0 };
	bool is_new;
	int fd = open_current(file->session_fd, O_WRONLY | O_APPEND | O_CREAT), err;

	if (fd < 0)
		return fd;
	err = make_sound(file, fd, &is_new);
	if (!err) {
		format_unwritten(file, is_new, &text);
		err = text.failed ? -ENOMEM : append_text(file, fd, &text);
	}
	if (err)
		file->reserved = 0; /* the reservation is not in the file */
	op_text_free(&text);
	close(fd);
	return err;
}

void opd_cookie_file_flush(struct opd_cookie_file *file, uint64_t now_ns)
{
	int err;

	if (op_likely(!op_dcookie_nr_unwritten(file->table)) || now_ns < file->retry_ns)
		return;
	pthread_mutex_lock(&file->lock);
	err = append(file);
	pthread_mutex_unlock(&file->lock);
	if (!err) {
		op_dcookie_all_written(file->table);
		return;
	}
	note_error(file, err);
	file->retry_ns = now_ns + RETRY_NS;
}

void opd_cookie_file_reset(struct opd_cookie_file *file)
{
	pthread_mutex_lock(&file->lock);
	file->nr_resets++;
	file->nr_bytes = 0;
	pthread_mutex_unlock(&file->lock);
	file->reserved = 0;
	op_dcookie_uncount_all(file->table);
}

/* ---- the whole table anew ---- */

static void format_counted(struct op_dcookie_row *row, void *arg)
{
	if (row->name)
		op_dcookie_format_row(row, arg);
}

void opd_cookie_file_format(const struct opd_cookie_file *file, struct op_text *text)
{
	op_dcookie_format_head(text);
	op_dcookie_format_next(op_dcookie_next(file->table) + RESERVED, text);
	op_dcookie_visit(file->table, format_counted, text);
}

void opd_cookie_file_stop_publishing(struct opd_cookie_file *file)
{
	pthread_mutex_lock(&file->lock);
	file->nr_resets++;
	pthread_mutex_unlock(&file->lock);
}

/* One thread writes the table anew. Others meanwhile bring the present file to the disk. */
struct opd_cookie_snapshot *opd_cookie_file_begin(struct opd_cookie_file *file)
{
	struct opd_cookie_snapshot *snapshot = calloc(1, sizeof(*snapshot));
	bool is_first;

	if (!snapshot)
		return NULL;
	pthread_mutex_lock(&file->lock);
	is_first = !file->publishing && op_dcookie_nr_counted(file->table);
	file->publishing |= is_first;
	snapshot->nr_resets = file->nr_resets;
	snapshot->has_more = op_dcookie_nr_unwritten(file->table);
	pthread_mutex_unlock(&file->lock);
	if (!is_first)
		return snapshot;
	opd_cookie_file_format(file, &snapshot->text);
	return snapshot;
}

static int write_new(const struct opd_cookie_file *file, const struct op_text *text, int *ret_fd)
{
	int fd = op_file_open_below(file->session_fd, TMP_PATH, O_WRONLY | O_CREAT | O_TRUNC, FILE_MODE), err;

	if (fd < 0)
		return fd;
	err = op_sys_write_all(fd, text->data, text->length);
	if (!err)
		err = op_sys_fsync(fd);
	if (err)
		close(fd);
	else
		*ret_fd = fd;
	return err;
}

/* Appends what the old file got meanwhile, then puts the new file into its place. */
static int take_place(struct opd_cookie_file *file, const struct opd_cookie_snapshot *snapshot, int fd)
{
	int err = 0;

	pthread_mutex_lock(&file->lock);
	if (file->nr_resets != snapshot->nr_resets)
		err = -ESTALE;
	else if (file->since.failed)
		err = -ENOMEM;
	else if (file->since.length)
		err = op_sys_write_all(fd, file->since.data, file->since.length);
	if (err)
		goto out;
	err = op_file_rename_below(file->session_fd, TMP_PATH, PATH);
	if (!err)
		file->nr_bytes = snapshot->text.length + file->since.length;
out:
	pthread_mutex_unlock(&file->lock);
	return err;
}

static int replace(struct opd_cookie_file *file, struct opd_cookie_snapshot *snapshot)
{
	int fd = -1, err = snapshot->text.failed ? -ENOMEM : write_new(file, &snapshot->text, &fd);

	if (!err) {
		err = take_place(file, snapshot, fd);
		close(fd);
	}
	if (err)
		op_file_unlink_below(file->session_fd, TMP_PATH);
	return err;
}

void opd_cookie_file_give_up(struct opd_cookie_file *file, struct opd_cookie_snapshot *snapshot)
{
	if (!snapshot)
		return;
	if (snapshot->text.length || snapshot->text.failed) {
		pthread_mutex_lock(&file->lock);
		file->publishing = false;
		op_text_free(&file->since);
		pthread_mutex_unlock(&file->lock);
	}
	op_text_free(&snapshot->text);
	free(snapshot);
}

static int sync_one(int session_fd, const char *path, int flags)
{
	int fd = op_sys_openat(session_fd, path, flags | O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0), err;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	err = op_sys_fsync(fd);
	close(fd);
	return err;
}

int opd_cookie_file_publish(struct opd_cookie_file *file, struct opd_cookie_snapshot *snapshot)
{
	bool has_more = !snapshot || snapshot->has_more;
	int err = !snapshot ? -ENOMEM : snapshot->text.length || snapshot->text.failed ? replace(file, snapshot) : 0;

	/* A session that was emptied meanwhile needs no table. */
	if (err && err != -ESTALE)
		note_error(file, err);
	opd_cookie_file_give_up(file, snapshot);
	/* The present file lacks only times, unless rows could not be appended either. */
	if (err && err != -ESTALE && has_more)
		return err;
	err = sync_one(file->session_fd, PATH, 0);
	return err ? err : sync_one(file->session_fd, OP_SESSION_CURRENT, O_DIRECTORY);
}
