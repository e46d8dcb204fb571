/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What opd's tools know of an image whose debugging information is damaged, also when libbfd
 * crashes on it.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tools/elf/bfd_file.h"
#include "tools/elf/lines.h"
#include "tools/symbols/object_look.h"

#define SELF "/proc/self/exe" /* with debugging information, because all test programs have it */

static enum { AS_IT_IS, SAYS, CRASHES } probe;

const char *__real_opr_lines_probe(bfd *abfd, const char *root);
const char *__wrap_opr_lines_probe(bfd *abfd, const char *root);

/* Turns off what sanitizers do at a crash. */
static void crash(void)
{
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

const char *__wrap_opr_lines_probe(bfd *abfd, const char *root)
{
	if (probe == CRASHES)
		crash();
	return probe == SAYS ? "it says so" : __real_opr_lines_probe(abfd, root);
}

static void expect(bool with_probe, const char *damage)
{
	struct opr_object object = { 0 };

	assert_int_equal(opr_object_look(&object, SELF, NULL, NULL, 0, with_probe), 0);
	assert_true(object.is_object);
	assert_int_equal(object.symbols, OPR_OBJECT_DEBUG);
	if (damage)
		assert_string_equal(object.damage, damage);
	else
		assert_null(object.damage);
	opr_object_free(&object);
}

/* A process that fails in the debugging information has reported the rest before. */
static void closely(void **state OP_UNUSED)
{
	struct opr_object object = { 0 };
	bool has_debug_info;

	assert_int_equal(opr_object_look(&object, SELF, NULL, NULL, 0, false), 0);
	has_debug_info = object.symbols == OPR_OBJECT_DEBUG;
	opr_object_free(&object);
	if (!has_debug_info)
		skip();
	probe = AS_IT_IS;
	expect(true, NULL);
	probe = SAYS;
	expect(true, "it says so");
	expect(false, NULL);
	probe = CRASHES;
	expect(true, "it is damaged, and libbfd or libdw crashed on it");
	expect(false, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(closely) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
