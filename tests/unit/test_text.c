/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Growing strings, JSON escapes, strict numbers. */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libop/base/grow.h"
#include "libop/base/parse.h"
#include "libop/base/text.h"

static void grows(void **state OP_UNUSED)
{
	struct op_text text = { 0 };
	char *stolen;

	assert_string_equal(op_text_get(&text), "");
	for (int i = 0; i < 1000; i++)
		op_text_printf(&text, "%d,", i);
	assert_int_equal(text.length, 3890);
	op_text_truncate(&text, 4);
	op_text_add_char(&text, '!');
	op_text_add(&text, "");
	stolen = op_text_steal(&text);
	assert_string_equal(stolen, "0,1,!");
	free(stolen);
	stolen = op_text_steal(&text);
	assert_string_equal(stolen, "");
	free(stolen);
	op_text_free(&text);
	op_text_free(NULL);
}

static void escapes_json(void **state OP_UNUSED)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "plain", "plain" },
		{ "q\"b\\s", "q\\\"b\\\\s" },
		{ "\n\x01", "\\\\x0a\\\\x01" },
		{ "\xc2\x9b\xe2\x80\xa8", "\\\\xc2\\\\x9b\\\\xe2\\\\x80\\\\xa8" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "\xff\xc3", "\\\\xff\\\\xc3" },
		{ "\xc0\xaf\xed\xa0\x80", "\\\\xc0\\\\xaf\\\\xed\\\\xa0\\\\x80" },
		{ "\xf4\x90\x80\x80", "\\\\xf4\\\\x90\\\\x80\\\\x80" },
		{ "\\xff\\x\\xfg\\xFF", "\\\\x5cxff\\\\x\\\\xfg\\\\xFF" },
	};

	for (size_t i = 0; i < op_array_size(cases); i++) {
		struct op_text text = { 0 };

		op_text_add_json(&text, cases[i].in);
		assert_string_equal(op_text_get(&text), cases[i].out);
		op_text_free(&text);
	}
}

static void escapes_names(void **state OP_UNUSED)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "", "" },
		{ " a name with  blanks \"<", " a name with  blanks \"<" },
		{ "first\nsecond\x7f", "first\\x0asecond\\x7f" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "\xc2\x9b\x9b\xff\xc3", "\\xc2\\x9b\\x9b\\xff\\xc3" },
		{ "\xef\xbf\xbd\xef\xbf\xbe", "\xef\xbf\xbd\\xef\\xbf\\xbe" },
		{ "a\xe2\x80\xaetxt.exe", "a\\xe2\\x80\\xaetxt.exe" },
		{ "\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\xaa\xe2\x81\xa6\xe2\x81\xa9",
		  "\\xd8\\x9c\\xe2\\x80\\x8e\\xe2\\x80\\x8f\\xe2\\x80\\xaa\\xe2\\x81\\xa6\\xe2\\x81\\xa9" },
		{ "\xd8\x9d\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa",
		  "\xd8\x9d\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa" },
		{ "\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9", "\xe2\x80\xa7\\xe2\\x80\\xa8\\xe2\\x80\\xa9" },
		{ "\xc0\x9b\xe0\x82\x9b\xed\xb0\x80", "\\xc0\\x9b\\xe0\\x82\\x9b\\xed\\xb0\\x80" },
		{ "\xe2\x80", "\\xe2\\x80" },
		{ "\\x0a\\012\\x\\x0\\\\x0a\\x0A", "\\x5cx0a\\012\\x\\x0\\\\x5cx0a\\x0A" },
	};

	for (size_t i = 0; i < op_array_size(cases); i++) {
		struct op_text text = { 0 };

		op_text_add_escaped(&text, cases[i].in);
		assert_string_equal(op_text_get(&text), cases[i].out);
		op_text_free(&text);
	}
}

static void numbers(void **state OP_UNUSED)
{
	static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "x", "0x", "1k5", "08" };
	uint64_t value = 42;

	assert_int_equal(op_parse_u64("0x1f", 0, 100, &value), 0);
	assert_int_equal(value, 31);
	assert_int_equal(op_parse_u64("18446744073709551615", 0, UINT64_MAX, &value), 0);
	assert_int_equal(op_parse_u64("18446744073709551616", 0, UINT64_MAX, &value), -ERANGE);
	assert_int_equal(op_parse_u64("5", 6, 10, &value), -ERANGE);
	for (size_t i = 0; i < op_array_size(bad); i++)
		assert_int_equal(op_parse_u64(bad[i], 0, 100, &value), -EINVAL);
	assert_int_equal(op_parse_size_bytes("256K", 0, UINT64_MAX, &value), 0);
	assert_int_equal(value, 262144);
	assert_int_equal(op_parse_size_bytes("1g", 0, UINT64_MAX, &value), 0);
	assert_int_equal(value, 1 << 30);
	assert_int_equal(op_parse_size_bytes("99999999999G", 0, UINT64_MAX, &value), -ERANGE);
	assert_int_equal(op_parse_size_bytes("1KK", 0, UINT64_MAX, &value), -EINVAL);
}

