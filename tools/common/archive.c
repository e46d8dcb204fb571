/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/archive.h"

#include <errno.h>
#include <fcntl.h>

#include "libop/base/file.h"
#include "libop/base/parse.h"
#include "libop/base/grow.h"
#include "tools/common/log.h"

/* ---- the file opd-archive ---- */

/* "NUMBER PATH" */
static int add_inode(struct opr_archive *archive, char *value)
{
	struct opr_archive_inode inode = { 0 };
	char *path = strchr(value, ' ');

	if (!path)
		return 0;
	*path++ = '\0';
	if (op_parse_u64(value, 0, UINT64_MAX, &inode.inode) < 0)
		return 0;
	if (!op_grow(&archive->inodes, &archive->capacity, archive->nr_inodes + 1))
		return -ENOMEM;
	inode.path = strdup(path);
	if (!inode.path)
		return -ENOMEM;
	archive->inodes[archive->nr_inodes++] = inode;
	return 0;
}

static int take_line(struct opr_archive *archive, char *line)
{
	const struct {
		const char *word;
		struct opr_words *values;
	} lists[] = {
		{ "whole", &archive->whole },   { "package", &archive->packages },  { "debug", &archive->debug },
		{ "absent", &archive->absent }, { "left-out", &archive->left_out }, { "cut", &archive->cut },
		{ "other", &archive->other },
	};
	char *value = strchr(line, '\t');

	if (!value)
		return 0;
	*value++ = '\0';
	if (!strcmp(line, "inode"))
		return add_inode(archive, value);
	for (size_t i = 0; i < op_array_size(lists); i++)
		if (!strcmp(line, lists[i].word))
			return opr_words_add(lists[i].values, value);
	if (strcmp(line, "session-dir") || archive->origin_dir)
		return 0;
	archive->origin_dir = strdup(value);
	return archive->origin_dir ? 0 : -ENOMEM;
}

static int read_facts(struct opr_archive *archive)
{
	char *path = NULL, *text = NULL, *rest;
	int err;

	if (asprintf(&path, "%s/" OPR_ARCHIVE_FACTS, archive->dir) < 0)
		return opr_no_memory();
	err = op_file_read(AT_FDCWD, path, OPR_FACTS_BYTES_MAX, &text);
	if (err && err != -ENOENT)
		opr_warn("%s: %s: it is not used", path, strerror(-err));
	err = err == -ENOMEM ? err : 0;
	rest = text;
	for (char *line; !err && (line = strsep(&rest, "\n"));)
		err = take_line(archive, line);
	free(text);
	free(path);
	return err ? opr_no_memory() : 0;
}

int opr_archive_open(struct opr_archive *archive, const char *dir)
{
	archive->dir = realpath(dir, NULL);
	if (!archive->dir)
		return opr_error(-errno, "archive %s: %s", dir, strerror(errno));
	if (!strcmp(archive->dir, "/"))
		*archive->dir = '\0';
	if (asprintf(&archive->sessions_dir, "%s/" OPR_ARCHIVE_SESSIONS, archive->dir) < 0) {
		archive->sessions_dir = NULL;
		return opr_no_memory();
	}
	return read_facts(archive);
}

/* ---- paths ---- */

/* The part of a path behind a directory; NULL: it is not below the directory. */
static const char *below(const char *path, const char *dir)
{
	size_t length = strlen(dir);

	return strncmp(path, dir, length) || path[length] != '/' ? NULL : path + length;
}

const struct opr_archive *opr_archive_of(const struct opr_archive *archives, const char *path)
{
	while (archives && !below(path, archives->dir))
		archives = archives->next;
	return archives;
}

const char *opr_archive_strip(const struct opr_archive *archives, const char *path)
{
	const struct opr_archive *archive = opr_archive_of(archives, path);

	return archive ? below(path, archive->dir) : path;
}

static char *move(const char *path, const char *from, const char *to)
{
	const char *rest = below(path, from);
	char *moved = NULL;

	if (!rest)
		return strdup(path);
	return asprintf(&moved, "%s%s", to, rest) < 0 ? NULL : moved;
}

static bool can_move(const struct opr_archive *archives)
{
	return archives && !archives->next && archives->origin_dir;
}

char *opr_archive_to_home(const struct opr_archive *archives, const char *path)
{
	return can_move(archives) ? move(path, archives->sessions_dir, archives->origin_dir) : strdup(path);
}

char *opr_archive_from_home(const struct opr_archive *archives, const char *path)
{
	return can_move(archives) ? move(path, archives->origin_dir, archives->sessions_dir) : strdup(path);
}

uint64_t opr_archive_inode_of(const struct opr_archive *archives, const char *path)
{
	const struct opr_archive *archive = opr_archive_of(archives, path);

	for (size_t i = 0; archive && i < archive->nr_inodes; i++)
		if (!strcmp(archive->inodes[i].path, below(path, archive->dir)))
			return archive->inodes[i].inode;
	return 0;
}

bool opr_archive_is_whole(const struct opr_archive *archives, const char *path)
{
	const struct opr_archive *archive = opr_archive_of(archives, path);
	const char *slash = strrchr(path, '/');

	return archive && opr_words_have(&archive->whole, slash ? slash + 1 : path);
}

const char *opr_archive_fact(const struct opr_words *facts, const char *path)
{
	size_t length = strlen(path);

	for (size_t i = 0; i < facts->nr_words; i++)
		if (!strncmp(facts->words[i], path, length) && facts->words[i][length] == '\t')
			return facts->words[i] + length + 1;
	return NULL;
}

void opr_archive_free(struct opr_archive *archive)
{
	if (!archive)
		return;
	opr_words_free(&archive->whole);
	opr_words_free(&archive->packages);
	opr_words_free(&archive->debug);
	opr_words_free(&archive->absent);
	opr_words_free(&archive->left_out);
	opr_words_free(&archive->cut);
	opr_words_free(&archive->other);
	for (size_t i = 0; i < archive->nr_inodes; i++)
		free(archive->inodes[i].path);
	free(archive->inodes);
	free(archive->dir);
	free(archive->sessions_dir);
	free(archive->origin_dir);
	*archive = (struct opr_archive){ 0 };
}
