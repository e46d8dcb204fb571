/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests for IBS in words, and their perf_event_attr. */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libop/events/ibs_request.h"

#define CAPS_FAM10 0x7u
#define CAPS_ZEN2  0x3ffu
#define CAPS_ZEN4  0xbffu
#define CAPS_ZEN5  0x81bffu

static struct op_ibs_host host(uint32_t family, uint32_t model, uint32_t caps)
{
	struct op_ibs_host result = { .caps = caps };

	op_ibs_cpu_init(family, model, &result.cpu);
	return result;
}

static struct op_ibs_request parse(const char *spec, const struct op_ibs_host *on)
{
	struct op_ibs_request request = { .event = NULL };
	char *why = NULL;
	int err = op_ibs_request_parse(spec, on, &request, &why);

	if (err)
		print_message("%s: %s\n", spec, why ? why : strerror(-err));
	assert_int_equal(err, 0);
	return request;
}

static void specifications(void **state OP_UNUSED)
{
	struct op_ibs_host zen5 = host(0x1a, 0x44, CAPS_ZEN5), fam10 = host(0x10, 2, CAPS_FAM10);
	struct op_ibs_request request = parse("ibs_op_load:250000", &zen5);

	assert_string_equal(request.event->name, "IBS_OP_LOAD");
	assert_int_equal(request.sampler.kind, OP_IBS_OP);
	assert_int_equal(request.sampler.count, 250000);
	assert_int_equal(request.sampler.unit_mask, 1);
	assert_true(request.sampler.kernel && request.sampler.user);
	assert_int_equal(parse("IBS_OP_LOAD:250000", &fam10).sampler.unit_mask, 0);
	request = parse("IBS_OP_LOAD:0x10000:0:0:1:ldlat=256:l3miss", &zen5);
	assert_int_equal(request.sampler.unit_mask, 0);
	assert_false(request.sampler.kernel);
	assert_int_equal(request.sampler.filter.load_latency, 256);
	assert_true(request.sampler.filter.l3_miss_only);
	request = parse("IBS_FETCH_ALL:100000:rand", &zen5);
	assert_true(request.sampler.filter.random);
	assert_int_equal(request.sampler.unit_mask, 0);
}

static void refusals(void **state OP_UNUSED)
{
	static const struct {
		uint32_t caps;
		const char *spec, *why;
	} cases[] = {
		{ CAPS_ZEN5, "IBS_OP_ALL", "count is missing" },
		{ CAPS_ZEN5, "IBS_OP_ALL:100001", "nearest is 100000" },
		{ CAPS_ZEN5, "IBS_OP_ALL:100008", "nearest is 100016" },
		{ CAPS_ZEN5, "IBS_OP_ALL:16", "nearest is 144" },
		{ CAPS_ZEN5, "IBS_OP_ALL:0", "nearest is 144" },
		{ CAPS_ZEN5, "IBS_FETCH_ALL:1", "nearest is 16" },
		{ CAPS_ZEN5, "IBS_OP_ALL:4294967295", "nearest is 4294967280" },
		{ CAPS_ZEN5, "IBS_OP_ALL:4294967296", "nearest is 4294967280" },
		{ CAPS_ZEN5, "IBS_OP_ALL:99999999999999999999", "nearest is 4294967280" },
		{ CAPS_ZEN5, "IBS_FETCH_ALL:4294967296", "at least 16, a multiple of 16), the nearest is 4294967280" },
		{ CAPS_ZEN5, "IBS_OP_ALL:1x", "count '1x' is not a number" },
		{ CAPS_ZEN5, "IBS_OP_ALL:many", "not a filter" },
		{ CAPS_ZEN5, "IBS_OP_ALL:", "not a number" },
		{ CAPS_ZEN5, "IBS_OP_ALL:100000:2", "no unit mask 2" },
		{ CAPS_ZEN5, "IBS_FETCH_ALL:100000:1", "no unit mask 1" },
		{ CAPS_FAM10, "IBS_OP_ALL:100000:1", "cannot count dispatched ops" },
		{ CAPS_ZEN5, "IBS_OP_ALL:100000:0:0:0", "neither kernel nor user" },
		{ CAPS_ZEN5, "IBS_OP_ALL:100000:0:2", "kernel flag" },
		{ CAPS_ZEN5, "IBS_OP_ALL:100000:0:1:1:1", "too many numbers" },
		{ CAPS_ZEN5, "IBS_OP_ALL:100000:rand", "fetches only" },
		{ CAPS_ZEN5, "IBS_FETCH_ALL:100000:ldlat=256", "ops only" },
		{ CAPS_ZEN5, "IBS_OP_ALL:100000:ldlat=127", "nearest is 128" },
		{ CAPS_ZEN5, "IBS_OP_ALL:100000:ldlat=2049", "nearest is 2048" },
		{ CAPS_ZEN5, "IBS_OP_ALL:100000:ldlat=long", "is not a number" },
		{ CAPS_ZEN5, "IBS_OP_LOAD:100000:ldlat=128:ldlat=256", "'ldlat=256' is there twice" },
		{ CAPS_ZEN5, "IBS_OP_LOAD:100000:l3miss:l3miss", "'l3miss' is there twice" },
		{ CAPS_ZEN5, "IBS_OP_STORE:100000:ldlat=128", "only loads that missed" },
		{ CAPS_ZEN5, "IBS_OP_MISPREDICTED_BRANCH:100000:ldlat=128", "only loads that missed" },
		{ CAPS_ZEN5, "IBS_OP_SRC_L1:100000:ldlat=128", "only loads that missed" },
		{ CAPS_ZEN5, "IBS_OP_ALL:100000:l3missonly", "not a filter" },
		{ CAPS_ZEN4, "IBS_OP_ALL:100000:ldlat=256", "Zen 5 and later" },
		{ CAPS_ZEN2, "IBS_OP_ALL:100000:l3miss", "Zen 4 and later" },
		{ CAPS_ZEN2, "IBS_FETCH_OP_CACHE_MISSES:100000", "does not have it" },
	};

	for (size_t i = 0; i < op_array_size(cases); i++) {
		struct op_ibs_host on = host(cases[i].caps == CAPS_FAM10 ? 0x10 : 0x19, 0x11, cases[i].caps);
		struct op_ibs_request request = { .event = NULL };
		char *why = NULL;

		assert_int_equal(op_ibs_request_parse(cases[i].spec, &on, &request, &why), -EINVAL);
		assert_null(request.event);
		assert_non_null(strstr(why, cases[i].spec));
		if (!strstr(why, cases[i].why))
			fail_msg("%s: not '%s'", why, cases[i].why);
		free(why);
	}
}

