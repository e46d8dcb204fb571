/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A string that grows. After a failed allocation (`failed`) all calls have no effect, so a caller
 * checks once, at the end. One thread.
 */
#ifndef OP_TEXT_H
#define OP_TEXT_H

#include "libop/base/compiler.h"

struct op_text {
	char *data;	 /* NUL-terminated; NULL while nothing was added */
	size_t length;	 /* bytes without the NUL */
	size_t capacity; /* bytes allocated */
	bool failed;
};

/* Adds bytes, a string, one character, or formatted text. */
void op_text_add_bytes(struct op_text *text, const void *bytes, size_t nr_bytes) OP_NONNULL_ARGS(1);
void op_text_add(struct op_text *text, const char *string) OP_NONNULL;
void op_text_add_char(struct op_text *text, char c) OP_NONNULL;
void op_text_printf(struct op_text *text, const char *format, ...) OP_NONNULL_ARGS(1, 2) OP_PRINTF(2, 3);

/*
 * Escapes the first character of a string that is not empty and not trusted. All outputs use it:
 * text, formats for programs (before their own quoting), messages and the log. Each byte of control
 * characters (ASCII, U+0080 to U+009F), of line separators (U+2028, U+2029), of characters that
 * reorder a line (Unicode, Bidi_Control), of noncharacters (U+FFFE, U+FFFF) and of invalid UTF-8
 * becomes \xHH with two lower-case hexadecimal digits; so does a backslash that begins such a
 * sequence. The result is UTF-8, and replacing each \xHH by its byte gives the name back. Returns
 * the number of bytes of the string that it escaped.
 */
#define OP_ESCAPED_BYTES 20 /* four bytes of four characters each, and a NUL */
size_t op_escape(const char *string, char ret_escaped[OP_ESCAPED_BYTES]) OP_NONNULL;

/* The length of the prefix that op_escape leaves unchanged: printable ASCII without a backslash. */
size_t op_nr_plain(const char *string) OP_NONNULL;

/* Adds a name, escaped by op_escape. */
void op_text_add_escaped(struct op_text *text, const char *name) OP_NONNULL;

/*
 * Adds a string, escaped by op_escape, as the inside of a JSON string (RFC 8259, section 7). A
 * reader gets each unsafe byte as the four characters \xHH.
 */
void op_text_add_json(struct op_text *text, const char *string) OP_NONNULL;

/* Adds a string that is not trusted. A '?' stands for each character that op_escape escapes. */
void op_text_add_clean(struct op_text *text, const char *string) OP_NONNULL;

/* Cuts the text to a length that it had before; keeps the memory. */
void op_text_truncate(struct op_text *text, size_t length) OP_NONNULL;

/* The text, "" when nothing was added. Valid until the next call on the same text. */
const char *op_text_get(const struct op_text *text) OP_NONNULL;

/*
 * Empties the text and returns its string, which the caller frees. NULL after a failed allocation.
 */
char *op_text_steal(struct op_text *text) OP_NONNULL OP_MUST_CHECK;

/* Frees the memory; the text may be used again. */
void op_text_free(struct op_text *text);

#endif
