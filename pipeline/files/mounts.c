/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/files/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>

#include "libop/base/file.h"
#include "libop/base/parse.h"

#define UPPER_OPTION  "upperdir="
#define LOWER_OPTION  "lowerdir="
#define ADD_OPTION    "lowerdir+="
#define FIELDS_BEFORE 5 /* id, parent, device, root, mount point */

static bool is_octal(const char *s)
{
	return s[0] >= '0' && s[0] <= '3' && s[1] >= '0' && s[1] <= '7' && s[2] >= '0' && s[2] <= '7';
}

/* Decodes in place. The kernel writes blanks and the like as a backslash and three octal digits. */
static void unescape(char *text)
{
	char *out = text;

	for (; *text; text++) {
		if (text[0] == '\\' && is_octal(text + 1)) {
			*out++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
			text += 3;
		} else {
			*out++ = *text;
		}
	}
	*out = '\0';
}

/* "id parent maj:min root point options optional... - type source super-options" */
static bool parse_line(char *line, struct opd_mount *ret_mount)
{
	char *rest, *type, *fields[FIELDS_BEFORE], *state = NULL, *after[3];
	unsigned int maj, min;
	uint64_t id;

	rest = strstr(line, " - ");
	if (!rest)
		return false;
	*rest = '\0';
	for (size_t i = 0; i < FIELDS_BEFORE; i++) {
		fields[i] = strtok_r(i ? NULL : line, " ", &state);
		if (!fields[i])
			return false;
	}
	if (sscanf(fields[2], "%u:%u", &maj, &min) != 2 || op_parse_u64(fields[0], 0, UINT64_MAX, &id))
		return false;
	type = rest + strlen(" - ");
	for (size_t i = 0; i < op_array_size(after); i++)
		after[i] = strtok_r(i ? NULL : type, " ", &state);
	unescape(fields[3]);
	unescape(fields[4]);
	*ret_mount = (struct opd_mount){
		.id = id,
		.device = makedev(maj, min),
		.root = fields[3],
		.point = fields[4],
		.type = after[0],
		.options = after[2],
	};
	return true;
}

static size_t count_lines(const char *text)
{
	size_t nr = 1;

	for (; *text; text++)
		nr += *text == '\n';
	return nr;
}

int opd_mounts_read(const char *path, struct opd_mounts *ret_mounts)
{
	struct opd_mounts mounts = { 0 };
	char *line, *state = NULL;
	size_t nr_lines;
	int err = op_file_read(AT_FDCWD, path, OPD_MOUNTS_MAX_BYTES, &mounts.text);

	if (err)
		return err;
	nr_lines = count_lines(mounts.text);
	mounts.nr_bytes = strlen(mounts.text) + 1 + nr_lines * sizeof(*mounts.rows);
	mounts.rows = calloc(nr_lines, sizeof(*mounts.rows));
	if (!mounts.rows) {
		free(mounts.text);
		return -ENOMEM;
	}
	for (line = strtok_r(mounts.text, "\n", &state); line; line = strtok_r(NULL, "\n", &state))
		if (parse_line(line, &mounts.rows[mounts.nr_rows]))
			mounts.nr_rows++;
	*ret_mounts = mounts;
	return 0;
}

void opd_mounts_free(struct opd_mounts *mounts)
{
	free(mounts->rows);
	free(mounts->text);
	*mounts = (struct opd_mounts){ 0 };
}

const char *opd_path_below(const char *directory, const char *path)
{
	size_t length = strlen(directory);

	while (length && directory[length - 1] == '/')
		length--;
	if (strncmp(path, directory, length) != 0 || (path[length] && path[length] != '/'))
		return NULL;
	return path + length;
}

const struct opd_mount *opd_mounts_of(const struct opd_mounts *mounts, const char *path)
{
	const struct opd_mount *found = NULL;

	for (size_t i = 0; i < mounts->nr_rows; i++) {
		const struct opd_mount *mount = &mounts->rows[i];

		if (opd_path_below(mount->point, path) && (!found || strlen(mount->point) >= strlen(found->point)))
			found = mount;
	}
	return found;
}

const struct opd_mount *opd_mounts_by_id(const struct opd_mounts *mounts, uint64_t id)
{
	for (size_t i = 0; i < mounts->nr_rows; i++)
		if (mounts->rows[i].id == id)
			return &mounts->rows[i];
	return NULL;
}

/* Appends a directory and a path below it, with one slash between them. */
static void join(const char *directory, const char *rest, struct op_text *path)
{
	if (strcmp(directory, "/") != 0)
		op_text_add(path, directory);
	op_text_add(path, *rest || strcmp(directory, "/") != 0 ? rest : "/");
}

void opd_mount_inner_path(const struct opd_mount *mount, const char *path, struct op_text *inner)
{
	const char *rest = opd_path_below(mount->point, path);

	join(mount->root, rest ? rest : "", inner);
}

bool opd_mount_outer_path(const struct opd_mount *mount, const char *inner, struct op_text *path)
{
	const char *rest = opd_path_below(mount->root, inner);

	if (!rest)
		return false;
	join(mount->point, rest, path);
	return true;
}

/* ---- overlays ---- */

/*
 * Appends the nth directory of a list that is joined by ':'. A backslash precedes a colon that
 * belongs to a name.
 */
static bool nth_of_list(const char *list, size_t index, struct op_text *directory)
{
	for (; *list; list++) {
		if (*list == ':') {
			if (!index)
				break;
			index--;
			continue;
		}
		if (*list == '\\' && list[1])
			list++;
		if (!index)
			op_text_add_char(directory, *list);
	}
	return !index;
}

static size_t length_of_list(const char *list)
{
	size_t nr = 1;

	for (; *list; list++) {
		if (*list == '\\' && list[1])
			list++;
		else
			nr += *list == ':';
	}
	return nr;
}

/* Looks into one option for the layer; *index counts down over the layers. True: found. */
static bool layer_of_option(char *option, size_t *index, struct op_text *directory)
{
	bool is_list = !strncmp(option, LOWER_OPTION, strlen(LOWER_OPTION));
	size_t nr;

	unescape(option);
	if (is_list) {
		option += strlen(LOWER_OPTION);
		nr = length_of_list(option);
		if (*index < nr)
			return nth_of_list(option, *index, directory);
		*index -= nr;
	} else if (!strncmp(option, ADD_OPTION, strlen(ADD_OPTION))) {
		if (!*index) {
			op_text_add(directory, option + strlen(ADD_OPTION));
			return true;
		}
		--*index;
	}
	return false;
}

static void upper_of_option(char *option, struct op_text *directory)
{
	if (strncmp(option, UPPER_OPTION, strlen(UPPER_OPTION)) != 0)
		return;
	unescape(option);
	op_text_add(directory, option + strlen(UPPER_OPTION));
}

bool opd_mount_layer(const struct opd_mount *mount, size_t index, struct op_text *directory)
{
	char *options = opd_mount_is_overlay(mount) ? strdup(mount->options) : NULL, *state = NULL;
	size_t left = index ? index - 1 : 0;
	bool found = options && !index;

	if (!options)
		return false;
	for (char *option = strtok_r(options, ",", &state); option; option = strtok_r(NULL, ",", &state)) {
		if (!index)
			upper_of_option(option, directory);
		else if (layer_of_option(option, &left, directory)) {
			found = true;
			break;
		}
	}
	free(options);
	return found;
}
