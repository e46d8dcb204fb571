/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/merge_option.h"

#include <errno.h>

#include "tools/common/log.h"
#include "tools/common/option_values.h"

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