static void not_of_ibs(void **state OP_UNUSED)
{
	struct op_ibs_host zen4 = host(0x19, 0x11, CAPS_ZEN4);
	struct op_ibs_request request;
	char *why = NULL;

	assert_int_equal(op_ibs_request_parse("TIMER:1000000", &zen4, &request, &why), -ENOENT);
	assert_int_equal(op_ibs_request_parse("", &zen4, &request, &why), -ENOENT);
	assert_null(why);
}

/* What the kernel's own test of IBS periods expects of Linux 6.15. */
static void periods_in_config(void **state OP_UNUSED)
{
	static const struct {
		enum op_ibs_kind kind;
		uint64_t config, period; /* 0: refused */
	} cases[] = {
		{ OP_IBS_FETCH, 0xffff, 0xffff0 },
		{ OP_IBS_FETCH, 0x1000, 0x10000 },
		{ OP_IBS_FETCH, 0xff, 0xff0 },
		{ OP_IBS_FETCH, 0x1, 0x10 },
		{ OP_IBS_FETCH, 0, 0 },
		{ OP_IBS_FETCH, 0x10000, 0 },
		{ OP_IBS_OP, 0, 0 },
		{ OP_IBS_OP, 1, 0 },
		{ OP_IBS_OP, 8, 0 },
		{ OP_IBS_OP, 0x9, 0x90 },
		{ OP_IBS_OP, 0xf, 0xf0 },
		{ OP_IBS_OP, 0x1000, 0x10000 },
		{ OP_IBS_OP, 0xffff, 0xffff0 },
		{ OP_IBS_OP, 0x10000, 0 },
		{ OP_IBS_OP, 0x100000, 0x100000 },
		{ OP_IBS_OP, 0xf00000, 0xf00000 },
		{ OP_IBS_OP, 0xf0ffff, 0xfffff0 },
		{ OP_IBS_OP, 0x1f0ffff, 0x1fffff0 },
		{ OP_IBS_OP, 0x7f0ffff, 0x7fffff0 },
		{ OP_IBS_OP, 0x8f0ffff, 0 },
		{ OP_IBS_OP, 0x17f0ffff, 0 },
	};

	for (size_t i = 0; i < op_array_size(cases); i++) {
		struct perf_event_attr attr = { .config = cases[i].config };
		struct op_ibs_sampler sampler = { .kind = cases[i].kind };

		op_ibs_attr_read(&attr, &sampler);
		assert_int_equal(sampler.count, cases[i].period);
	}
}

