/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/archive_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/file.h"
#include "libop/sha256.h"
#include "libop/sys.h"
#include "tools/archive.h"
#include "tools/escape.h"
#include "tools/report_log.h"

#define BUFFER_BYTES   65536
#define SUMS_BYTES_MAX (256u << 20)
#define SUM_DIGITS     (2 * OP_SHA256_BYTES)
#define MODE_MAX       0755

struct name {
	struct op_hlink link;
	char *name;
};

int opr_archive_writer_init(struct opr_archive_writer *writer, const char *dir, FILE *list)
{
	int err;

	*writer = (struct opr_archive_writer){ .dir = dir, .dir_fd = -1, .list = list };
	if (!dir)
		return 0;
	err = op_file_make_dirs(dir);
	if (!err) {
		writer->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		err = writer->dir_fd < 0 ? -errno : 0;
	}
	return err ? opr_error(err, "%s: %s", dir, strerror(-err)) : 0;
}

/* ---- one file ---- */

static int note_name(struct opr_archive_writer *writer, const char *name, bool *ret_known)
{
	uint64_t hash = op_hash_bytes(0, name, strlen(name));
	struct name *entry;

	for (struct op_hlink *link = op_htable_first(&writer->names, hash); link; link = op_htable_next(link)) {
		*ret_known = !strcmp(op_container_of(link, struct name, link)->name, name);
		if (*ret_known)
			return 0;
	}
	*ret_known = false;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->name = strdup(name);
	if (entry->name && !op_htable_insert(&writer->names, &entry->link, hash))
		return 0;
	free(entry->name);
	free(entry);
	return -ENOMEM;
}

/* fd_to -1: the sum alone is wanted. */
static int copy_bytes(int fd_from, int fd_to, uint64_t *nr_bytes, char digits[SUM_DIGITS + 1])
{
	char *buffer = malloc(BUFFER_BYTES);
	struct op_sha256 sha;
	ssize_t got = 0;
	int err = buffer ? 0 : -ENOMEM;

	op_sha256_begin(&sha);
	while (!err && (got = op_sys_read(fd_from, buffer, BUFFER_BYTES)) > 0) {
		op_sha256_add(&sha, buffer, (size_t)got);
		*nr_bytes += (uint64_t)got;
		if (fd_to >= 0)
			err = op_sys_write_all(fd_to, buffer, (size_t)got);
	}
	if (!err && got < 0)
		err = (int)got;
	op_sha256_end(&sha, digits);
	free(buffer);
	return err;
}

/* A name with a newline or a backslash is written as sha256sum(1) does: a backslash before the line, and escapes in it. */
static void add_sum(struct op_text *sums, const char *digits, const char *name)
{
	if (strpbrk(name, "\n\\"))
		op_text_add_char(sums, '\\');
	op_text_printf(sums, "%s  ", digits);
	for (; *name; name++) {
		if (*name == '\n')
			op_text_add(sums, "\\n");
		else if (*name == '\\')
			op_text_add(sums, "\\\\");
		else
			op_text_add_char(sums, *name);
	}
	op_text_add_char(sums, '\n');
}

static int copy_to(struct opr_archive_writer *writer, int fd_from, const struct stat *st, const char *name)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	char digits[SUM_DIGITS + 1], *temporary = NULL;
	int fd, err;

	if (asprintf(&temporary, "%s.oparchive.%d", name, (int)getpid()) < 0)
		return -ENOMEM;
	fd = op_file_open_below(writer->dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
	err = fd < 0 ? fd : copy_bytes(fd_from, fd, &writer->nr_bytes, digits);
	if (!err && (fchmod(fd, (st->st_mode & MODE_MAX) | S_IRUSR) < 0 || futimens(fd, times) < 0))
		err = -errno;
	if (fd >= 0 && close(fd) < 0 && !err)
		err = -errno;
	if (!err)
		err = op_file_rename_below(writer->dir_fd, temporary, name);
	if (err && fd >= 0)
		op_file_unlink_below(writer->dir_fd, temporary);
	if (!err)
		add_sum(&writer->sums, digits, name);
	free(temporary);
	return err;
}

static void list_file(struct opr_archive_writer *writer, const char *path)
{
	opr_write_escaped(writer->list, path);
	fputc('\n', writer->list);
}

/* Takes the descriptor over; -errno: there is none. */
static int copy(struct opr_archive_writer *writer, int fd, const char *path, const char *name)
{
	int err = fd < 0 ? fd : 0;
	struct stat st;

	if (!err && fstat(fd, &st) < 0)
		err = -errno;
	if (!err && !S_ISREG(st.st_mode))
		err = -ENOENT;
	if (!err) {
		err = copy_to(writer, fd, &st, name);
		if (err)
			opr_error(err, "%s: cannot copy it to %s/%s: %s", path, writer->dir, name, strerror(-err));
	}
	if (fd >= 0)
		close(fd);
	return err;
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
	bool known = false;
	int err;

	name += strspn(name, "/");
	err = note_name(writer, name, &known) ? opr_no_memory() : 0;
	if (!err && !known && !writer->dir)
		list_file(writer, path);
	if (err || known || !writer->dir) {
		close(fd);
		return err;
	}
	err = copy(writer, fd, path, name);
	writer->nr_files += !err;
	return err;
}

int opr_archive_add_below(struct opr_archive_writer *writer, int dir_fd, const char *below, const char *path, const char *name)
{
	bool known;
	int err;

	name += strspn(name, "/");
	err = note_name(writer, name, &known);
	if (err || known)
		return err ? opr_no_memory() : 0;
	if (!writer->dir) {
		if (!faccessat(dir_fd, below, R_OK, 0))
			list_file(writer, path);
		return 0;
	}
	err = copy(writer, open_source(dir_fd, below), path, name);
	writer->nr_files += !err;
	return err;
}

