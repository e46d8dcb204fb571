/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/base/text.h"

#include <stdarg.h>

#include "libop/base/grow.h"

static bool reserve(struct op_text *text, size_t more)
{
	if (!text->failed)
		text->failed = more > SIZE_MAX / 4 - text->length ||
			       !op_grow(&text->data, &text->capacity, text->length + more + 1);
	return !text->failed;
}

void op_text_add_bytes(struct op_text *text, const void *bytes, size_t nr_bytes)
{
	if (!nr_bytes || !reserve(text, nr_bytes))
		return;
	memcpy(text->data + text->length, bytes, nr_bytes);
	text->length += nr_bytes;
	text->data[text->length] = '\0';
}

void op_text_add(struct op_text *text, const char *string)
{
	op_text_add_bytes(text, string, strlen(string));
}

void op_text_add_char(struct op_text *text, char c)
{
	op_text_add_bytes(text, &c, 1);
}

void op_text_printf(struct op_text *text, const char *format, ...)
{
	va_list args;
	int nr;

	va_start(args, format);
	nr = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (nr < 0) {
		text->failed = true;
		return;
	}
	if (!reserve(text, (size_t)nr))
		return;
	va_start(args, format);
	vsnprintf(text->data + text->length, (size_t)nr + 1, format, args);
	va_end(args);
	text->length += (size_t)nr;
}

/* Length of the well-formed UTF-8 sequence at s (Unicode, table 3-7), 0 when there is none. */
static size_t utf8_length(const unsigned char *s)
{
	size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < length; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return length;
}

/*
 * Control characters, characters that end or reorder a line (Unicode, PropList.txt: Bidi_Control),
 * noncharacters that XML forbids, and (length 0) bytes that are not UTF-8.
 */
static bool is_unsafe(const unsigned char *s, size_t length)
{
	uint32_t c;

	if (length == 1)
		return *s < 0x20 || *s == 0x7f;
	if (length == 2)
		return (s[0] == 0xc2 && s[1] < 0xa0) || (s[0] == 0xd8 && s[1] == 0x9c);
	if (length != 3)
		return !length;
	c = (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
	return c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c >= 0xfffe;
}

static bool is_lower_digit(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool looks_escaped(const unsigned char *s)
{
	return s[0] == '\\' && s[1] == 'x' && is_lower_digit(s[2]) && is_lower_digit(s[3]);
}

size_t op_nr_plain(const char *string)
{
	const char *end = string;

	while (*end >= ' ' && *end < 0x7f && *end != '\\')
		end++;
	return (size_t)(end - string);
}

static size_t write_bytes(const unsigned char *s, size_t nr_bytes, char *ret_escaped)
{
	for (size_t i = 0; i < nr_bytes; i++)
		snprintf(ret_escaped + 4 * i, 5, "\\x%02x", s[i]);
	return nr_bytes;
}

size_t op_escape(const char *string, char ret_escaped[OP_ESCAPED_BYTES])
{
	const unsigned char *s = (const unsigned char *)string;
	size_t length = utf8_length(s);

	if (is_unsafe(s, length) || looks_escaped(s))
		return write_bytes(s, length ? length : 1, ret_escaped);
	memcpy(ret_escaped, s, length);
	ret_escaped[length] = '\0';
	return length;
}

void op_text_add_escaped(struct op_text *text, const char *name)
{
	char escaped[OP_ESCAPED_BYTES];

	for (;;) {
		size_t nr_plain = op_nr_plain(name);

		op_text_add_bytes(text, name, nr_plain);
		name += nr_plain;
		if (!*name)
			break;
		name += op_escape(name, escaped);
		op_text_add(text, escaped);
	}
}

void op_text_add_json(struct op_text *text, const char *string)
{
	struct op_text escaped = { 0 };

	op_text_add_escaped(&escaped, string);
	for (const char *c = op_text_get(&escaped); *c; c++) {
		size_t nr_same = strcspn(c, "\"\\");

		op_text_add_bytes(text, c, nr_same);
		c += nr_same;
		if (!*c)
			break;
		op_text_printf(text, "\\%c", *c);
	}
	text->failed |= escaped.failed;
	op_text_free(&escaped);
}

void op_text_add_clean(struct op_text *text, const char *string)
{
	const unsigned char *s = (const unsigned char *)string;

	while (*s) {
		size_t length = utf8_length(s);

		if (is_unsafe(s, length))
			op_text_add_char(text, '?');
		else
			op_text_add_bytes(text, s, length);
		s += length ? length : 1;
	}
}

void op_text_truncate(struct op_text *text, size_t length)
{
	assert(length <= text->length);
	text->length = length;
	if (text->data)
		text->data[length] = '\0';
}

const char *op_text_get(const struct op_text *text)
{
	return text->data ? text->data : "";
}

char *op_text_steal(struct op_text *text)
{
	char *data = text->data;

	if (text->failed) {
		op_text_free(text);
		return NULL;
	}
	if (!data)
		data = strdup("");
	*text = (struct op_text){ 0 };
	return data;
}

void op_text_free(struct op_text *text)
{
	if (!text)
		return;
	free(text->data);
	*text = (struct op_text){ 0 };
}
