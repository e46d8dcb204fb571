/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/source_set.h"

#include <errno.h>

#include "tools/common/log.h"
#include "tools/common/option_values.h"

#define VARIABLE "OPREPORT_SYMBOLS_FROM"

static const struct {
	const char *name;
	uint32_t source;
} names[] = {
	{ "symtab", OPR_FROM_SYMTAB }, { "dynsym", OPR_FROM_DYNSYM }, { "debugdata", OPR_FROM_DEBUGDATA },
	{ "plt", OPR_FROM_PLT },       { "ranges", OPR_FROM_RANGES },
	{ "debuginfod", OPR_FROM_SYMTAB | OPR_FROM_DEBUGINFOD },
	{ "table", OPR_FROM_TABLE },   { "gopclntab", OPR_FROM_GO },
};

static uint32_t source_of(const char *name)
{
	for (size_t i = 0; i < op_array_size(names); i++)
		if (!strcmp(name, names[i].name))
			return names[i].source;
	return 0;
}

/* `origin` is what the user wrote the list behind. */
static int take_list(uint32_t *sources, const char *list, const char *origin)
{
	struct opr_words words = { 0 };
	uint32_t sum = 0, source;
	int err = opr_take_words(&words, list);

	for (size_t i = 0; i < words.nr_words && !err; i++) {
		source = source_of(words.words[i]);
		if (!source)
			err = opr_error(-EINVAL, "%s: there is no source of symbols '%s': the sources are " OPR_SOURCE_NAMES,
					origin, words.words[i]);
		sum |= source;
	}
	if (!err && !sum)
		err = opr_error(-EINVAL, "%s: the list is empty: the sources are " OPR_SOURCE_NAMES, origin);
	if (!err)
		*sources = sum;
	opr_words_free(&words);
	return err;
}

int opr_take_sources(void *field, const char *value)
{
	return take_list(field, value, "--symbols-from");
}

int opr_sources_complete(uint32_t *sources)
{
	const char *list = getenv(VARIABLE);

	if (*sources)
		return 0;
	if (list && *list)
		return take_list(sources, list, VARIABLE);
	*sources = OPR_FROM_ALL;
	return 0;
}
