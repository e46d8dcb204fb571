/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/option_values.h"

#include <errno.h>
#include <math.h>

#include "libop/base/nearest.h"
#include "libop/base/parse.h"
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

int opr_take_functions(void *field, const char *value)
{
	return opr_words_split_functions(field, value) < 0 ? opr_no_memory() : 0;
}

int opr_take_more_words(void *field, const char *value)
{
	struct opr_words more = { 0 };
	int err = opr_words_split(&more, value);

	for (size_t i = 0; i < more.nr_words && !err; i++)
		err = opr_words_add(field, more.words[i]);
	opr_words_free(&more);
	return err ? opr_no_memory() : 0;
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

int opr_take_number(void *field, const char *value)
{
	uint64_t number;

	if (op_parse_u64(value, 1, SIZE_MAX - 1, &number) < 0)
		return opr_error(-EINVAL, "invalid number '%s': 1 or more", value);
	*(size_t *)field = (size_t)number;
	return 0;
}

int opr_refuse_word(const char *what, const char *word, const char *const *words, size_t nr_words)
{
	struct op_nearest nearest;
	struct op_text text = { 0 };

	op_nearest_init(&nearest, word);
	op_text_printf(&text, "%s '%s': ", what, word);
	for (size_t i = 0; i < nr_words; i++) {
		op_text_printf(&text, "%s%s", !i ? "" : i + 1 < nr_words ? ", " : " or ", words[i]);
		op_nearest_try(&nearest, words[i]);
	}
	op_nearest_add_hint(&nearest, "", &text);
	opr_error(-EINVAL, "%s", op_text_get(&text));
	op_text_free(&text);
	return -EINVAL;
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

int opr_take_verbose(void *field OP_UNUSED, const char *value)
{
	static const char *const names[] = {
		"all",
#define X(name, meaning) #name,
		OPR_TOPICS(X)
#undef X
	};
	struct opr_words topics = { 0 };
	int err = opr_take_words(&topics, *value ? value : names[1 + OPR_TOPIC_details]);

	for (size_t i = 0; i < topics.nr_words && !err; i++)
		if (!opr_log_enable(topics.words[i]))
			err = opr_refuse_word("unknown verbose option", topics.words[i], names, op_array_size(names));
	opr_words_free(&topics);
	return err;
}

void opr_value_free(opr_take_fn *take, void *field)
{
	if (take == opr_take_string || take == opr_take_root)
		free(*(char **)field);
	else if (take == opr_take_words || take == opr_take_more_words || take == opr_take_functions)
		opr_words_free(field);
}
