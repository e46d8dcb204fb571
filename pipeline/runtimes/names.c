/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/runtimes/names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "libop/base/grow.h"
#include "libop/base/htable.h"

struct name {
	struct op_hlink link;
	uint32_t number;
	char text[]; /* ends with a NUL */
};

struct opd_runtime_names {
	struct op_htable table;
	struct name **list; /* by number - 1 */
	size_t nr, capacity;
	uint64_t seed; /* random: programs cannot choose names that share a bucket */
};

struct opd_runtime_names *opd_runtime_names_new(void)
{
	struct opd_runtime_names *names = calloc(1, sizeof(*names));

	if (names && getrandom(&names->seed, sizeof(names->seed), GRND_NONBLOCK) != (ssize_t)sizeof(names->seed))
		names->seed = (uintptr_t)names;
	return names;
}

static void free_name(struct op_hlink *link, void *arg OP_UNUSED)
{
	free(op_container_of(link, struct name, link));
}

void opd_runtime_names_free(struct opd_runtime_names *names)
{
	if (!names)
		return;
	op_htable_visit(&names->table, free_name, NULL);
	op_htable_free(&names->table);
	free(names->list);
	free(names);
}

static uint32_t find_or_add(struct opd_runtime_names *names, const char *text, size_t length)
{
	uint64_t hash = op_hash_bytes(names->seed, text, length);
	struct name *name;

	for (struct op_hlink *link = op_htable_first(&names->table, hash); link; link = op_htable_next(link)) {
		name = op_container_of(link, struct name, link);
		if (!strcmp(name->text, text))
			return name->number;
	}
	if (!op_grow(&names->list, &names->capacity, names->nr + 1))
		return 0;
	name = malloc(sizeof(*name) + length + 1);
	if (!name)
		return 0;
	memcpy(name->text, text, length + 1);
	if (op_htable_insert(&names->table, &name->link, hash)) {
		free(name);
		return 0;
	}
	names->list[names->nr++] = name;
	name->number = (uint32_t)names->nr;
	return name->number;
}

uint32_t opd_runtime_names_add(struct opd_runtime_names *names, enum op_runtime runtime, const char *file, const char *function,
			       uint32_t line)
{
	struct op_text text = { 0 };
	uint32_t number = 0;

	/* room for one such name of each runtime */
	if (names->nr >= OPD_RUNTIME_NAMES_MAX)
		op_runtime_name_write(&text, runtime, "", "(other functions)", 0);
	else
		op_runtime_name_write(&text, runtime, file, function, line);
	if (!text.failed)
		number = find_or_add(names, text.data, text.length);
	free(op_text_steal(&text));
	return number;
}

const char *opd_runtime_names_get(const struct opd_runtime_names *names, uint32_t number)
{
	return names->list[number - 1]->text;
}

size_t opd_runtime_names_nr(const struct opd_runtime_names *names)
{
	return names->nr;
}
