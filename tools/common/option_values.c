/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/option_values.h"

#include <errno.h>
#include <math.h>

#include "tools/common/log.h"

int opr_take_string(void *field, const char *value)
{
	char **string = field;

	free(*string);
	*string = strdup(value);
	return *string ? 0 : opr_no_memory();
}

int opr_take_root(void *field, const char *value)
{
	char **string = field, *root = realpath(value, NULL);

	if (!root)
		return opr_error(-errno, "root %s: %s", value, strerror(errno));
	free(*string);
	*string = root;
	if (!strcmp(root, "/"))
		*root = '\0';
	return 0;
}

int opr_take_words(void *field, const char *value)
{
	return opr_words_split(field, value) < 0 ? opr_no_memory() : 0;
}

int opr_take_percent(void *field, const char *value)
{
	double percent;
	char *end;

	errno = 0;
	percent = strtod(value, &end);
	if (errno || end == value || *end || !isfinite(percent) || percent < 0 || percent > 100)
		return opr_error(-EINVAL, "illegal threshold '%s': a percentage from 0 to 100", value);
	*(double *)field = percent;
	return 0;
}

bool opr_find_word(const char *const *words, size_t nr_words, const char *word, size_t *ret_index)
{
	for (size_t i = 0; i < nr_words; i++) {
		if (!strcmp(word, words[i])) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}

static const struct {
	const char *word;
	struct opr_merge merge;
} merges[] = {
	{ "cpu", { .cpu = true } },
	{ "lib", { .lib = true } },
	{ "library", { .lib = true } },
	{ "tid", { .tid = true } },
	{ "tgid", { .tgid = true, .tid = true } },
	{ "unitmask", { .unit_mask = true } },
	{ "all", { .cpu = true, .lib = true, .tid = true, .tgid = true, .unit_mask = true } },
};

static bool add_merge(struct opr_merge *merge, const char *word)
{
	for (size_t i = 0; i < op_array_size(merges); i++) {
		const struct opr_merge *more = &merges[i].merge;

		if (strcmp(word, merges[i].word))
			continue;
		merge->cpu |= more->cpu;
		merge->lib |= more->lib;
		merge->tid |= more->tid;
		merge->tgid |= more->tgid;
		merge->unit_mask |= more->unit_mask;
		return true;
	}
	return false;
}

int opr_take_merge(void *field, const char *value)
{
	struct opr_merge_option *option = field;

	if (opr_take_words(&option->words, value) < 0)
		return -ENOMEM;
	option->merge = (struct opr_merge){ 0 };
	for (size_t i = 0; i < option->words.nr_words; i++)
		if (!add_merge(&option->merge, option->words.words[i]))
			return opr_error(-EINVAL, "unknown merge option '%s': cpu, lib, tid, tgid, unitmask or all",
					 option->words.words[i]);
	return 0;
}

int opr_take_verbose(void *field OP_UNUSED, const char *value)
{
	struct opr_words topics = { 0 };
	int err = opr_take_words(&topics, value);

	for (size_t i = 0; i < topics.nr_words && !err; i++)
		if (!opr_log_enable(topics.words[i]))
			err = opr_error(-EINVAL, "unknown verbose option '%s': all, debug, bfd, level1, sfile, stats or xml",
					topics.words[i]);
	opr_words_free(&topics);
	return err;
}

static void free_string(void *field)
{
	free(*(char **)field);
}

static void free_words(void *field)
{
	opr_words_free(field);
}

static void free_merge(void *field)
{
	opr_words_free(&((struct opr_merge_option *)field)->words);
}

static const struct {
	opr_take_fn *take;
	void (*release)(void *field);
} releases[] = {
	{ opr_take_string, free_string },
	{ opr_take_root, free_string },
	{ opr_take_words, free_words },
	{ opr_take_merge, free_merge },
};

void opr_command_free(const struct opr_command *command, void *options)
{
	for (size_t i = 0; i < command->nr_rows; i++)
		for (size_t j = 0; j < op_array_size(releases); j++)
			if (command->rows[i].take == releases[j].take)
				releases[j].release((char *)options + command->rows[i].offset);
}

int opr_command_run(const struct opr_command *command, int argc, const char **argv, void *options, struct opr_words *words,
		    int (*run)(const void *options))
{
	enum opr_request request;
	int err;

	opr_log_init(command->program);
	err = opr_command_read(command, argc, argv, options, words, &request);
	if (!err && request == OPR_RUN)
		err = run(options);
	opr_command_free(command, options);
	opr_words_free(words);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
