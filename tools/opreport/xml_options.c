/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opreport/xml_options.h"

#include <errno.h>

#include "tools/common/log.h"

static const char *join_words(struct opr_xml_values *values, const struct opr_words *words)
{
	struct op_text text = { 0 };
	char *joined;

	for (size_t i = 0; i < words->nr_words; i++)
		op_text_printf(&text, "%s%s", i ? "," : "", words->words[i]);
	joined = op_text_steal(&text);
	if (joined)
		values->texts[values->nr_texts++] = joined;
	return joined;
}

/* Whether the user named sessions: {current} is the default. */
static bool names_sessions(const struct opr_spec *spec)
{
	for (size_t i = 0; i < spec->seen.nr_words; i++)
		if (!strncmp(spec->seen.words[i], "session:", strlen("session:")))
			return true;
	return false;
}

int opr_xml_options(const struct opr_options *options, const struct opr_spec *spec, struct opr_xml_values *values,
		    struct opr_xml_attribute *ret_attributes, size_t *ret_nr_attributes)
{
	static const struct opr_words none;
	const struct {
		const char *name;
		bool flag;
		const struct opr_words *words;
	} rows[OPR_NR_XML_OPTIONS] = {
		{ "session", false, names_sessions(spec) ? &spec->sessions : &none },
		{ "debuginfo", options->debug_info, NULL },
		{ "details", options->details, NULL },
		{ "imagepath", false, &options->image_path },
		{ "merge", false, &options->merge.words },
		{ "excludedependent", options->exclude_dependent, NULL },
		{ "excludesymbols", false, &options->exclude_symbols },
		{ "includesymbols", false, &options->include_symbols },
	};

	*ret_nr_attributes = 0;
	for (size_t i = 0; i < OPR_NR_XML_OPTIONS; i++) {
		const char *value = "true";

		if (!rows[i].flag && !(rows[i].words && rows[i].words->nr_words))
			continue;
		if (rows[i].words)
			value = join_words(values, rows[i].words);
		if (!value)
			return opr_no_memory();
		ret_attributes[(*ret_nr_attributes)++] = (struct opr_xml_attribute){ rows[i].name, value };
	}
	return 0;
}

void opr_xml_values_free(struct opr_xml_values *values)
{
	for (size_t i = 0; i < values->nr_texts; i++)
		free(values->texts[i]);
	values->nr_texts = 0;
}
