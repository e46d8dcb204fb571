/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/archive_sums.h"

#include <errno.h>

#include "libop/base/file.h"
#include "tools/common/archive.h"

#define SUMS_BYTES_MAX (256u << 20)

/* Replaces the escapes of a name, in place. */
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

/* oparchive writes the sum of opd-archive last. */
static bool has_end(const char *text)
{
	static const char end[] = "  " OPR_ARCHIVE_FACTS "\n";
	size_t nr_bytes = strlen(text);

	return nr_bytes >= strlen(end) && !strcmp(text + nr_bytes - strlen(end), end);
}

static size_t count_lines(const char *text)
{
	size_t nr_lines = 1;

	while ((text = strchr(text, '\n'))) {
		nr_lines++;
		text++;
	}
	return nr_lines;
}

static int take_line(struct opr_sums *sums, char *line)
{
	bool escaped = *line == '\\';
	struct opr_sum *sum = &sums->sums[sums->nr_sums];
	char *name;

	line += escaped;
	if (strlen(line) <= OPR_SUM_DIGITS + 2) {
		sums->nr_damaged++;
		return 0;
	}
	name = line + OPR_SUM_DIGITS + 2;
	if (escaped)
		unescape(name);
	*sum = (struct opr_sum){ .digits = line, .name = name };
	sums->nr_sums++;
	return op_htable_insert(&sums->names, &sum->link, op_hash_bytes(0, name, strlen(name)));
}

int opr_sums_read(struct opr_sums *sums, int dir_fd)
{
	char *rest;
	int err;

	*sums = (struct opr_sums){ 0 };
	err = op_file_read(dir_fd, OPR_ARCHIVE_SUMS, SUMS_BYTES_MAX, &sums->text);
	if (err)
		return err;
	sums->has_end = has_end(sums->text);
	sums->sums = calloc(count_lines(sums->text), sizeof(*sums->sums));
	if (!sums->sums)
		return -ENOMEM;
	rest = sums->text;
	for (char *line; !err && (line = strsep(&rest, "\n"));)
		if (*line)
			err = take_line(sums, line);
	return err;
}

const struct opr_sum *opr_sums_find(const struct opr_sums *sums, const char *name)
{
	for (struct op_hlink *link = op_htable_first(&sums->names, op_hash_bytes(0, name, strlen(name))); link;
	     link = op_htable_next(link)) {
		const struct opr_sum *sum = op_container_of(link, struct opr_sum, link);

		if (!strcmp(sum->name, name))
			return sum;
	}
	return NULL;
}

void opr_sums_write(struct op_text *text, const char *digits, const char *name)
{
	if (strpbrk(name, "\n\\"))
		op_text_add_char(text, '\\');
	op_text_printf(text, "%.*s  ", OPR_SUM_DIGITS, digits);
	for (; *name; name++) {
		if (*name == '\n')
			op_text_add(text, "\\n");
		else if (*name == '\\')
			op_text_add(text, "\\\\");
		else
			op_text_add_char(text, *name);
	}
	op_text_add_char(text, '\n');
}

void opr_sums_free(struct opr_sums *sums)
{
	if (!sums)
		return;
	op_htable_free(&sums->names);
	free(sums->sums);
	free(sums->text);
	*sums = (struct opr_sums){ 0 };
}
