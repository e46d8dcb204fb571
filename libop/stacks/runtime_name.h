/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The name of a function of a runtime (Python, Node, Java, PHP, Perl, Ruby) as one text, which the
 * file of stacks and the timeline keep:
 *
 *   RUNTIME 0x1f FILE 0x1f FUNCTION 0x1f LINE
 *
 * RUNTIME is one of the words of runtimes.h. FUNCTION has the class where the runtime has one.
 * LINE, in decimal, is where the function begins; 0: not known. FILE and FUNCTION may be empty.
 * They come from strangers: whoever shows them escapes them as all names are. Any thread.
 */
#ifndef OP_STACKS_RUNTIME_NAME_H
#define OP_STACKS_RUNTIME_NAME_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"
#include "libop/stacks/runtimes.h"

#define OP_RUNTIME_SEPARATOR '\x1f'
#define OP_RUNTIME_NAME_MAX  1024u /* bytes of a text, with its NUL */

#define OP_RUNTIMES_ALL ((1u << OP_NR_RUNTIMES) - 2) /* a bit for each */

struct op_runtime_name {
	enum op_runtime runtime;
	char *file, *function;
	uint32_t line;
};

/* "python"; "" of OP_RUNTIME_none and of what is no runtime. */
const char *op_runtime_word(enum op_runtime runtime);

/*
 * Adds the text of a name, at most OP_RUNTIME_NAME_MAX bytes with the NUL. Of a file that is too
 * long the beginning is cut off, of a function the end. A "?" stands for each character that
 * op_escape escapes.
 */
void op_runtime_name_write(struct op_text *to, enum op_runtime runtime, const char *file, const char *function,
			   uint32_t line) OP_NONNULL;

/* Takes a text apart, in place. False: it is none; the text may have changed. */
bool op_runtime_name_parse(char *text, struct op_runtime_name *ret_name) OP_NONNULL OP_MUST_CHECK;

#endif
