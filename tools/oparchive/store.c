/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/oparchive/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <linux/magic.h>
#include <sha2.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"
#include "tools/common/archive.h"
#include "tools/oparchive/copy.h"
#include "tools/oparchive/lock.h"
#include "tools/profile/archive_sums.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"

#define BLOCK_BYTES         512u /* of st_blocks */
#define TEMPORARY_BYTES_MAX 200u /* of the name of a file in its temporary name */

struct opr_archive_name {
	struct op_hlink link;
	char *name;
	struct opr_archive_name *before; /* the one that was added before it */
	size_t nr_bytes_there;           /* of the name, that existed before */
	uint64_t inode;                  /* of the file that was copied or compared; 0: none was */
	bool is_new;                     /* the file is new */
};

/* The length of the part of a path that exists. */
static size_t path_there(int dir_fd, const char *path)
{
	size_t there = 0;
	bool is_there = true;

	for (const char *end = path; is_there && *end;) {
		struct stat st;
		char *part;

		end += strspn(end, "/");
		end += strcspn(end, "/");
		part = strndup(path, (size_t)(end - path));
		is_there = part && !fstatat(dir_fd, part, &st, AT_SYMLINK_NOFOLLOW);
		there = is_there ? (size_t)(end - path) : there;
		free(part);
	}
	return there;
}

/* For its owner only, who is the caller, whoever owns the directory around it. */
static int make_dir(const char *dir)
{
	char *copy = strdup(dir);
	int err = copy ? op_file_make_dirs(dirname(copy)) : -ENOMEM;

	free(copy);
	if (!err)
		err = op_sys_mkdirat(AT_FDCWD, dir, 0700);
	return err == -EEXIST ? 0 : err;
}

int opr_archive_writer_init(struct opr_archive_writer *writer, const char *dir, FILE *list)
{
	int err;

	*writer = (struct opr_archive_writer){ .dir = dir, .dir_fd = -1, .lock_fd = -1, .list = list };
	if (!dir)
		return 0;
	writer->nr_bytes_there = path_there(AT_FDCWD, dir);
	err = make_dir(dir);
	if (!err) {
		writer->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		err = writer->dir_fd < 0 ? -errno : 0;
	}
	if (err)
		return opr_error(err, "%s: %s", dir, strerror(-err));
	err = opr_archive_lock(writer->dir_fd, dir, &writer->lock_fd);
	return err ? err : opr_earlier_read(&writer->earlier, writer->dir_fd, dir);
}

static void unlock(struct opr_archive_writer *writer)
{
	opr_archive_unlock(writer->dir_fd, writer->lock_fd);
	writer->lock_fd = -1;
}

/* ---- one file ---- */

static const struct opr_archive_name *find_name(const struct opr_archive_writer *writer, const char *name, uint64_t hash)
{
	for (struct op_hlink *link = op_htable_first(&writer->names, hash); link; link = op_htable_next(link)) {
		const struct opr_archive_name *entry = op_container_of(link, struct opr_archive_name, link);

		if (!strcmp(entry->name, name))
			return entry;
	}
	return NULL;
}

/* 0 with *ret_entry; NULL: the name was added before. */
static int note_name(struct opr_archive_writer *writer, const char *name, struct opr_archive_name **ret_entry)
{
	uint64_t hash = op_hash_bytes(0, name, strlen(name));
	struct opr_archive_name *entry;

	*ret_entry = NULL;
	if (find_name(writer, name, hash))
		return 0;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return opr_no_memory();
	entry->name = strdup(name);
	entry->nr_bytes_there = strlen(name);
	if (entry->name && !op_htable_insert(&writer->names, &entry->link, hash)) {
		entry->before = writer->last_name;
		writer->last_name = entry;
		*ret_entry = entry;
		return 0;
	}
	free(entry->name);
	free(entry);
	return opr_no_memory();
}

/* Notes which part of the path exists before the file is made. */
static void note_path_there(const struct opr_archive_writer *writer, struct opr_archive_name *entry)
{
	int fd = op_file_open_below(writer->dir_fd, entry->name, O_PATH, 0);

	entry->nr_bytes_there = fd >= 0 ? strlen(entry->name) : path_there(writer->dir_fd, entry->name);
	if (fd >= 0)
		close(fd);
}

