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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_languages),
		cmocka_unit_test(test_simple_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
