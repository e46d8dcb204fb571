/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/parse.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>

static int parse_number(const char *string, uint64_t *ret_value, const char **ret_rest)
{
	unsigned long long value;
	char *end;

	if (!isdigit((unsigned char)string[0]))
		return -EINVAL;
	errno = 0;
	value = strtoull(string, &end, 0);
	if (errno == ERANGE)
		return -ERANGE;
	if (end == string)
		return -EINVAL;
	*ret_value = value;
	*ret_rest = end;
	return 0;
}

int op_parse_u64(const char *string, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	const char *rest;
	uint64_t value;
	int err = parse_number(string, &value, &rest);

	if (err < 0)
		return err;
	if (*rest)
		return -EINVAL;
	if (value < min || value > max)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int op_parse_size_bytes(const char *string, uint64_t min, uint64_t max, uint64_t *ret_bytes)
{
	static const char suffixes[] = "KMG";
	const char *rest, *suffix;
	uint64_t value;
	int err = parse_number(string, &value, &rest);

	if (err < 0)
		return err;
	if (*rest) {
		unsigned int shift;

		suffix = strchr(suffixes, toupper((unsigned char)*rest));
		if (!suffix || rest[1])
			return -EINVAL;
		shift = 10 * ((unsigned int)(suffix - suffixes) + 1);
		if (value > UINT64_MAX >> shift)
			return -ERANGE;
		value <<= shift;
	}
	if (value < min || value > max)
		return -ERANGE;
	*ret_bytes = value;
	return 0;
}

int op_parse_bool(const char *string, bool *ret_value)
{
	static const struct {
		const char *word;
		bool value;
	} words[] = {
		{ "yes", true }, { "true", true },   { "on", true },   { "1", true },
		{ "no", false }, { "false", false }, { "off", false }, { "0", false },
	};

	for (size_t i = 0; i < op_array_size(words); i++) {
		if (!strcasecmp(string, words[i].word)) {
			*ret_value = words[i].value;
			return 0;
		}
	}
	return -EINVAL;
}
