/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The table of derived events, and what samples add to its rows. tests/system/test_ibs.py tests
 * each predicate.
 */
#include "tests/unit/cmocka_all.h"

#include <ctype.h>
#include <string.h>

#include "libop/events/ibs_derived.h"

static void table_is_sound(void **state OP_UNUSED)
{
	const struct op_ibs_event *event, *before = NULL;
	size_t nr_oprofile = 0, nr_fetch = 0;

	for (size_t i = 0; (event = op_ibs_event(i)); before = event, i++) {
		assert_true(!before || event->number > before->number);
		assert_true(event->facts);
		assert_true(isupper((unsigned char)event->description[0]));
		assert_int_equal(strncmp(event->name, event->kind == OP_IBS_FETCH ? "IBS_FETCH_" : "IBS_OP_", 7), 0);
		assert_int_equal(event->number >> 8, event->kind == OP_IBS_FETCH ? 0xf0 : event->number < 0xf200 ? 0xf1 : 0xf2);
		assert_ptr_equal(op_ibs_event_find(event->name), event);
		assert_ptr_equal(op_ibs_event_of_session(event->name), event);
		nr_oprofile += event->oprofile;
		nr_fetch += event->oprofile && event->kind == OP_IBS_FETCH;
	}
	assert_int_equal(nr_oprofile, 60);
	assert_int_equal(nr_fetch, 13);
	assert_null(op_ibs_event_find("IBS_OP"));
	assert_int_equal(op_ibs_event_find("ibs_op_load")->number, 0xf201);
}

static uint32_t adds(const char *name, const struct op_ibs *ibs)
{
	return op_ibs_event_adds(op_ibs_event_find(name), ibs);
}

static void amounts(void **state OP_UNUSED)
{
	struct op_ibs load = {
		.kind = OP_IBS_OP,
		.facts = OP_IBS_FACT(OP_IBS_O_ALL) | OP_IBS_FACT(OP_IBS_O_LOAD) | OP_IBS_FACT(OP_IBS_O_DC_MISS),
		.latency = 476,
		.tag_to_ret = 1271,
		.depth = 5,
	};
	/* killed */
	struct op_ibs fetch = { .kind = OP_IBS_FETCH, .facts = OP_IBS_FACT(OP_IBS_F_ALL), .latency = 12 };

	assert_int_equal(adds("IBS_OP_LOAD", &load), 1);
	assert_int_equal(adds("IBS_OP_STORE", &load), 0);
	assert_int_equal(adds("IBS_OP_DC_LOAD_LAT", &load), 476);
	assert_int_equal(adds("IBS_OP_TAG_TO_RETIRE", &load), 1271);
	assert_int_equal(adds("IBS_OP_COMP_TO_RET", &load), 0);
	assert_int_equal(adds("IBS_OP_MLP_DEPTH", &load), 5);
	assert_int_equal(adds("IBS_FETCH_ALL", &load), 0);
	assert_int_equal(adds("IBS_FETCH_LATENCY", &fetch), 0);
	fetch.facts |= OP_IBS_FACT(OP_IBS_F_ATTEMPTED);
	assert_int_equal(adds("IBS_FETCH_LATENCY", &fetch), 12);
	assert_int_equal(adds("IBS_OP_ALL", &fetch), 0);
	assert_string_equal(op_ibs_event_unit(op_ibs_event_find("IBS_OP_DC_LOAD_LAT")), "cycles");
	assert_string_equal(op_ibs_event_unit(op_ibs_event_find("IBS_OP_LOAD")), "samples");
	assert_string_equal(op_ibs_event_unit(op_ibs_event_find("IBS_OP_MLP_DEPTH")), "misses");
}

