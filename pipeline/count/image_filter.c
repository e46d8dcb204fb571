/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/count/image_filter.h"

#include <stdlib.h>

struct opd_image_filter {
	char **names;
	size_t nr_names;
};

/* Takes the name over. */
static int add(struct opd_image_filter *filter, char *name)
{
	char **names = name ? reallocarray(filter->names, filter->nr_names + 1, sizeof(*names)) : NULL;

	if (!names) {
		free(name);
		return -1;
	}
	filter->names = names;
	names[filter->nr_names++] = name;
	return 0;
}

static int add_with_file(struct opd_image_filter *filter, const char *name)
{
	char *path = *name == '/' ? realpath(name, NULL) : NULL;

	if (add(filter, strdup(name)) < 0) {
		free(path);
		return -1;
	}
	return path ? add(filter, path) : 0;
}

struct opd_image_filter *opd_image_filter_new(const char *list)
{
	struct opd_image_filter *filter = calloc(1, sizeof(*filter));
	char *copy = strdup(list);
	bool failed = !filter || !copy;

	for (char *rest = copy, *name; !failed && (name = strsep(&rest, ","));)
		failed = *name && add_with_file(filter, name) < 0;
	free(copy);
	if (!failed)
		return filter;
	opd_image_filter_free(filter);
	return NULL;
}

void opd_image_filter_free(struct opd_image_filter *filter)
{
	if (!filter)
		return;
	for (size_t i = 0; i < filter->nr_names; i++)
		free(filter->names[i]);
	free(filter->names);
	free(filter);
}

static bool has_name(const struct opd_image_filter *filter, const char *name)
{
	for (size_t i = 0; name && i < filter->nr_names; i++)
		if (!strcmp(filter->names[i], name))
			return true;
	return false;
}

/* The name of a region is a label, not an image. */
static bool is_wanted(const struct opd_image_filter *filter, const struct op_dcookie_row *row)
{
	return row->id.name.kind != OP_IMAGE_ANON && (has_name(filter, row->id.name.name) || has_name(filter, row->host_path));
}

static bool wants_image(const struct opd_image_filter *filter, const struct op_dcookie_table *table, uint64_t cookie)
{
	struct op_dcookie_row *row;

	if (cookie == op_dcookie_overflow(table))
		return true;
	row = op_dcookie_row(table, cookie);
	if (op_dcookie_is_program(&row->id))
		row = op_dcookie_row(table, row->id.program_of);
	if (op_unlikely(row->wanted == OP_DCOOKIE_NOT_ASKED))
		row->wanted = is_wanted(filter, row) ? OP_DCOOKIE_WANTED : OP_DCOOKIE_NOT_WANTED;
	return row->wanted == OP_DCOOKIE_WANTED;
}

bool opd_image_filter_wants(const struct opd_image_filter *filter, const struct op_dcookie_table *table, uint64_t app_cookie,
			    uint64_t image_cookie)
{
	return wants_image(filter, table, image_cookie) || (app_cookie != image_cookie && wants_image(filter, table, app_cookie));
}
