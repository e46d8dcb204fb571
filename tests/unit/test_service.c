/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "daemon/service.h"
#include "libop/base/clock.h"

static void expect(const struct opd_pulse *before, const struct opd_pulse *now, const char *words)
{
	struct op_text text = { 0 };

	opd_service_words(before, now, &text);
	assert_string_equal(op_text_get(&text), words);
	op_text_free(&text);
}

static void test_words(void **state)
{
	struct opd_pulse none = { 0 },
			 before = { .now_ns = OP_NS_PER_S, .taken = 1000, .stored = 900, .nr_cpus = 2, .profiling = true };
	struct opd_pulse now = { .now_ns = 6ull * OP_NS_PER_S, .taken = 11000, .stored = 11000, .nr_cpus = 2, .profiling = true };

	(void)state;
	expect(&none, &now, "Profiling 2 CPUs; of 11000 samples 11000 are stored, none is lost");
	expect(&before, &now, "Profiling 2 CPUs, 2000 samples per second; of 11000 samples 11000 are stored, none is lost");
	now.lost_kernel = 100;
	now.lost = 10;
	now.stored = 10890;
	now.nr_cpus = 1;
	expect(&before, &now,
	       "Profiling 1 CPU, 2000 samples per second; of 11000 samples 10890 are stored, 100 lost in full rings, 10 lost after "
	       "that (1 %)");
	now.profiling = false;
	now.lost = 0;
	now.filtered = 7000;
	now.stored = 3890;
	expect(&before, &now, "Paused; of 11000 samples 3890 are stored, 7000 filtered, 100 lost in full rings (0.909 %)");
}

/* After a reset there are fewer than before: that is no rate. */
static void test_reset(void **state)
{
	struct opd_pulse before = { .now_ns = OP_NS_PER_S, .taken = 1000, .stored = 1000, .nr_cpus = 2, .profiling = true };
	struct opd_pulse now = { .now_ns = 2ull * OP_NS_PER_S, .taken = 10, .stored = 10, .nr_cpus = 2, .profiling = true };

	(void)state;
	expect(&before, &now, "Profiling 2 CPUs; of 10 samples 10 are stored, none is lost");
	before.profiling = false;
	before.taken = 0;
	expect(&before, &now, "Profiling 2 CPUs; of 10 samples 10 are stored, none is lost");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_words), cmocka_unit_test(test_reset) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