int opr_archive_add(struct opr_archive_writer *writer, const char *path, const char *name)
{
	return opr_archive_add_below(writer, AT_FDCWD, path, path, name);
}

/* ---- facts and sums ---- */

void opr_archive_note(struct opr_archive_writer *writer, const char *word, const char *value)
{
	if (!strchr(value, '\n'))
		op_text_printf(&writer->facts, "%s\t%s\n", word, value);
}

void opr_archive_note_image(struct opr_archive_writer *writer, const char *word, const char *path, const char *value)
{
	if (!strpbrk(path, "\n\t") && !strchr(value, '\n'))
		op_text_printf(&writer->facts, "%s\t%s\t%s\n", word, path, value);
}

static int publish(struct opr_archive_writer *writer, const char *name, const struct op_text *text)
{
	int err = text->failed ? -ENOMEM : op_file_publish(writer->dir_fd, name, op_text_get(text), 0644);

	return err ? opr_error(err, "%s/%s: %s", writer->dir, name, strerror(-err)) : 0;
}

int opr_archive_finish(struct opr_archive_writer *writer)
{
	int err = writer->dir ? publish(writer, OPR_ARCHIVE_FACTS, &writer->facts) : 0;
	struct op_sha256 sha;
	char digits[SUM_DIGITS + 1];

	if (err || !writer->dir)
		return err;
	op_sha256_begin(&sha);
	op_sha256_add(&sha, op_text_get(&writer->facts), writer->facts.length);
	op_sha256_end(&sha, digits);
	op_text_printf(&writer->sums, "%s  " OPR_ARCHIVE_FACTS "\n", digits);
	return publish(writer, OPR_ARCHIVE_SUMS, &writer->sums);
}

/* In place. */
static void unescape(char *name)
{
	char *to = name;

	for (; *name; name++) {
		bool escaped = *name == '\\' && name[1];

		name += escaped;
		*to++ = escaped && *name == 'n' ? '\n' : *name;
	}
	*to = '\0';
}

static int check_line(int dir_fd, const char *dir, char *line)
{
	bool escaped = *line == '\\';
	char *name = line + escaped + SUM_DIGITS + 2, digits[SUM_DIGITS + 1];
	uint64_t nr_bytes = 0;
	struct stat st;
	int fd, err;

	line += escaped;
	if (strlen(line) <= SUM_DIGITS + 2)
		return opr_error(-EBADMSG, "%s/" OPR_ARCHIVE_SUMS ": a line is damaged", dir);
	if (escaped)
		unescape(name);
	fd = op_file_open_below(dir_fd, name, O_RDONLY | O_NONBLOCK, 0);
	err = fd < 0 ? fd : op_sys_fstat(fd, &st);
	if (!err)
		err = S_ISREG(st.st_mode) ? copy_bytes(fd, -1, &nr_bytes, digits) : -EBADMSG;
	if (fd >= 0)
		close(fd);
	if (err)
		return opr_error(-EBADMSG, "%s/%s: %s", dir, name, strerror(-err));
	return strncmp(digits, line, SUM_DIGITS) ? opr_error(-EBADMSG, "%s/%s: its checksum is wrong", dir, name) : 0;
}

/* What the archive says of itself that it has not. */
static int check_facts(const char *dir)
{
	struct opr_archive archive = { 0 };
	int err = opr_archive_open(&archive, dir);

	for (size_t i = 0; i < archive.left_out.nr_words; i++)
		err = opr_error(-EBADMSG, "%s: %s could not be read when it was made", dir, archive.left_out.words[i]);
	opr_archive_free(&archive);
	return err;
}

/* The facts have the last sum: without it the list is cut short. */
static bool has_end(const char *sums)
{
	static const char end[] = "  " OPR_ARCHIVE_FACTS "\n";
	size_t nr_bytes = strlen(sums);

	return nr_bytes >= strlen(end) && !strcmp(sums + nr_bytes - strlen(end), end);
}

int opr_archive_check(const char *dir)
{
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *text = NULL, *rest;
	int err = dir_fd < 0 ? -errno : op_file_read(dir_fd, OPR_ARCHIVE_SUMS, SUMS_BYTES_MAX, &text);

	if (err)
		opr_error(err, "%s/" OPR_ARCHIVE_SUMS ": %s", dir, strerror(-err));
	else if (!has_end(text))
		err = opr_error(-EBADMSG, "%s/" OPR_ARCHIVE_SUMS " is cut short", dir);
	rest = text;
	for (char *line; (line = strsep(&rest, "\n"));)
		if (*line && check_line(dir_fd, dir, line))
			err = -EBADMSG;
	if (text && check_facts(dir))
		err = -EBADMSG;
	if (dir_fd >= 0)
		close(dir_fd);
	free(text);
	return err;
}

static void free_name(struct op_hlink *link, void *arg OP_UNUSED)
{
	struct name *entry = op_container_of(link, struct name, link);

	free(entry->name);
	free(entry);
}

void opr_archive_writer_free(struct opr_archive_writer *writer)
{
	if (!writer)
		return;
	op_htable_visit(&writer->names, free_name, NULL);
	op_htable_free(&writer->names);
	op_text_free(&writer->facts);
	op_text_free(&writer->sums);
	if (writer->dir_fd >= 0)
		close(writer->dir_fd);
}
