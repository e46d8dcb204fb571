/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/docker_name.h"

#include <ctype.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/sys.h"

#define DIRECTORY     "/var/lib/docker/containers"
#define DIRECTORY_ENV "OPD_DOCKER_CONTAINERS" /* environment: another one, for tests */
#define ID_DIGITS     64
#define FILE_MAX      (1u << 20)
#define NAME_BYTES    128u

/* A regular file of root or of this user, and no link. The contents end with a NUL. NULL: none. */
static char *read_file(const char *id)
{
	const char *directory = getenv(DIRECTORY_ENV);
	struct op_text path = { 0 };
	char *bytes = NULL;
	struct stat st;
	ssize_t nr;
	int fd;

	op_text_printf(&path, "%s/%.*s/config.v2.json", directory ? directory : DIRECTORY, ID_DIGITS, id);
	fd = path.failed ? -1 : open(op_text_get(&path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	op_text_free(&path);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && (!st.st_uid || st.st_uid == geteuid()) && st.st_size < FILE_MAX)
		bytes = malloc(FILE_MAX + 1);
	nr = bytes ? op_sys_pread(fd, bytes, FILE_MAX, 0) : -1;
	close(fd);
	if (nr < 0) {
		free(bytes);
		return NULL;
	}
	bytes[nr] = '\0';
	return bytes;
}

/* Behind the closing quote of a string; the end of the text if it has none. */
static const char *skip_string(const char *c)
{
	for (; *c && *c != '"'; c++)
		if (*c == '\\' && c[1])
			c++;
	return *c ? c + 1 : c;
}

static const char *skip_blanks(const char *c)
{
	return c + strspn(c, " \t\r\n");
}

/* The string of the key "Name" of the outermost object, behind its quote; NULL: none. */
static const char *find_name(const char *json)
{
	static const char key[] = "Name\"";
	size_t depth = 0;

	for (const char *c = json; *c;) {
		const char *string = c + 1;

		depth += *c == '{' || *c == '[';
		depth -= (*c == '}' || *c == ']') && depth;
		if (*c++ != '"')
			continue;
		c = skip_string(c);
		if (depth != 1 || strncmp(string, key, strlen(key)) != 0)
			continue;
		c = skip_blanks(c);
		if (*c != ':')
			continue;
		c = skip_blanks(c + 1);
		return *c == '"' ? c + 1 : NULL;
	}
	return NULL;
}

/* "" without a name. */
static void read_name(const char *id, char ret_name[NAME_BYTES + 1])
{
	char *json = read_file(id);
	const char *name = json ? find_name(json) : NULL;
	size_t length = 0;

	*ret_name = '\0';
	if (name && *name == '/')
		name++;
	while (name && (isalnum((unsigned char)name[length]) || (name[length] && strchr("_.-", name[length]))))
		length++;
	if (length && length <= NAME_BYTES && name[length] == '"')
		snprintf(ret_name, NAME_BYTES + 1, "%.*s", (int)length, name);
	free(json);
}

/* The rows of a container follow each other: the last one is remembered. */
void opr_docker_name_add(struct op_text *text, const char *id)
{
	static char last_id[ID_DIGITS + 1], last_name[NAME_BYTES + 1];

	if (strncmp(last_id, id, ID_DIGITS) != 0) {
		snprintf(last_id, sizeof(last_id), "%.*s", ID_DIGITS, id);
		read_name(id, last_name);
	}
	if (*last_name)
		op_text_printf(text, " (%s)", last_name);
}
