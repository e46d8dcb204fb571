/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/base/parse.h"

#include <ctype.h>
#include <errno.h>

#include "libop/base/clock.h"

#define DIGITS    "0123456789"
#define NS_DIGITS 9

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

int op_parse_decimal(const char *string, uint64_t max, uint64_t *ret_value)
{
	if (string[strspn(string, DIGITS)] || (string[0] == '0' && string[1]))
		return -EINVAL;
	return op_parse_u64(string, 0, max, ret_value);
}

int op_parse_time_ns(const char *string, uint64_t *ret_ns)
{
	size_t nr_digits = strcspn(string, ".");
	uint64_t seconds, ns;
	char digits[24];
	int err;

	if (string[nr_digits] != '.' || nr_digits >= sizeof(digits))
		return -EINVAL;
	snprintf(digits, sizeof(digits), "%.*s", (int)nr_digits, string);
	err = op_parse_decimal(digits, UINT64_MAX / OP_NS_PER_S, &seconds);
	if (err)
		return err;
	string += nr_digits + 1;
	if (strlen(string) != NS_DIGITS || strspn(string, DIGITS) != NS_DIGITS)
		return -EINVAL;
	if (__builtin_add_overflow(seconds * OP_NS_PER_S, strtoull(string, NULL, 10), &ns))
		return -ERANGE;
	*ret_ns = ns;
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

/* ---- time spans ---- */

#define US_PER_S   1000000ull
#define US_PER_MIN (60 * US_PER_S)
#define US_PER_H   (60 * US_PER_MIN)
#define US_PER_D   (24 * US_PER_H)

static const struct {
	const char *word;
	uint64_t us;
} units[] = {
	{ "usec", 1 },
	{ "us", 1 },
	{ "\xc2\xb5s", 1 },
	{ "msec", 1000 },
	{ "ms", 1000 },
	{ "seconds", US_PER_S },
	{ "second", US_PER_S },
	{ "sec", US_PER_S },
	{ "s", US_PER_S },
	{ "minutes", US_PER_MIN },
	{ "minute", US_PER_MIN },
	{ "min", US_PER_MIN },
	{ "m", US_PER_MIN },
	{ "hours", US_PER_H },
	{ "hour", US_PER_H },
	{ "hr", US_PER_H },
	{ "h", US_PER_H },
	{ "days", US_PER_D },
	{ "day", US_PER_D },
	{ "d", US_PER_D },
	{ "weeks", 7 * US_PER_D },
	{ "week", 7 * US_PER_D },
	{ "w", 7 * US_PER_D },
	{ "months", 2629800 * US_PER_S },
	{ "month", 2629800 * US_PER_S },
	{ "M", 2629800 * US_PER_S },
	{ "years", 31557600 * US_PER_S },
	{ "year", 31557600 * US_PER_S },
	{ "y", 31557600 * US_PER_S },
};

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, " \t");
}

/* Moves *at behind the unit; -EINVAL when there is none. */
static int parse_unit(const char **at, uint64_t *ret_us)
{
	size_t length = strcspn(*at, " \t0123456789.");

	for (size_t i = 0; i < op_array_size(units); i++) {
		if (strlen(units[i].word) != length || strncmp(units[i].word, *at, length))
			continue;
		*at += length;
		*ret_us = units[i].us;
		return 0;
	}
	return -EINVAL;
}

/* A decimal number: the whole part, and the fraction in millionths. */
static int parse_decimal(const char **at, uint64_t *ret_whole, uint64_t *ret_millionths)
{
	uint64_t millionths = 0, weight = US_PER_S / 10;
	unsigned long long whole;
	char *end;

	if (!isdigit((unsigned char)**at))
		return -EINVAL;
	errno = 0;
	whole = strtoull(*at, &end, 10);
	if (errno)
		return -ERANGE;
	*at = end;
	if (**at == '.') {
		if (!isdigit((unsigned char)(*at)[1]))
			return -EINVAL;
		for ((*at)++; isdigit((unsigned char)**at); (*at)++, weight /= 10)
			millionths += (uint64_t)(**at - '0') * weight;
	}
	*ret_whole = whole;
	*ret_millionths = millionths;
	return 0;
}

int op_parse_span_us(const char *string, uint64_t *ret_us)
{
	const char *at = skip_blanks(string);
	uint64_t sum = 0;

	if (!*at)
		return -EINVAL;
	for (; *at; at = skip_blanks(at)) {
		uint64_t whole, millionths, us = US_PER_S, part;
		int err = parse_decimal(&at, &whole, &millionths);

		at = skip_blanks(at);
		if (!err && *at && !isdigit((unsigned char)*at))
			err = parse_unit(&at, &us);
		if (err)
			return err;
		if (__builtin_mul_overflow(whole, us, &part) || __builtin_add_overflow(sum, part, &sum) ||
		    __builtin_add_overflow(sum, us / US_PER_S * millionths + us % US_PER_S * millionths / US_PER_S, &sum))
			return -ERANGE;
	}
	*ret_us = sum;
	return 0;
}

bool op_kallsyms_parse(char *line, struct op_kallsyms_line *ret_line)
{
	struct op_kallsyms_line parsed = { 0 };
	char *end, *module;

	errno = 0;
	parsed.address = strtoull(line, &end, 16);
	if (errno || end == line || end[0] != ' ' || !end[1] || end[2] != ' ')
		return false;
	parsed.type = end[1];
	parsed.name = end + 3;
	end += 3 + strcspn(parsed.name, "\t\n ");
	if (end == parsed.name)
		return false;
	if (*end == '\t') {
		module = end + 1;
		*end = '\0';
		end = module + strcspn(module, "\n");
		if (end - module < 3 || *module != '[' || end[-1] != ']')
			return false;
		end--;
		parsed.module = module + 1;
	}
	*end = '\0';
	*ret_line = parsed;
	return true;
}
