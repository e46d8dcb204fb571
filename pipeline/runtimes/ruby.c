/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/runtimes/ruby.h"

#include <string.h>

#include "libop/unwind/runtime_words.h"

/*
 * The offsets of 3.1. No package has the headers (vm_core.h, iseq.h): they are those that the code
 * of Debian's libruby uses (rb_profile_frames, rb_sourceline, rb_iseq_path), which a test reads.
 */
#define VERSION_3_1 "3.1."

static const struct opd_ruby_layout layout_3_1 = {
	.stack = 0, .stack_words = 8, .frame = 16, .frame_bytes = 64, .pc = 0, .code = 16, .flags = 32, .body = 16,
	.instructions = 8, .path = 64, .label = 80, .first_line = 88, .entries = 120, .nr_entries = 136, .table = 144,
};

bool opd_ruby_layout(const struct op_row_table *table, struct opd_ruby_layout *ret_layout, const char **ret_why)
{
	uint64_t version = 0, context, slot;
	char text[sizeof(version)];

	*ret_why = "its C library is musl";
	if (op_row_table_word(table, OP_WORD_MUSL, &version))
		return false;
	*ret_why = "opd does not know this version of Ruby";
	if (!op_row_table_word(table, OP_WORD_RUBY_VERSION, &version))
		return false;
	version = htole64(version);
	memcpy(text, &version, sizeof(text));
	if (memcmp(text, VERSION_3_1, strlen(VERSION_3_1)))
		return false;
	*ret_why = "its threads do not have their contexts as a library of x86-64 has them";
	if (!op_row_table_word(table, OP_WORD_RUBY_CONTEXT, &context) || !op_row_table_word(table, OP_WORD_RUBY_LIBRARY, &slot))
		return false;
	*ret_layout = layout_3_1;
	ret_layout->context = context;
	return true;
}
