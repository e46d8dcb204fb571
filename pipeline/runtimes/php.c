/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/runtimes/php.h"

#include "libop/unwind/runtime_words.h"

/*
 * The offsets of 8.2, which has a function that 8.1 has not, by the size of executor_globals, which
 * 8.3 has changed. They are of Debian's headers (zend_globals.h, zend_compile.h, zend_types.h,
 * zend.h), and a test compares them.
 */
#define GLOBALS_BYTES 1800u

static const struct opd_php_layout layout_8_2 = {
	.current = 488, .call_bytes = 56, .opline = 0, .function = 24, .info = 40, .previous = 48, .name = 8, .scope = 16,
	.operations = 88, .nr_operations = 80, .operation_bytes = 32, .line = 24, .file = 152, .first_line = 160, .class_name = 8,
	.text = 24,
};

bool opd_php_layout(const struct op_row_table *table, struct opd_php_layout *ret_layout, const char **ret_why)
{
	uint64_t value;

	*ret_why = "it was built with threads (ZTS)";
	if (op_row_table_word(table, OP_WORD_PHP_THREADS, &value))
		return false;
	*ret_why = "opd does not know this version of PHP";
	if (!op_row_table_word(table, OP_WORD_PHP_8_2, &value) || !op_row_table_word(table, OP_WORD_PHP_BYTES, &value) ||
	    value != GLOBALS_BYTES)
		return false;
	*ret_layout = layout_8_2;
	return true;
}
