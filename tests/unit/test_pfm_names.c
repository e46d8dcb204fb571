/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Names of libpfm4 for another CPU than this one: LIBPFM_FORCE_PMU (libpfm(3)). Codes: Intel's
 * manual, volume 3, chapter 19; AMD's PPR.
 */
#include <errno.h>

#include "tests/unit/cmocka_all.h"
#include "tools/events/pfm_names.h"

struct row {
	const char *spec, *own;
};

static void assert_translated(const char *pmu, const struct row *rows, size_t nr_rows)
{
	assert_int_equal(setenv("LIBPFM_FORCE_PMU", pmu, 1), 0);
	for (size_t i = 0; i < nr_rows; i++) {
		const char *why = "";
		char *own = NULL;
		int err = opr_pfm_translate(rows[i].spec, &own, &why);

		if (err)
			fail_msg("%s on %s: %d %s", rows[i].spec, pmu, err, why);
		assert_string_equal(own, rows[i].own);
		free(own);
	}
}

static void test_names_become_codes(void **state)
{
	static const struct row intel[] = {
		{ "INST_RETIRED:ANY_P:100000", "rc0=INST_RETIRED_ANY_P:100000" },
		{ "skl::INST_RETIRED:ANY_P:100000:0:1:0", "rc0=INST_RETIRED_ANY_P:100000:0:1:0" },
		{ "BR_MISP_RETIRED:CONDITIONAL:c=2:5000", "r20001c5=BR_MISP_RETIRED_CONDITIONAL_c_2:5000" },
		/* without a count: readers report it as missing */
		{ "INST_RETIRED:ANY_P", "rc0=INST_RETIRED_ANY_P" },
	};
	static const struct row amd[] = { { "RETIRED_INSTRUCTIONS:100000", "rc0=RETIRED_INSTRUCTIONS:100000" } };

	(void)state;
	assert_translated("skl", intel, op_array_size(intel));
	assert_translated("amd64_fam17h_zen2", amd, op_array_size(amd));
}

static void test_what_cannot_be(void **state)
{
	static const struct {
		const char *pmu, *spec;
		int err;
	} rows[] = {
		{ "skl", "NO_SUCH_EVENT:100000", -ENOENT },
		{ "skl", "INST_RETIRED:NO_SUCH_MASK:100000", -EINVAL },
		{ "skl", "", -ENOENT },
		{ "perf", "PERF_COUNT_SW_PAGE_FAULTS:1", -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < op_array_size(rows); i++) {
		const char *why = NULL;
		char *own = NULL;

		assert_int_equal(setenv("LIBPFM_FORCE_PMU", rows[i].pmu, 1), 0);
		assert_int_equal(opr_pfm_translate(rows[i].spec, &own, &why), rows[i].err);
		assert_null(own);
		assert_true(rows[i].err != -EINVAL || (why && *why));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_become_codes),
		cmocka_unit_test(test_what_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