/* The names of the second, third and further events of one name in a session. */
static void names_in_sessions(void **state OP_UNUSED)
{
	static const char *const others[] = { "IBS_OP_LOAD_",
					      "IBS_OP_LOAD_0",
					      "IBS_OP_LOAD_1",
					      "IBS_OP_LOAD_02",
					      "IBS_OP_LOAD_2x",
					      "IBS_OP_LOAD2",
					      "IBS_OP_LOAD_-2",
					      "IBS_OP_2",
					      "IBS_OP_LOA_2",
					      "IBS_OP_LOAD_2_3",
					      "IBS_OP_LOAD_S_2",
					      "_2",
					      "2",
					      "" };
	const struct op_ibs_event *latency = op_ibs_event_find("IBS_OP_DC_LOAD_LAT");

	assert_ptr_equal(op_ibs_event_of_session("IBS_OP_DC_LOAD_LAT_2"), latency);
	assert_ptr_equal(op_ibs_event_of_session("IBS_OP_DC_LOAD_LAT_9"), latency);
	assert_ptr_equal(op_ibs_event_of_session("ibs_op_dc_load_lat_10"), latency);
	assert_ptr_equal(op_ibs_event_of_session("IBS_OP_DC_LOAD_LAT_123"), latency);
	assert_string_equal(op_ibs_event_of_session("IBS_FETCH_4K_PAGE_2")->name, "IBS_FETCH_4K_PAGE");
	for (size_t i = 0; i < op_array_size(others); i++)
		assert_null(op_ibs_event_of_session(others[i]));
	assert_null(op_ibs_event_find("IBS_OP_DC_LOAD_LAT_2"));
}

static void what_a_cpu_has(void **state OP_UNUSED)
{
	struct op_ibs_cpu old, zen3, zen4;

	op_ibs_cpu_init(0x10, 2, &old);
	op_ibs_cpu_init(0x19, 1, &zen3);
	op_ibs_cpu_init(0x19, 0x11, &zen4);
	const struct op_ibs_cpu cpus[] = { old, zen3, zen4 };

	assert_true(op_ibs_event_is_there(op_ibs_event_find("IBS_OP_BANK_CONF_STORE"), &old, 0x1f));
	assert_false(op_ibs_event_is_there(op_ibs_event_find("IBS_OP_BANK_CONF_STORE"), &zen4, 0xbff));
	assert_true(op_ibs_event_is_there(op_ibs_event_find("IBS_FETCH_OP_CACHE_MISSES"), &zen4, 0xbff));
	assert_false(op_ibs_event_is_there(op_ibs_event_find("IBS_FETCH_OP_CACHE_MISSES"), &zen3, 0x3ff));
	assert_false(op_ibs_event_is_there(op_ibs_event_find("IBS_FETCH_ICACHE_MISSES"), &zen3, 0x3ff));
	assert_false(op_ibs_event_is_there(op_ibs_event_find("IBS_FETCH_ALL"), &zen4, 0x3fd));
	assert_true(op_ibs_event_is_there(op_ibs_event_find("IBS_OP_ALL"), &zen4, 0x3fd));
	for (const struct op_ibs_cpu *cpu = cpus; cpu < cpus + op_array_size(cpus); cpu++) {
		bool is_zen4 = cpu == &cpus[2];

		assert_int_equal(op_ibs_event_is_there(op_ibs_event_find("IBS_OP_SRC_L3"), cpu, is_zen4 ? 0xbff : 0x1f),
				 cpu != &cpus[1]);
	}
}

static void masks(void **state OP_UNUSED)
{
	assert_int_equal(op_ibs_unit_mask(OP_IBS_OP, 0)->value, 1);
	assert_int_equal(op_ibs_unit_mask(OP_IBS_OP, 1)->value, 0);
	assert_null(op_ibs_unit_mask(OP_IBS_OP, 2));
	assert_int_equal(op_ibs_unit_mask(OP_IBS_FETCH, 0)->value, 0);
	assert_null(op_ibs_unit_mask(OP_IBS_FETCH, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_sound),
		cmocka_unit_test(amounts),
		cmocka_unit_test(names_in_sessions),
		cmocka_unit_test(what_a_cpu_has),
		cmocka_unit_test(masks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
