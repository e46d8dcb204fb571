/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/words.h"

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

/* Copies up to the next separating comma. Returns the text behind it, or NULL at the end. */
static const char *copy_word(const char *text, char *out)
{
	for (; *text && *text != ','; text++) {
		if (text[0] == '\\' && text[1] == ',')
			text++;
		*out++ = *text;
	}
	*out = '\0';
	return *text ? text + 1 : NULL;
}

int opr_words_split(struct opr_words *words, const char *text)
{
	const char *rest = text;
	int err = 0;

	opr_words_free(words);
	while (rest && !err) {
		char *word = malloc(strlen(rest) + 1);

		if (!word)
			return -ENOMEM;
		rest = copy_word(rest, word);
		if (*word)
			err = append(words, word);
		else
			free(word);
	}
	return err;
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
