/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/spec_words.h"

#include <errno.h>

#include "libop/base/text.h"
#include "tools/common/log.h"

#define NR_SIDES 2

struct split {
	struct opr_words outside, blocks[NR_SIDES];
	size_t nr_opened, nr_closed;
};

/* 0; -EINVAL: the braces make no pair of blocks. */
static int take_brace(struct split *split, char brace)
{
	if (brace == '{' && (split->nr_opened > split->nr_closed || split->nr_opened == NR_SIDES))
		return -EINVAL;
	if (brace == '}' && split->nr_opened == split->nr_closed)
		return -EINVAL;
	if (brace == '{')
		split->nr_opened++;
	else
		split->nr_closed++;
	return 0;
}

static int take_word(struct split *split, const char *word)
{
	bool inside = split->nr_opened > split->nr_closed;

	if (!strcmp(word, "{") || !strcmp(word, "}"))
		return take_brace(split, *word);
	if (!strcmp(word, "{}")) {
		int err = take_brace(split, '{');

		return err ? err : take_brace(split, '}');
	}
	return opr_words_add(inside ? &split->blocks[split->nr_opened - 1] : &split->outside, word);
}

static int add_all(struct opr_words *to, const struct opr_words *from)
{
	int err = 0;

	for (size_t i = 0; i < from->nr_words && !err; i++)
		err = opr_words_add(to, from->words[i]);
	return err;
}

static int join(struct opr_spec_words *words, const struct split *split)
{
	bool first = split->blocks[0].nr_words, second = split->blocks[1].nr_words;
	int err = 0;

	if (split->nr_opened != split->nr_closed || split->nr_opened == 1 || (!first && second))
		return -EINVAL;
	words->differential = split->nr_opened && (first || split->outside.nr_words);
	for (size_t i = 0; i < NR_SIDES && !err; i++) {
		err = add_all(&words->sides[i], &split->outside);
		if (!err)
			err = add_all(&words->sides[i], &split->blocks[i]);
	}
	return err;
}

static int report_invalid(const struct opr_words *words)
{
	struct op_text text = { 0 };

	for (size_t i = 0; i < words->nr_words; i++)
		op_text_printf(&text, " %s", words->words[i]);
	opr_error(-EINVAL, "invalid profile specification%s: two blocks { ... } { ... } are compared", op_text_get(&text));
	op_text_free(&text);
	return -EINVAL;
}

int opr_spec_words_split(struct opr_spec_words *words, const struct opr_words *all)
{
	struct split split = { 0 };
	int err = 0;

	for (size_t i = 0; i < all->nr_words && !err; i++)
		err = take_word(&split, all->words[i]);
	if (!err)
		err = join(words, &split);
	opr_words_free(&split.outside);
	for (size_t i = 0; i < NR_SIDES; i++)
		opr_words_free(&split.blocks[i]);
	return err == -EINVAL ? report_invalid(all) : err ? opr_no_memory() : 0;
}

void opr_spec_words_free(struct opr_spec_words *words)
{
	for (size_t i = 0; i < NR_SIDES; i++)
		opr_words_free(&words->sides[i]);
}
