/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/resolve/naming.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int opd_name_add(struct opd_name **newest, const char *comm, uint64_t from_ns)
{
	struct opd_name *known = opd_name_at(*newest, from_ns), **at = newest, *name;

	if (known && known->from_ns <= from_ns && !strcmp(known->comm, comm))
		return 0;
	name = calloc(1, sizeof(*name));
	if (!name)
		return -ENOMEM;
	snprintf(name->comm, sizeof(name->comm), "%s", comm);
	name->from_ns = from_ns;
	while (*at && (*at)->from_ns > from_ns)
		at = &(*at)->older;
	name->older = *at;
	*at = name;
	return 0;
}

struct opd_name *opd_name_at(struct opd_name *newest, uint64_t time_ns)
{
	struct opd_name *name = newest;

	while (name && name->from_ns > time_ns && name->older)
		name = name->older;
	return name;
}

void opd_names_prune(struct opd_name *newest, uint64_t horizon_ns)
{
	struct opd_name *name = opd_name_at(newest, horizon_ns ? horizon_ns - 1 : 0);

	if (!name)
		return;
	opd_names_free(name->older);
	name->older = NULL;
}

void opd_names_free(struct opd_name *newest)
{
	while (newest) {
		struct opd_name *older = newest->older;

		free(newest);
		newest = older;
	}
}