static int copy_to(struct opr_archive_writer *writer, struct opr_copy *copy, const struct stat *st, struct opr_archive_name *entry)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	const char *slash = strrchr(entry->name, '/'), *last = slash ? slash + 1 : entry->name;
	/* The name of a file may be as long as a name can be. */
	size_t nr_bytes = (size_t)(last - entry->name) + op_min_u64(strlen(last), TEMPORARY_BYTES_MAX);
	char *temporary = NULL;
	int fd, err;

	if (asprintf(&temporary, "%.*s.oparchive.%d", (int)nr_bytes, entry->name, (int)getpid()) < 0)
		return -ENOMEM;
	note_path_there(writer, entry);
	fd = op_file_open_below(writer->dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
	err = fd < 0 ? fd : opr_copy_run(copy, fd);
	if (!err && (fchmod(fd, opr_archive_mode(&writer->access, copy->fd, st)) < 0 || futimens(fd, times) < 0))
		err = -errno;
	if (fd >= 0 && close(fd) < 0 && !err)
		err = -errno;
	if (!err)
		err = op_file_rename_below(writer->dir_fd, temporary, entry->name);
	if (err && fd >= 0)
		op_file_unlink_below(writer->dir_fd, temporary);
	free(temporary);
	entry->is_new = !err && entry->nr_bytes_there < strlen(entry->name);
	return err;
}

static void list_file(struct opr_archive_writer *writer, const char *path)
{
	opr_write_escaped(writer->list, path);
	fputc('\n', writer->list);
}

/*
 * Ends with an error before the disk is full for everybody. Some file systems do not know their
 * size: 0 blocks.
 */
static int check_room(const struct opr_archive_writer *writer, const struct stat *st, const char *path)
{
	uint64_t needed = op_min_u64((uint64_t)st->st_size, (uint64_t)st->st_blocks * BLOCK_BYTES), left;
	struct statvfs vfs;

	if (op_sys_statvfs(writer->dir_fd, &vfs) < 0 || !vfs.f_blocks)
		return 0;
	left = (uint64_t)(geteuid() ? vfs.f_bavail : vfs.f_bfree) * vfs.f_frsize;
	if (needed <= left)
		return 0;
	opr_error(-ENOSPC, "%s: there is no room for it in %s: it has %" PRIu64 " bytes, and %" PRIu64 " are left", path,
		  writer->dir, needed, left);
	return -ECANCELED;
}

static void note_cut(struct opr_archive_writer *writer, const struct opr_copy *copy, uint64_t file_bytes, const char *path)
{
	char *value = NULL;

	if (copy->end >= file_bytes)
		return;
	opr_warn("%s has too many holes: what its ELF headers do not name, %" PRIu64 " bytes from %" PRIu64 " on, is left out",
		 path, file_bytes - copy->end, copy->end);
	if (asprintf(&value, "%" PRIu64, copy->end) >= 0)
		opr_archive_note_image(writer, "cut", path, value);
	free(value);
	writer->nr_cut++;
}

/* Reports errors of writing. The caller reports errors of reading. */
static int report_error(const struct opr_archive_writer *writer, const struct opr_copy *copy, int err, const char *path,
			const char *name)
{
	if (!err || err == -EINTR)
		return err ? opr_error(err, "interrupted: nothing was kept") : 0;
	if (copy->is_unreadable)
		return err == -ENOMEM || err == -ECANCELED ? -EIO : err;
	opr_error(err, "%s: cannot copy it to %s/%s: %s", path, writer->dir, name, strerror(-err));
	return -ECANCELED;
}

/*
 * Reports compare the time of a file, too. Files in /proc and /sys have the time of their first
 * use.
 */
static bool is_of_same_time(const struct stat *there, const struct stat *st, int fd)
{
	struct statfs fs;

	return there->st_mtim.tv_sec == st->st_mtim.tv_sec ||
	       (!fstatfs(fd, &fs) && (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC));
}

static bool is_other(const struct opr_archive_writer *writer, const struct opr_copy *copy, const struct stat *st,
		     const struct opr_archive_name *entry, int there_fd)
{
	const struct opr_sum *sum = opr_sums_find(&writer->earlier.sums, entry->name);
	struct stat there;

	if (!sum || strncmp(sum->digits, copy->digits, OPR_SUM_DIGITS))
		return true;
	if (there_fd < 0)
		return there_fd != -ENOENT;
	return fstat(there_fd, &there) < 0 || !is_of_same_time(&there, st, copy->fd);
}

