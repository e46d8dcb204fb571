/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of three languages, and what is left out of those of the C++ library. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tools/elf/demangle.h"

static void expect(const char *name, enum opr_demangle how, const char *wanted)
{
	struct op_text text = { 0 };

	assert_true(opr_demangle(&text, name, how) == (wanted != NULL));
	if (wanted)
		assert_string_equal(op_text_get(&text), wanted);
	op_text_free(&text);
}

static void test_languages(void **state OP_UNUSED)
{
	expect("_ZN4shop4CartIlE3addEl", OPR_DEMANGLE_NORMAL, "shop::Cart<long>::add(long)");
	expect("_ZN4core3fmt5write17h0123456789abcdefE", OPR_DEMANGLE_NORMAL, "core::fmt::write");
	expect("_RNvC6_123foo3bar", OPR_DEMANGLE_NORMAL, "123foo::bar");
	expect("_D8demangle4testFaZv", OPR_DEMANGLE_NORMAL, "demangle.test(char)");
	expect("main", OPR_DEMANGLE_NORMAL, NULL);
	expect("_Dnot", OPR_DEMANGLE_NORMAL, NULL);
	expect("_ZN4shop4CartIlE3addEl", OPR_DEMANGLE_NONE, NULL);
	expect("_ZN4shop4CartIlE3addEl", OPR_DEMANGLE_SMART, "shop::Cart<long>::add(long)");
	expect("_Z1fRKSs", OPR_DEMANGLE_SMART, "f(std::string const&)");
}

static void test_simple_names(void **state OP_UNUSED)
{
	static const struct {
		const char *name, *wanted;
	} cases[] = {
		{ "f(std::vector<int, std::allocator<int> >)", "f(std::vector<int>)" },
		{ "f(std::vector<std::vector<int, std::allocator<int> >, std::allocator<std::vector<int, std::allocator<int> > > "
		  ">)",
		  "f(std::vector<std::vector<int> >)" },
		{ "std::map<int, long, std::less<int>, std::allocator<std::pair<int const, long> > >::at(int const&)",
		  "std::map<int, long>::at(int const&)" },
		{ "g(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)",
		  "g(std::string const&)" },
		{ "std::basic_ostream<char, std::char_traits<char> >& h<int>(int)", "std::ostream& h<int>(int)" },
		{ "std::set<int, std::greater<int>, std::allocator<int> >::size()", "std::set<int, std::greater<int> >::size()" },
		{ "g(int, std::allocator<int>)", "g(int, std::allocator<int>)" },
		{ "std::allocator<int>::allocate(unsigned long)", "std::allocator<int>::allocate(unsigned long)" },
		{ "my::std::__cxx11::f()", "my::std::__cxx11::f()" },
		{ "operator<(A, B)", "operator<(A, B)" },
		{ "a<b, std::allocator<", "a<b, std::allocator<" },
	};

	for (size_t i = 0; i < op_array_size(cases); i++) {
		char *text = opr_demangle_simplify(cases[i].name);

		assert_string_equal(text, cases[i].wanted);
		free(text);
	}
}

