/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A string that grows. An allocation that fails is remembered (`failed`) and every later call is without effect, so a
 * caller checks once, at the end. Not thread-safe; one owner.
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
 * The escape for names from a foreign hand, in which any byte may be: the character that begins at `string`, which is not empty, as it can be
 * shown. Control characters (ASCII, U+0080 to U+009F), what is no character (U+FFFE, U+FFFF) and bytes that are not UTF-8 become \xHH each byte,
 * with two lower-case hexadecimal digits, and so does a backslash that would look like the beginning of that. What comes out is UTF-8, and who
 * replaces each \xHH by its byte has the name again. Returns how many bytes of the string it took.
 */
#define OP_ESCAPED_BYTES 20 /* four bytes, each as four characters, and a NUL */
size_t op_escape(const char *string, char ret_escaped[OP_ESCAPED_BYTES]) OP_NONNULL;

/* The same for people to read: characters that turn the order in which a line is shown (Unicode, Bidi_Control) become \xHH each byte, too. */
size_t op_escape_shown(const char *string, char ret_escaped[OP_ESCAPED_BYTES]) OP_NONNULL;

/* How many bytes at the beginning of a string are printable ASCII but for the backslash: op_escape leaves each as it is. */
size_t op_nr_plain(const char *string) OP_NONNULL;

/* Adds a name as op_escape_shown has it. */
void op_text_add_escaped(struct op_text *text, const char *name) OP_NONNULL;

/*
 * Adds a string as the inside of a JSON string literal (RFC 8259, section 7). JSON has control characters; bytes that are not UTF-8 are in the
 * string that a reader gets as \xHH, and a backslash that looks like that is \x5c.
 */
void op_text_add_json(struct op_text *text, const char *string) OP_NONNULL;

/* Adds a string from a foreign hand as a name that can be shown: control characters and bytes that are not UTF-8 become '?'. */
void op_text_add_clean(struct op_text *text, const char *string) OP_NONNULL;

/* Cuts the text back to a length it had before; keeps the memory. */
void op_text_truncate(struct op_text *text, size_t length) OP_NONNULL;

/* The text, "" when nothing was added. Valid until the next call on the same text. */
const char *op_text_get(const struct op_text *text) OP_NONNULL;

/* Hands the string over, to be freed by the caller, and leaves the text empty. NULL when an allocation had failed. */
char *op_text_steal(struct op_text *text) OP_NONNULL OP_MUST_CHECK;

/* Frees the memory; the text may be used again. */
void op_text_free(struct op_text *text);

#endif
