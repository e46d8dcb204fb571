/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/base/nearest.h"

#include <ctype.h>

#define PREFIX_MIN     3u /* letters of a word that a candidate begins with */
#define PREFIX_COST    1u
#define PART_OF_ERRORS 3u /* one letter of so many may be wrong */
#define ERRORS_MAX     8u

static int lower(char c)
{
	return tolower((unsigned char)c);
}

static bool is_same(char a, char b)
{
	return lower(a) == lower(b);
}

static bool begins_with(const char *string, const char *prefix, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!is_same(string[i], prefix[i]))
			return false;
	return true;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Optimal string alignment: Damerau and Levenshtein, without a second change of swapped letters.
 * Three rows of the table are kept. Above `limit` the result is any number above it.
 */
static size_t distance_of(const char *a, size_t a_length, const char *b, size_t b_length, size_t limit)
{
	uint8_t rows[3][OP_NEAREST_BYTES];

	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = (uint8_t)j;
	for (size_t i = 1; i <= a_length; i++) {
		const uint8_t *before = rows[(i - 1) % 3], *swapped = rows[(i + 1) % 3];
		uint8_t *row = rows[i % 3];
		size_t least = i;

		row[0] = (uint8_t)i;
		for (size_t j = 1; j <= b_length; j++) {
			size_t cost = before[j - 1] + !is_same(a[i - 1], b[j - 1]);

			cost = smaller(cost, smaller(before[j], row[j - 1]) + 1u);
			if (i > 1 && j > 1 && is_same(a[i - 1], b[j - 2]) && is_same(a[i - 2], b[j - 1]))
				cost = smaller(cost, swapped[j - 2] + 1u);
			row[j] = (uint8_t)cost;
			least = smaller(least, cost);
		}
		if (least > limit)
			return least;
	}
	return rows[a_length % 3][b_length];
}

void op_nearest_init(struct op_nearest *nearest, const char *word)
{
	size_t length = strnlen(word, OP_NEAREST_BYTES);

	*nearest = (struct op_nearest){ .word = word, .length = length };
	nearest->limit = length < 2 ? 0 : smaller(length / PART_OF_ERRORS ? length / PART_OF_ERRORS : 1, ERRORS_MAX);
}

void op_nearest_try(struct op_nearest *nearest, const char *candidate)
{
	size_t length = strnlen(candidate, OP_NEAREST_BYTES), limit = nearest->limit, distance;

	if (!length || length == OP_NEAREST_BYTES || nearest->length == OP_NEAREST_BYTES || !strcmp(candidate, nearest->word))
		return;
	if (*nearest->best && !nearest->distance)
		return;
	if (*nearest->best)
		limit = nearest->distance - 1;
	distance = length > nearest->length ? length - nearest->length : nearest->length - length;
	if (nearest->length >= PREFIX_MIN && length > nearest->length && begins_with(candidate, nearest->word, nearest->length))
		distance = PREFIX_COST;
	else if (distance <= limit)
		distance = distance_of(nearest->word, nearest->length, candidate, length, limit);
	if (distance > limit)
		return;
	memcpy(nearest->best, candidate, length + 1);
	nearest->distance = distance;
}

void op_nearest_add_hint(const struct op_nearest *nearest, const char *prefix, struct op_text *text)
{
	if (!*nearest->best)
		return;
	op_text_printf(text, "; did you mean '%s", prefix);
	op_text_add_clean(text, nearest->best);
	op_text_add(text, "'?");
}