/*
 * Compares with the file of an earlier session, which stays. Copies again when that is gone.
 * -EEXIST: they differ.
 */
static int compare(struct opr_archive_writer *writer, struct opr_copy *copy, const struct stat *st, struct opr_archive_name *entry)
{
	int fd = op_file_open_below(writer->dir_fd, entry->name, O_PATH, 0), err = opr_copy_run(copy, -1);

	if (!err && is_other(writer, copy, st, entry, fd))
		err = -EEXIST;
	copy->is_unreadable = err && err != -EINTR; /* nothing was written */
	if (err || fd != -ENOENT)
		goto out;
	err = opr_copy_begin(copy, copy->fd, st, writer->stop);
	copy->is_unreadable = err && err != -EINTR;
	if (!err)
		err = copy_to(writer, copy, st, entry);
out:
	if (fd >= 0)
		close(fd);
	return err;
}

static int copy_open(struct opr_archive_writer *writer, int fd, const char *path, struct opr_archive_name *entry)
{
	bool was_there = opr_earlier_has(&writer->earlier, entry->name);
	struct opr_copy copy;
	struct stat st;
	int err = op_sys_fstat(fd, &st);

	if (!err)
		err = S_ISREG(st.st_mode) ? opr_copy_begin(&copy, fd, &st, writer->stop) : -ENOENT;
	if (!err && !was_there)
		err = check_room(writer, &st, path);
	if (err == -ECANCELED)
		return err;
	if (err)
		return err == -EINTR ? opr_error(err, "interrupted: nothing was kept") : err;
	err = was_there ? compare(writer, &copy, &st, entry) : copy_to(writer, &copy, &st, entry);
	entry->inode = err ? 0 : st.st_ino;
	err = report_error(writer, &copy, err, path, entry->name);
	writer->nr_bytes += copy.nr_bytes;
	if (err)
		return err;
	if (!was_there)
		opr_sums_write(&writer->sums, copy.digits, entry->name);
	note_cut(writer, &copy, (uint64_t)st.st_size, path);
	writer->nr_files++;
	return 0;
}

