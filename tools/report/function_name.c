/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/function_name.h"

#include "tools/common/words.h"

#define ANONYMOUS "(anonymous namespace)"
#define SHOWN_MAX 4096u /* of longer names only the beginning counts */

/* A name without what may be missing. */
struct shape {
	char plain[SHOWN_MAX]; /* no parameters, no arguments of templates, no return type */
	const char *named;     /* the name with its arguments of templates, in the name as it was */
	size_t nr_named;
};

/* The length of a piece that stands for itself, whatever brackets it has; 0: another character. */
static size_t whole_piece(const char *c, bool is_start)
{
	if (!strncmp(c, ANONYMOUS, strlen(ANONYMOUS)))
		return strlen(ANONYMOUS);
	return is_start ? opr_operator_length(c) : 0;
}

/* Behind the bracket that closes the one at `c`, or the end. */
static const char *behind_pair(const char *c)
{
	char open = *c, close = open == '(' ? ')' : open == '<' ? '>' : '}';
	size_t depth = 0;

	for (; *c; c++) {
		depth += *c == open;
		if (*c == close && c[-1] != '-' && !--depth)
			return c + 1;
	}
	return c;
}

static void find_shape(const char *name, struct shape *shape)
{
	const char *c = name, *end;
	size_t nr_plain = 0;
	bool is_start = true; /* of an identifier */

	shape->named = name;
	for (; *c; c = end) {
		size_t nr_whole = whole_piece(c, is_start);

		is_start = !opr_is_of_name(*c);
		end = c + (nr_whole ? nr_whole : 1);
		if (!nr_whole && *c == '{') {
			end = behind_pair(c);
		} else if (!nr_whole && *c == '<') {
			end = behind_pair(c);
			continue;
		} else if (!nr_whole && *c == '(') { /* parameters; a local name may follow */
			end = behind_pair(c);
			if (!strncmp(end, " const", strlen(" const")))
				end += strlen(" const");
			if (strncmp(end, "::", 2) != 0)
				break;
			continue;
		} else if (!nr_whole && *c == ' ') { /* behind a return type */
			nr_plain = 0;
			shape->named = end;
			continue;
		}
		if (nr_plain + (size_t)(end - c) >= SHOWN_MAX)
			break;
		memcpy(shape->plain + nr_plain, c, (size_t)(end - c));
		nr_plain += (size_t)(end - c);
	}
	shape->plain[nr_plain] = '\0';
	shape->nr_named = (size_t)(c - shape->named);
}

/* Whether `word` ends the text at the begin of one of its parts. */
static bool ends_with(const char *text, size_t length, const char *word)
{
	size_t nr_word = strlen(word);
	const char *end;

	if (nr_word > length)
		return false;
	end = text + length - nr_word;
	if (memcmp(end, word, nr_word) != 0)
		return false;
	return end == text || (end >= text + 2 && end[-1] == ':' && end[-2] == ':');
}

bool opr_function_has_base(const char *name, const char *word)
{
	struct shape shape;

	if (!*word || !strcmp(name, word))
		return *word;
	find_shape(name, &shape);
	return ends_with(shape.plain, strlen(shape.plain), word) || ends_with(shape.named, shape.nr_named, word) ||
	       (strchr(word, '(') && ends_with(shape.named, strlen(shape.named), word));
}

void opr_function_base(const char *name, char *ret_base, size_t nr_bytes)
{
	struct shape shape;
	const char *base = shape.plain;

	find_shape(name, &shape);
	for (const char *next; (next = strstr(base, "::"));)
		base = next + 2;
	snprintf(ret_base, nr_bytes, "%s", base);
}
