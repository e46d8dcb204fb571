/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/packages.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "libop/base/file.h"
#include "libop/base/text.h"

#define LIST_SUFFIX   ".list"
#define LIST_BYTES    (64u << 20)
#define USR           "/usr"
#define RELEASE_BYTES 65536

/* Packages whose debug files are not in NAME-dbgsym. */
static const struct {
	const char *prefix;
	const char *suffix;
} exceptions[] = {
	{ "libc6", "-dbg" },
	{ "linux-image-", "-dbg" },
};

static bool is_list(const char *name)
{
	size_t length = strlen(name), suffix_length = strlen(LIST_SUFFIX);

	return length > suffix_length && !strcmp(name + length - suffix_length, LIST_SUFFIX);
}

/* The debug package of a package with this list: PACKAGE.list or PACKAGE:ARCHITECTURE.list. */
static char *debug_package_of(const char *list)
{
	size_t length = op_min_u64(strcspn(list, ":"), strlen(list) - strlen(LIST_SUFFIX));
	const char *suffix = "-dbgsym";
	struct op_text name = { 0 };

	for (size_t i = 0; i < op_array_size(exceptions); i++)
		if (!strncmp(list, exceptions[i].prefix, strlen(exceptions[i].prefix)))
			suffix = exceptions[i].suffix;
	op_text_printf(&name, "%.*s%s", (int)length, list, suffix);
	return op_text_steal(&name);
}

/* A path as a list may have it, and the place of its package. */
struct wanted {
	const char *path;
	char **package;
};

static int compare_wanted(const void *left, const void *right)
{
	const struct wanted *a = left, *b = right;

	return strcmp(a->path, b->path);
}

/* On a system with merged /usr, a list may have a file without /usr. Returns the new `nr`. */
static size_t add_wanted(struct wanted *wanted, size_t nr, const char *path, char **package)
{
	if (!path || *path != '/' || strchr(path, '\n'))
		return nr;
	wanted[nr++] = (struct wanted){ path, package };
	if (!strncmp(path, USR "/", sizeof(USR)))
		wanted[nr++] = (struct wanted){ path + strlen(USR), package };
	return nr;
}

/* Several images may have one path. */
static int found(const struct wanted *wanted, size_t nr, const struct wanted *at, const char *list)
{
	while (at > wanted && !compare_wanted(at - 1, at))
		at--;
	for (const struct wanted *next = at; next < wanted + nr && !compare_wanted(next, at); next++) {
		if (!*next->package)
			*next->package = debug_package_of(list);
		if (!*next->package)
			return -ENOMEM;
	}
	return 0;
}

/* A list is one path in each line. */
static int search_list(int dir_fd, const char *list, const struct wanted *wanted, size_t nr)
{
	char *text, *end, *text_end;
	int err = op_file_read(dir_fd, list, LIST_BYTES, &text);

	if (err)
		return err == -ENOMEM ? err : 0;
	/* A list may have megabytes, and strchr of sanitizers reads on to the end each time. */
	text_end = text + strlen(text);
	for (char *line = text; !err && (end = memchr(line, '\n', (size_t)(text_end - line))); line = end + 1) {
		const struct wanted key = { .path = line }, *at;

		*end = '\0';
		at = bsearch(&key, wanted, nr, sizeof(*wanted), compare_wanted);
		err = at ? found(wanted, nr, at, list) : 0;
	}
	free(text);
	return err;
}

/* Not through dpkg-query: it reads its whole database, which costs more than the report. */
static int search_lists(DIR *dir, const struct wanted *wanted, size_t nr)
{
	struct dirent *entry;
	int err = 0;

	while (!err && (entry = readdir(dir)))
		if (is_list(entry->d_name))
			err = search_list(dirfd(dir), entry->d_name, wanted, nr);
	return err;
}

int opr_packages_find(const char *lists, const char *const *paths, size_t nr_paths, char **ret_packages)
{
	struct wanted *wanted = calloc(nr_paths + 1, 2 * sizeof(*wanted));
	size_t nr = 0;
	DIR *dir;
	int err = 0;

	for (size_t i = 0; i < nr_paths; i++) {
		ret_packages[i] = NULL;
		nr = wanted ? add_wanted(wanted, nr, paths[i], &ret_packages[i]) : 0;
	}
	if (!wanted)
		return -ENOMEM;
	qsort(wanted, nr, sizeof(*wanted), compare_wanted);
	dir = nr ? opendir(lists) : NULL;
	if (dir) {
		err = search_lists(dir, wanted, nr);
		closedir(dir);
	}
	free(wanted);
	return err;
}

/* ---- the archive of the debug packages ---- */

/* Where distributions with packages NAME-dbgsym keep them: the codename stands in between. */
static const struct {
	const char *id; /* in os-release(5) */
	const char *before, *after;
} archives[] = {
	{ "debian", "deb http://deb.debian.org/debian-debug/ ", "-debug main" },
	{ "ubuntu", "deb http://ddebs.ubuntu.com/ ", " main restricted universe multiverse" },
};

/* Copies the value of a line KEY=VALUE, which may have quotes. False: there is none. */
static bool release_value(const char *os_release, const char *key, char *value, size_t size)
{
	const char *at = os_release;
	size_t length;

	while (at && (strncmp(at, key, strlen(key)) != 0 || at[strlen(key)] != '=')) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return false;
	at += strlen(key) + 1;
	at += *at == '"' || *at == '\'';
	length = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-");
	if (!length || length >= size || (at[length] && !strchr("\"'\n", at[length])))
		return false;
	snprintf(value, size, "%.*s", (int)length, at);
	return true;
}

char *opr_packages_debug_archive_of(const char *os_release)
{
	char id[32], codename[32], *line = NULL;

	if (!release_value(os_release, "ID", id, sizeof(id)) ||
	    !release_value(os_release, "VERSION_CODENAME", codename, sizeof(codename)))
		return NULL;
	for (size_t i = 0; i < op_array_size(archives); i++)
		if (!strcmp(archives[i].id, id))
			return asprintf(&line, "%s%s%s", archives[i].before, codename, archives[i].after) < 0 ? NULL : line;
	return NULL;
}

char *opr_packages_debug_archive(void)
{
	char *text = NULL, *line;

	if (op_file_read(AT_FDCWD, "/etc/os-release", RELEASE_BYTES, &text) < 0 &&
	    op_file_read(AT_FDCWD, "/usr/lib/os-release", RELEASE_BYTES, &text) < 0)
		return NULL;
	line = opr_packages_debug_archive_of(text);
	free(text);
	return line;
}