static void nearest_periods(void **state OP_UNUSED)
{
	static const uint64_t sound[] = { 0x90, 0x4d0, 0x1000, 0x10010, 0x7ffff0, 0xffffff0, 0xfffffff0 };

	for (size_t i = 0; i < op_array_size(sound); i++)
		assert_int_equal(op_ibs_period_nearest(OP_IBS_OP, sound[i]), sound[i]);
	assert_int_equal(op_ibs_period_nearest(OP_IBS_OP, 0x80), 0x90);
	assert_int_equal(op_ibs_period_nearest(OP_IBS_FETCH, 0x80), 0x80);
	assert_int_equal(op_ibs_period_nearest(OP_IBS_FETCH, 0), 0x10);
	assert_int_equal(op_ibs_period_nearest(OP_IBS_FETCH, 0x97), 0x90);
	assert_int_equal(op_ibs_period_nearest(OP_IBS_FETCH, 0x98), 0xa0);
	assert_int_equal(op_ibs_period_nearest(OP_IBS_OP, UINT64_MAX), 0xfffffff0);
}

static void samplers(void **state OP_UNUSED)
{
	struct op_ibs_host zen5 = host(0x1a, 0x44, CAPS_ZEN5);
	struct op_ibs_request requests[] = {
		parse("IBS_OP_LOAD:250000", &zen5),
		parse("IBS_FETCH_ALL:100000", &zen5),
		parse("IBS_OP_DC_LOAD_LAT:250000:1", &zen5),
	};
	static const struct {
		const char *spec, *what, *name;
	} conflicts[] = {
		{ "IBS_OP_STORE:250016", "count", "IBS_OP_STORE" },
		{ "IBS_OP_STORE:250000:0", "unit mask", "IBS_OP_STORE" },
		{ "IBS_OP_STORE:250000:1:0", "kernel and user", "IBS_OP_STORE" },
		{ "IBS_OP_STORE:250000:l3miss", "filter", "IBS_OP_STORE" },
		{ "IBS_OP_L2_MISS:250000:ldlat=128", "filter", "IBS_OP_L2_MISS" },
	};
	struct op_ibs_plan plan = { .nr_samplers = 9 };
	char *why = NULL;

	for (size_t i = 0; i < op_array_size(conflicts); i++) {
		requests[2] = parse(conflicts[i].spec, &zen5);
		assert_int_equal(op_ibs_plan(requests, 3, &plan, &why), -EINVAL);
		assert_int_equal(plan.nr_samplers, 9);
		assert_non_null(strstr(why, conflicts[i].what));
		assert_non_null(strstr(why, conflicts[i].name));
		assert_non_null(strstr(why, "IBS_OP_LOAD"));
		free(why);
	}
	requests[2] = parse("IBS_OP_DC_LOAD_LAT:250000:1", &zen5);
	assert_int_equal(op_ibs_plan(requests, 3, &plan, &why), 0);
	assert_int_equal(plan.nr_samplers, 2);
	assert_int_equal(plan.samplers[0].kind, OP_IBS_OP);
	assert_int_equal(plan.samplers[1].kind, OP_IBS_FETCH);
	assert_int_equal(plan.samplers[1].count, 100000);
}

static struct perf_event_attr attr_of(const char *spec)
{
	struct op_ibs_host zen5 = host(0x1a, 0x44, CAPS_ZEN5);
	struct op_ibs_request request = parse(spec, &zen5);
	struct perf_event_attr attr = { .size = 0 };

	op_ibs_attr(&request.sampler, 11, &attr);
	assert_int_equal(attr.size, sizeof(attr));
	assert_int_equal(attr.type, 11);
	return attr;
}

static void attributes(void **state OP_UNUSED)
{
	struct perf_event_attr attr = attr_of("IBS_OP_LOAD:250000");

	assert_int_equal(attr.sample_period, 250000);
	assert_int_equal(attr.config, 1u << 19);
	assert_int_equal(attr.config1 | attr.config2, 0);
	assert_false(attr.exclude_kernel || attr.exclude_user || attr.exclude_hv || attr.exclude_idle);
	attr = attr_of("IBS_OP_LOAD:250000:0:l3miss:ldlat=300");
	assert_int_equal(attr.config, 1u << 16);
	assert_int_equal(attr.config1, 300);
	attr = attr_of("IBS_OP_LOAD:250000:0:0:1");
	assert_true(attr.exclude_kernel && !attr.exclude_user && !attr.exclude_hv);
	assert_int_equal(attr.config2, 1);
	attr = attr_of("IBS_FETCH_ALL:100000:rand:l3miss");
	assert_int_equal(attr.config, UINT64_C(1) << 57 | UINT64_C(1) << 59);
	assert_int_equal(attr.config1 | attr.config2, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(specifications),    cmocka_unit_test(refusals),        cmocka_unit_test(not_of_ibs),
		cmocka_unit_test(periods_in_config), cmocka_unit_test(nearest_periods), cmocka_unit_test(samplers),
		cmocka_unit_test(attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
