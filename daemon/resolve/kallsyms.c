/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/resolve/kallsyms.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 256
#define FIRST_MADE 64

/* Whether a line, "address type name", has this name; most lines are done with after one look at their end. */
static bool names(const char *line, size_t length, const char *name)
{
	size_t name_length = strlen(name);

	return length > name_length + 2 && line[length - 1] == '\n' && line[length - name_length - 2] == ' ' &&
	       !memcmp(line + length - name_length - 1, name, name_length);
}

static int append(struct opd_kallsyms *kallsyms, uint64_t start, const char *name)
{
	struct opd_kallsym made = { .start = start, .name = strdup(name) };

	if (made.name && kallsyms->nr_made == kallsyms->capacity) {
		size_t capacity = kallsyms->capacity ? kallsyms->capacity * 2 : FIRST_MADE;
		struct opd_kallsym *larger = realloc(kallsyms->made, capacity * sizeof(*larger));

		if (larger) {
			kallsyms->made = larger;
			kallsyms->capacity = capacity;
		}
	}
	if (!made.name || kallsyms->nr_made == kallsyms->capacity) {
		free(made.name);
		return -ENOMEM;
	}
	kallsyms->made[kallsyms->nr_made++] = made;
	return 0;
}

/* "address type name\t[bpf]" and the like. */
static int take_made(struct opd_kallsyms *kallsyms, const char *line, size_t length)
{
	static const struct {
		const char *name;
		bool is_bpf;
	} owners[] = { { "\t[bpf]\n", true }, { "\t[__builtin__ftrace]\n", false }, { "\t[__builtin__kprobes]\n", false } };
	unsigned long long address;
	char name[NAME_BYTES];
	size_t i = 0;

	if (line[length - 1] != '\n' || length < 2 || line[length - 2] != ']')
		return 0;
	while (i < op_array_size(owners) &&
	       (length <= strlen(owners[i].name) || strcmp(line + length - strlen(owners[i].name), owners[i].name)))
		i++;
	if (i == op_array_size(owners) || sscanf(line, "%llx %*c %255s", &address, name) != 2 || !address)
		return 0;
	kallsyms->has_bpf |= owners[i].is_bpf;
	return append(kallsyms, address, name);
}

static int compare_starts(const void *left, const void *right)
{
	const struct opd_kallsym *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

static int take_lines(struct opd_kallsyms *kallsyms, FILE *file)
{
	uint64_t text = 0, stext = 0, etext = 0;
	size_t capacity = 0;
	char *line = NULL;
	ssize_t length;
	int err = 0;

	while (!err && (length = getline(&line, &capacity, file)) > 0) {
		if (names(line, (size_t)length, "_text"))
			text = strtoull(line, NULL, 16);
		else if (names(line, (size_t)length, "_stext"))
			stext = strtoull(line, NULL, 16);
		else if (names(line, (size_t)length, "_etext"))
			etext = strtoull(line, NULL, 16);
		else
			err = take_made(kallsyms, line, (size_t)length);
	}
	free(line);
	if (!text)
		text = stext;
	if (text && text < etext) {
		kallsyms->text_start = text;
		kallsyms->text_end = etext;
	}
	return err;
}

static FILE *open_list(const char *proc_path)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/kallsyms", proc_path);
	return fopen(path, "re");
}

uint64_t opd_kallsyms_text(const char *proc_path)
{
	FILE *file = open_list(proc_path);
	size_t capacity = 0;
	uint64_t text = 0;
	char *line = NULL;
	ssize_t length;
	bool is_it = false;

	while (file && !is_it && (length = getline(&line, &capacity, file)) > 0) {
		is_it = names(line, (size_t)length, "_text");
		if (is_it)
			text = strtoull(line, NULL, 16);
	}
	free(line);
	if (file)
		fclose(file);
	return text;
}

int opd_kallsyms_read(const char *proc_path, struct opd_kallsyms *kallsyms)
{
	FILE *file = open_list(proc_path);
	int err;

	*kallsyms = (struct opd_kallsyms){ 0 };
	if (!file)
		return 0;
	err = take_lines(kallsyms, file);
	fclose(file);
	if (kallsyms->nr_made)
		qsort(kallsyms->made, kallsyms->nr_made, sizeof(*kallsyms->made), compare_starts);
	return err;
}

void opd_kallsyms_free(struct opd_kallsyms *kallsyms)
{
	for (size_t i = 0; i < kallsyms->nr_made; i++)
		free(kallsyms->made[i].name);
	free(kallsyms->made);
	*kallsyms = (struct opd_kallsyms){ 0 };
}