static void parse_decimals(void **state OP_UNUSED)
{
	static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "x", "0x1", "01", "00", "1.0" };
	static const char *const bad_times[] = { "", "1", "1.", ".000000000", "1.00000000", "1.0000000000", "1.00000000x",
						 "01.000000000", "-1.000000000", "1.-00000000",
						 "1000000000000000000000000.000000000" };
	uint64_t value = 42;

	assert_int_equal(op_parse_decimal("0", 0, &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(op_parse_decimal("18446744073709551615", UINT64_MAX, &value), 0);
	assert_true(value == UINT64_MAX);
	assert_int_equal(op_parse_decimal("18446744073709551616", UINT64_MAX, &value), -ERANGE);
	assert_int_equal(op_parse_decimal("11", 10, &value), -ERANGE);
	for (size_t i = 0; i < op_array_size(bad); i++)
		assert_int_equal(op_parse_decimal(bad[i], UINT64_MAX, &value), -EINVAL);
	assert_int_equal(op_parse_time_ns("12.000000345", &value), 0);
	assert_true(value == 12000000345);
	assert_int_equal(op_parse_time_ns("18446744073.709551615", &value), 0);
	assert_true(value == UINT64_MAX);
	assert_int_equal(op_parse_time_ns("18446744073.709551616", &value), -ERANGE);
	assert_int_equal(op_parse_time_ns("18446744074.000000000", &value), -ERANGE);
	for (size_t i = 0; i < op_array_size(bad_times); i++)
		assert_int_equal(op_parse_time_ns(bad_times[i], &value), -EINVAL);
}

void *__real_reallocarray(void *array, size_t nr_items, size_t item_bytes);
void *__wrap_reallocarray(void *array, size_t nr_items, size_t item_bytes);

static bool is_out_of_memory;

void *__wrap_reallocarray(void *array, size_t nr_items, size_t item_bytes)
{
	return is_out_of_memory ? NULL : __real_reallocarray(array, nr_items, item_bytes);
}

static void arrays(void **state OP_UNUSED)
{
	size_t capacity = 0;
	uint64_t *items = NULL;

	assert_true(op_grow(&items, &capacity, 1));
	assert_int_equal(capacity, OP_GROW_MIN);
	memset(items, 7, capacity * sizeof(*items));
	assert_true(op_grow(&items, &capacity, OP_GROW_MIN + 1));
	assert_int_equal(capacity, 2 * OP_GROW_MIN);
	assert_true(op_grow(&items, &capacity, 1000));
	assert_int_equal(capacity, 1000);
	is_out_of_memory = true;
	assert_false(op_grow(&items, &capacity, 1001));
	is_out_of_memory = false;
	assert_int_equal(capacity, 1000);
	assert_memory_equal(items, "\7\7\7\7", 4);
	free(items);
}

static void kallsyms(void **state OP_UNUSED)
{
	static const char *const bad[] = { "", "\n", "ffff", "ffff \n", "ffff T", "ffff T \n", "ffff Text x\n", "xyz T name\n",
					   "fffffffffffffffff T name\n", "ffff t name\t\n", "ffff t name\t[]\n",
					   "ffff t name\t[module\n", "ffff t name\tmodule]\n" };
	char kernel[] = "ffffffff81000000 T _text\n", no_end[] = "0 A x", with_module[] = "ffffffffc0201000 t show\t[ext4]\n";
	struct op_kallsyms_line line;

	assert_true(op_kallsyms_parse(kernel, &line));
	assert_int_equal(line.address, 0xffffffff81000000);
	assert_int_equal(line.type, 'T');
	assert_string_equal(line.name, "_text");
	assert_null(line.module);
	assert_true(op_kallsyms_parse(no_end, &line));
	assert_int_equal(line.address, 0);
	assert_string_equal(line.name, "x");
	assert_true(op_kallsyms_parse(with_module, &line));
	assert_string_equal(line.name, "show");
	assert_string_equal(line.module, "ext4");
	for (size_t i = 0; i < op_array_size(bad); i++) {
		char *copy = strdup(bad[i]);

		assert_false(op_kallsyms_parse(copy, &line));
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(grows), cmocka_unit_test(escapes_json),
					    cmocka_unit_test(escapes_names), cmocka_unit_test(numbers),
					    cmocka_unit_test(parse_decimals), cmocka_unit_test(arrays),
					    cmocka_unit_test(kallsyms) };

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
