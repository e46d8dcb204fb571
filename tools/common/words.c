/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/words.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>

#include "libop/base/grow.h"

/* `word` becomes the list's, or is freed. */
static int append(struct opr_words *words, char *word)
{
	if (!word || !op_grow(&words->words, &words->capacity, words->nr_words + 1)) {
		free(word);
		return -ENOMEM;
	}
	words->words[words->nr_words++] = word;
	return 0;
}

int opr_words_add(struct opr_words *words, const char *word)
{
	return append(words, strdup(word));
}

bool opr_is_of_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '~';
}

size_t opr_operator_length(const char *text)
{
	static const char word[] = "operator";
	size_t length = strlen(word);

	if (strncmp(text, word, length) != 0 || opr_is_of_name(text[length]))
		return 0;
	if (text[length] == ' ') /* new, delete, or a type */
		return strcspn(text, "(,");
	if (!strncmp(text + length, "()", 2) || !strncmp(text + length, "[]", 2) || !strncmp(text + length, ",(", 2))
		return length + (text[length] == ',' ? 1 : 2);
	length += strspn(text + length, "<>=!+-*/%&|^~");
	/* "operator< <int>" */
	return text[length] == ' ' && text[length + 1] == '<' ? length + 1 : length;
}

/*
 * Copies up to the next separating comma. Returns the text behind it, or NULL at the end.
 * *ret_depth: the brackets that are open there.
 */
static const char *copy_word(const char *text, bool with_brackets, char *out, size_t *ret_depth)
{
	const char *begin = text;
	size_t depth = 0;

	for (; *text && (*text != ',' || depth); text++) {
		size_t nr_operator = with_brackets && (text == begin || !opr_is_of_name(text[-1])) ? opr_operator_length(text) : 0;

		if (nr_operator) {
			out = mempcpy(out, text, nr_operator);
			text += nr_operator - 1;
			continue;
		}
		if (with_brackets && strchr("(<[{", *text))
			depth++;
		else if (with_brackets && depth && strchr(")>]}", *text) && (text == begin || text[-1] != '-'))
			depth--;
		if (text[0] == '\\' && text[1] == ',')
			text++;
		*out++ = *text;
	}
	*out = '\0';
	*ret_depth = depth;
	return *text ? text + 1 : NULL;
}

static int split(struct opr_words *words, const char *text, bool with_brackets)
{
	const char *rest = text;
	size_t depth;
	int err = 0;

	opr_words_free(words);
	while (rest && !err) {
		char *word = malloc(strlen(rest) + 1);

		if (!word)
			return -ENOMEM;
		rest = copy_word(rest, with_brackets, word, &depth);
		if (depth) {
			free(word);
			return split(words, text, false);
		}
		if (*word)
			err = append(words, word);
		else
			free(word);
	}
	return err;
}

int opr_words_split(struct opr_words *words, const char *text)
{
	return split(words, text, false);
}

int opr_words_split_functions(struct opr_words *words, const char *text)
{
	return split(words, text, true);
}

bool opr_words_have(const struct opr_words *words, const char *word)
{
	for (size_t i = 0; i < words->nr_words; i++)
		if (!strcmp(words->words[i], word))
			return true;
	return false;
}

bool opr_words_match(const struct opr_words *words, const char *string)
{
	for (size_t i = 0; i < words->nr_words; i++)
		if (!strcmp(words->words[i], string) || !fnmatch(words->words[i], string, 0))
			return true;
	return false;
}

void opr_words_free(struct opr_words *words)
{
	if (!words)
		return;
	for (size_t i = 0; i < words->nr_words; i++)
		free(words->words[i]);
	free(words->words);
	*words = (struct opr_words){ 0 };
}