/* Appends the n-th number of references of C++ and Rust: "_" is the first. */
static void add_number(struct op_text *name, unsigned int n, unsigned int base)
{
	static const char upper[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	static const char lower[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *digits = base == 36 ? upper : lower;

	if (n > base)
		op_text_add_char(name, digits[(n - 1) / base]);
	if (n)
		op_text_add_char(name, digits[(n - 1) % base]);
	op_text_add_char(name, '_');
}

/* "S0_I S1_ S1_ E": pairs of the type before. `first` is the number of the first such type. */
static void add_pairs(struct op_text *name, const char *pair, unsigned int first, unsigned int nr_doublings)
{
	for (unsigned int i = 0; i < nr_doublings; i++) {
		op_text_add(name, pair);
		for (unsigned int j = 0; j < 2; j++) {
			op_text_add_char(name, 'S');
			add_number(name, first + i, 36);
		}
		op_text_add_char(name, 'E');
	}
}

static void expect_text(struct op_text *name, const char *wanted)
{
	expect(op_text_get(name), OPR_DEMANGLE_NORMAL, wanted);
	op_text_free(name);
}

/* A few bytes double the text: in parameters, in a template, without any output, in Rust, in D. */
static void test_doublings(void **state OP_UNUSED)
{
	for (unsigned int i = 20; i <= 40; i++) {
		struct op_text parameters = { 0 }, template = { 0 }, silent = { 0 }, rust = { 0 }, d = { 0 };

		op_text_add(&parameters, "_Z3hot1PIiiE");
		add_pairs(&parameters, "S_I", 1, i);
		expect_text(&parameters, "hot");

		op_text_add(&template, "_Z3hotI1PIiiE");
		add_pairs(&template, "S0_I", 2, i);
		op_text_add(&template, "EvT_");
		expect_text(&template, NULL);

		/* libiberty looks for a pack in all of it before it writes a byte */
		op_text_add(&silent, "_Z1fDp1XI1PIiiE");
		add_pairs(&silent, "S0_I", 2, i);
		op_text_add(&silent, "E");
		expect_text(&silent, "f");

		op_text_add(&rust, "_RINvC1a1bTllE");
		for (size_t j = 0, last = 8; j < i; j++) {
			size_t at = rust.length - strlen("_R");

			op_text_add(&rust, "TB");
			add_number(&rust, (unsigned int)last, 62);
			op_text_add(&rust, "B");
			add_number(&rust, (unsigned int)last, 62);
			op_text_add(&rust, "E");
			last = at;
		}
		op_text_add(&rust, "E");
		expect_text(&rust, NULL);

		op_text_add(&d, "_D1a1fFHiiHQeQg");
		for (unsigned int j = 0; j < i; j++)
			op_text_add(&d, "HQgQi");
		op_text_add(&d, "Zv");
		expect_text(&d, NULL);
	}
}

/* A number in a Rust name counts lifetimes that are not written. */
static void test_rust_lifetimes(void **state OP_UNUSED)
{
	expect("_RNvMINtC1a1bFG1_EuEl3foo", OPR_DEMANGLE_NORMAL, "<i32>::foo");
	expect("_RNvMINtC1a1bFGzzzzzzz_EuEl3foo", OPR_DEMANGLE_NORMAL, NULL);
	expect("_RNvMINtC1a1bFGzzzzzzz_EuElu3foo", OPR_DEMANGLE_NORMAL, NULL);
}

static void test_deep_names(void **state OP_UNUSED)
{
	static const char *const begins[] = { "_Z1f", "_RINvC1a1b", "_D1a1fF" };
	static const char *const levels[] = { "P", "R", "A" };

	for (size_t i = 0; i < op_array_size(begins); i++) {
		struct op_text name = { 0 };

		op_text_add(&name, begins[i]);
		for (size_t j = 0; j < 500000; j++)
			op_text_add(&name, levels[i]);
		op_text_add(&name, "i");
		expect_text(&name, NULL);
	}
}

/* An ordinary name after many slow ones. */
static void test_after_slow_names(void **state OP_UNUSED)
{
	struct op_text name = { 0 }, shown = { 0 };

	for (unsigned int i = 0; i < 300; i++)
		expect("_RNvMINtC1a1bFGzzzzzzz_EuEl3foo", OPR_DEMANGLE_NORMAL, NULL);
	expect("_ZN4shop4CartIlE3addEl", OPR_DEMANGLE_NORMAL, "shop::Cart<long>::add(long)");
	op_text_add(&name, "_Z1f1A");
	op_text_add(&shown, "f(A");
	for (unsigned int i = 0; i < 11; i++) {
		op_text_add(&name, "S_");
		op_text_add(&shown, ", A");
	}
	op_text_add(&shown, ")");
	expect_text(&name, op_text_get(&shown));
	op_text_free(&shown);
}

/*
 * Names are cut in work that is a multiple of their length, whatever stands in them: many short
 * lists of arguments, lists in lists, brackets that do not close.
 */
static void test_elided_names(void **state OP_UNUSED)
{
	static const struct {
		const char *unit;
		bool is_cut;
	} hostile[] = {
		{ "a<bcdef>", true }, { "a<bcd", true }, { "<", true }, { ">", false }, { "f(a<bcde>,", true }, { "<>", false },
		{ "operator<<abcd>", false }, { "\xc3\xa4<\xc3\xa4\xc3\xa4\xc3\xa4>", true }, { "x->", false },
	};
	char *elided = opr_demangle_elide("std::map<shop::Key, std::vector<int> >::find(shop::Key)", 40);

	assert_string_equal(elided, "std::map<shop:...int> >::find(shop::Key)");
	free(elided);
	elided = opr_demangle_elide("f<abcdefgh>(g<ijklmn>)", 12);
	assert_string_equal(elided, "f<...>(g<...>)");
	free(elided);
	for (size_t i = 0; i < op_array_size(hostile); i++) {
		uint64_t steps[2];

		for (size_t size = 0; size < op_array_size(steps); size++) {
			struct op_text name = { 0 };
			size_t nr_bytes = size ? 65536 : 16384;

			while (name.length < nr_bytes)
				op_text_add(&name, hostile[i].unit);
			opr_demangle_elide_steps = 0;
			elided = opr_demangle_elide(op_text_get(&name), 100);
			assert_non_null(elided);
			assert_int_equal(strlen(elided) < name.length, hostile[i].is_cut);
			steps[size] = opr_demangle_elide_steps;
			assert_in_range(steps[size], name.length, 8 * name.length);
			free(elided);
			op_text_free(&name);
		}
		assert_in_range(steps[1], steps[0], 5 * steps[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_languages),      cmocka_unit_test(test_simple_names), cmocka_unit_test(test_doublings),
		cmocka_unit_test(test_rust_lifetimes), cmocka_unit_test(test_deep_names),   cmocka_unit_test(test_after_slow_names),
		cmocka_unit_test(test_elided_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
