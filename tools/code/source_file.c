/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/code/source_file.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/text.h"
#include "libop/base/grow.h"
#include "tools/elf/open_file.h"

struct opr_source_cache_item {
	char *name;
	struct opr_source_file file;
};

/* ---- finding ---- */

/* The name below a base directory; NULL: it is not below it. */
static const char *cut_base(const char *name, const char *base)
{
	size_t length = strlen(base);

	while (length > 1 && base[length - 1] == '/')
		length--;
	if (!length || strncmp(name, base, length))
		return NULL;
	if (name[length] != '/' && base[length - 1] != '/')
		return NULL;
	name += length;
	return name + strspn(name, "/");
}

static const char *cut_bases(const char *name, const struct opr_words *bases)
{
	for (size_t i = 0; i < bases->nr_words; i++) {
		const char *rest = cut_base(name, bases->words[i]);

		if (rest)
			return rest;
	}
	return NULL;
}

/* Opens regular files only, and touches nothing else: the name is not trusted. */
static int open_source_file(const char *path, struct stat *st)
{
	int fd = opr_open_regular(path, st);

	if (fd >= 0 && st->st_size > OPR_SOURCE_BYTES_MAX) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Whether ".." leads out of the directory below which the name is. */
static bool climbs_out(const char *name)
{
	int depth = 0;

	for (const char *part = name; *part && depth >= 0; part += strcspn(part, "/")) {
		size_t length;

		part += strspn(part, "/");
		length = strcspn(part, "/");
		if (length == 2 && !strncmp(part, "..", 2))
			depth--;
		else if (length && !(length == 1 && *part == '.'))
			depth++;
	}
	return depth < 0;
}

static int open_below(const char *dir, const char *name, struct stat *st, struct op_text *path)
{
	if (climbs_out(name))
		return -1;
	op_text_truncate(path, 0);
	op_text_printf(path, "%s/%s", dir, name);
	return path->failed ? -1 : open_source_file(path->data, st);
}

/* Whether everybody may search the directories in which the open file is. */
static bool are_dirs_open(int fd)
{
	char link[sizeof("/proc/self/fd/") + 10], path[PATH_MAX];
	struct stat st = { .st_mode = S_IXOTH };
	ssize_t length;
	char *slash;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path));
	if (length <= 0 || length == (ssize_t)sizeof(path) || *path != '/')
		return false;
	path[length] = '\0';
	while (st.st_mode & S_IXOTH && (slash = strrchr(path, '/'))) {
		*slash = '\0';
		if (stat(slash == path ? "/" : path, &st) < 0)
			return false;
	}
	return st.st_mode & S_IXOTH;
}

/*
 * Whether the file may be shown although a stranger can have named it, who then sees a report of
 * root: everybody can read it already. The caller's own directories may be closed.
 */
static bool is_for_everybody(int fd, const struct stat *st)
{
	return st->st_mode & S_IROTH && (st->st_uid == geteuid() || are_dirs_open(fd));
}

/* The descriptor of the file and its path; -1: not found. */
static int open_source(const char *name, const struct opr_source_dirs *dirs, struct stat *st, struct op_text *path,
		       bool *is_private)
{
	const char *rest = cut_bases(name, dirs->base_dirs);
	int fd = -1;

	for (size_t i = 0; i < dirs->search_dirs->nr_words && fd < 0 && rest; i++)
		fd = open_below(dirs->search_dirs->words[i], rest, st, path);
	for (size_t i = 0; i < dirs->search_dirs->nr_words && fd < 0; i++)
		fd = open_below(dirs->search_dirs->words[i], name + strspn(name, "/"), st, path);
	if (fd >= 0)
		return fd;
	op_text_truncate(path, 0);
	op_text_add(path, name);
	fd = path->failed ? -1 : open_source_file(path->data, st);
	if (fd < 0 || is_for_everybody(fd, st))
		return fd;
	close(fd);
	*is_private = true;
	return -1;
}

/* ---- reading ---- */

static int read_text(int fd, size_t nr_bytes, char **ret_text, size_t *ret_bytes)
{
	char *text = malloc(nr_bytes + 1);
	size_t got = 0;

	if (!text)
		return -ENOMEM;
	while (got < nr_bytes) {
		ssize_t n = read(fd, text + got, nr_bytes - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	text[got] = '\0';
	*ret_text = text;
	*ret_bytes = got;
	return 0;
}

/* A NUL byte in the file ends its line. */
static int cut_lines(struct opr_source_file *file, size_t nr_bytes)
{
	size_t nr_lines = 0, line = 0;

	for (size_t i = 0; i < nr_bytes; i++)
		nr_lines += file->text[i] == '\n' || i + 1 == nr_bytes;
	file->lines = calloc(nr_lines + 1, sizeof(*file->lines));
	if (!file->lines)
		return -ENOMEM;
	for (char *next = file->text; line < nr_lines; line++) {
		char *end = memchr(next, '\n', (size_t)(file->text + nr_bytes - next));

		file->lines[line] = next;
		if (!end)
			continue;
		*end = '\0';
		next = end + 1;
	}
	file->nr_lines = nr_lines;
	return 0;
}

int opr_source_file_read(struct opr_source_file *file, const char *name, const struct opr_source_dirs *dirs)
{
	struct op_text path = { 0 };
	struct stat st;
	size_t nr_bytes = 0;
	int fd, err;

	*file = (struct opr_source_file){ 0 };
	fd = *name ? open_source(name, dirs, &st, &path, &file->is_private) : -1;
	if (fd < 0) {
		err = path.failed ? -ENOMEM : 0;
		op_text_free(&path);
		return err;
	}
	file->device = st.st_dev;
	file->inode = st.st_ino;
	file->path = op_text_steal(&path);
	err = file->path ? read_text(fd, (size_t)st.st_size, &file->text, &nr_bytes) : -ENOMEM;
	close(fd);
	return err ? err : cut_lines(file, nr_bytes);
}

void opr_source_file_free(struct opr_source_file *file)
{
	if (!file)
		return;
	free(file->path);
	free(file->text);
	free(file->lines);
	*file = (struct opr_source_file){ 0 };
}

/* ---- the cache ---- */

struct opr_source_file *opr_source_cache_find(struct opr_source_cache *cache, const char *name)
{
	struct opr_source_cache_item *item = cache->items ? &cache->items[cache->last] : NULL;

	if (item && !strcmp(item->name, name))
		return &item->file;
	for (size_t i = 0; i < cache->nr_items; i++) {
		if (!strcmp(cache->items[i].name, name)) {
			cache->last = i;
			return &cache->items[i].file;
		}
	}
	if (!op_grow(&cache->items, &cache->capacity, cache->nr_items + 1))
		return NULL;
	item = &cache->items[cache->nr_items];
	*item = (struct opr_source_cache_item){ .name = strdup(name) };
	if (!item->name)
		return NULL;
	cache->last = cache->nr_items++;
	return opr_source_file_read(&item->file, name, cache->dirs) < 0 ? NULL : &item->file;
}

void opr_source_cache_rewind(struct opr_source_cache *cache)
{
	for (size_t i = 0; i < cache->nr_items; i++)
		cache->items[i].file.last = cache->items[i].file.shown = 0;
}

void opr_source_cache_free(struct opr_source_cache *cache)
{
	for (size_t i = 0; i < cache->nr_items; i++) {
		free(cache->items[i].name);
		opr_source_file_free(&cache->items[i].file);
	}
	free(cache->items);
	*cache = (struct opr_source_cache){ 0 };
}
