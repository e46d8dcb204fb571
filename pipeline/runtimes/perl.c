/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/runtimes/perl.h"

#include "libop/unwind/runtime_words.h"

/*
 * The offsets, by version and by the size of the interpreter, which depends on how Perl was built.
 * They are of Debian's headers (intrpvar.h, cop.h, op.h, sv.h, cv.h, gv.h, hv.h), and a test
 * compares them.
 */
static const struct {
	uint32_t version, interpreter_bytes;
	struct opd_perl_layout layout;
} versions[] = {
	{ 36,
	  3768,
	  { .stack_info = 224, .cop = 208, .phase = 2512, .script = 1472, .contexts = 8, .previous = 16, .nr_contexts = 32,
	    .context_bytes = 104, .old_cop = 16, .function = 72, .return_to = 48, .eval_cv = 88,
	    .line = 36, .file = 48, .op_type = 32, .body = 0, .flags = 12, .start = 40,
	    .root = 48, .function_flags = 92, .name = 56, .stash = 32, .function_file = 64, .glob_name = 32, .glob_stash = 40,
	    .stash_names = 32, .named_flag = 0x8000, .next_state = 195, .require = 342 } },
};

bool opd_perl_layout(const struct op_row_table *table, struct opd_perl_layout *ret_layout, const char **ret_why)
{
	uint64_t version = 0, interpreter_bytes = 0, key, interpreter;

	if (!op_row_table_word(table, OP_WORD_PERL_KEY, &key) || !op_row_table_word(table, OP_WORD_PERL, &interpreter)) {
		*ret_why = "it was built without threads";
		return false;
	}
	*ret_why = "opd does not know this version of Perl";
	if (!op_row_table_word(table, OP_WORD_PERL_VERSION, &version) ||
	    !op_row_table_word(table, OP_WORD_PERL_BYTES, &interpreter_bytes))
		return false;
	for (size_t i = 0; i < op_array_size(versions); i++) {
		if (versions[i].version != version)
			continue;
		*ret_why = "it was built with other options than Debian's";
		if (versions[i].interpreter_bytes != interpreter_bytes)
			continue;
		*ret_layout = versions[i].layout;
		ret_layout->key = (int64_t)(key - interpreter);
		return true;
	}
	return false;
}