static int open_source(int dir_fd, const char *below)
{
	int fd;

	if (dir_fd != AT_FDCWD)
		return op_file_open_below(dir_fd, below, O_RDONLY | O_NOCTTY, 0);
	fd = open(below, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

int opr_archive_add_open(struct opr_archive_writer *writer, int fd, const char *path, const char *name)
{
	struct opr_archive_name *entry;
	int err = note_name(writer, name + strspn(name, "/"), &entry);

	if (entry && !writer->dir)
		list_file(writer, path);
	else if (entry)
		err = copy_open(writer, fd, path, entry);
	if (fd >= 0)
		close(fd);
	return err;
}

/* The name is noted when the file is open: one that is packed meanwhile is added from the pack. */
int opr_archive_add_below(struct opr_archive_writer *writer, int dir_fd, const char *below, const char *path, const char *name)
{
	int fd;

	if (!writer->dir && faccessat(dir_fd, below, R_OK, 0))
		return -errno;
	fd = writer->dir ? open_source(dir_fd, below) : -1;
	if (writer->dir && fd < 0)
		return fd == -ENOMEM ? opr_no_memory() : fd;
	return opr_archive_add_open(writer, fd, path, name);
}

int opr_archive_add(struct opr_archive_writer *writer, const char *path, const char *name)
{
	return opr_archive_add_below(writer, AT_FDCWD, path, path, name);
}

uint64_t opr_archive_copied_inode(const struct opr_archive_writer *writer, const char *name)
{
	const struct opr_archive_name *entry;

	name += strspn(name, "/");
	entry = find_name(writer, name, op_hash_bytes(0, name, strlen(name)));
	return entry ? entry->inode : 0;
}

bool opr_archive_is_fatal(int err)
{
	return err == -ENOMEM || err == -EINTR || err == -ECANCELED;
}

static int remove_dir(int dir_fd, const char *path)
{
	return dir_fd == AT_FDCWD ? op_sys_unlinkat(dir_fd, path, AT_REMOVEDIR) : op_file_remove_below(dir_fd, path, AT_REMOVEDIR);
}

/* Removes the empty directories of a path. The first `there` bytes of it existed before. */
static void remove_dirs(int dir_fd, char *path, size_t there)
{
	for (char *slash; (slash = strrchr(path, '/')) && (size_t)(slash - path) > there;) {
		*slash = '\0';
		if (path[strlen(path) - 1] != '/' && remove_dir(dir_fd, path))
			break;
	}
}

/* The last file first: then a directory is empty when the file comes for which it was made. */
void opr_archive_undo(struct opr_archive_writer *writer)
{
	char *dir = NULL;

	if (!writer->dir || asprintf(&dir, "%s/", writer->dir) < 0)
		return;
	if (writer->has_own_facts)
		op_file_unlink_below(writer->dir_fd, OPR_ARCHIVE_FACTS);
	if (writer->has_new_facts && op_file_publish(writer->dir_fd, OPR_ARCHIVE_FACTS, writer->earlier.text, 0600) < 0)
		opr_warn("%s/" OPR_ARCHIVE_FACTS " was changed by another program", writer->dir);
	for (struct opr_archive_name *entry = writer->last_name; entry; entry = entry->before) {
		if (entry->is_new)
			op_file_unlink_below(writer->dir_fd, entry->name);
		remove_dirs(writer->dir_fd, entry->name, entry->nr_bytes_there);
	}
	unlock(writer);
	remove_dirs(AT_FDCWD, dir, writer->nr_bytes_there);
	free(dir);
}

/* ---- facts and sums ---- */

void opr_archive_note(struct opr_archive_writer *writer, const char *word, const char *value)
{
	if (!strchr(value, '\n') && !opr_earlier_has_line(&writer->earlier, word, value))
		op_text_printf(&writer->facts, "%s\t%s\n", word, value);
}

void opr_archive_note_image(struct opr_archive_writer *writer, const char *word, const char *path, const char *value)
{
	if (!strpbrk(path, "\n\t") && !strchr(value, '\n') && !opr_earlier_has_line(&writer->earlier, word, path))
		op_text_printf(&writer->facts, "%s\t%s\t%s\n", word, path, value);
}

static int publish(struct opr_archive_writer *writer, const char *name, const struct op_text *text)
{
	int err = text->failed ? -ENOMEM : op_file_publish(writer->dir_fd, name, op_text_get(text), 0600);

	return err ? opr_error(err, "%s/%s: %s", writer->dir, name, strerror(-err)) : 0;
}

int opr_archive_finish(struct opr_archive_writer *writer)
{
	struct op_text facts = { 0 }, sums = { 0 };
	char digits[OPR_SUM_DIGITS + 1];
	bool has_facts;
	int err;

	if (!writer->dir)
		return 0;
	if (op_stop_is_set(writer->stop))
		return opr_error(-EINTR, "interrupted: nothing was kept");
	op_text_add(&facts, writer->earlier.is_there ? writer->earlier.text : "");
	op_text_add(&facts, op_text_get(&writer->facts));
	facts.failed |= writer->facts.failed;
	SHA256Data((const uint8_t *)op_text_get(&facts), facts.length, digits);
	opr_earlier_write_sums(&writer->earlier, &sums);
	op_text_add(&sums, op_text_get(&writer->sums));
	opr_sums_write(&sums, digits, OPR_ARCHIVE_FACTS);
	sums.failed |= writer->sums.failed;
	has_facts = !faccessat(writer->dir_fd, OPR_ARCHIVE_FACTS, F_OK, AT_SYMLINK_NOFOLLOW);
	err = publish(writer, OPR_ARCHIVE_FACTS, &facts);
	if (!err) {
		writer->has_own_facts = !has_facts;
		writer->has_new_facts = writer->earlier.is_there;
		err = publish(writer, OPR_ARCHIVE_SUMS, &sums);
	}
	op_text_free(&facts);
	op_text_free(&sums);
	return err;
}

static void free_name(struct op_hlink *link, void *arg OP_UNUSED)
{
	struct opr_archive_name *entry = op_container_of(link, struct opr_archive_name, link);

	free(entry->name);
	free(entry);
}

void opr_archive_writer_free(struct opr_archive_writer *writer)
{
	if (!writer)
		return;
	op_htable_visit(&writer->names, free_name, NULL);
	op_htable_free(&writer->names);
	opr_archive_access_free(&writer->access);
	opr_earlier_free(&writer->earlier);
	op_text_free(&writer->facts);
	op_text_free(&writer->sums);
	unlock(writer);
	if (writer->dir_fd >= 0)
		close(writer->dir_fd);
}
