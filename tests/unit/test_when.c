/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Points in time and time spans, as systemd.time(7) has them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

#include "libop/base/parse.h"
#include "tools/common/when.h"

#define S   1000000ull
#define NOW (1795230000ull * S) /* 2026-11-21 03:00:00 UTC, a Saturday */
#define DAY (86400 * S)

struct point {
	const char *text;
	uint64_t us;
};

static void set_zone(const char *zone)
{
	setenv("TZ", zone, 1);
	tzset();
}

static void check_points(const char *zone, const struct point *points, size_t nr_points)
{
	set_zone(zone);
	for (size_t i = 0; i < nr_points; i++) {
		uint64_t us = 1;

		if (opr_when_parse(points[i].text, NOW, &us) || us != points[i].us)
			fail_msg("'%s' in %s is %llu, not %llu", points[i].text, zone, (unsigned long long)us,
				 (unsigned long long)points[i].us);
	}
}

static void test_utc(void **state OP_UNUSED)
{
	static const struct point points[] = {
		{ "now", NOW },
		{ " NOW ", NOW },
		{ "today", NOW - 3 * 3600 * S },
		{ "yesterday", NOW - 3 * 3600 * S - DAY },
		{ "tomorrow", NOW + 21 * 3600 * S },
		{ "03:00", NOW },
		{ "02:59:30", NOW - 30 * S },
		{ "02:59:30.25", NOW - 30 * S + S / 4 },
		{ "23:59", NOW + 21 * 3600 * S - 60 * S },
		{ "2026-11-21", NOW - 3 * 3600 * S },
		{ "2026-11-21 03:00", NOW },
		{ "2026-11-21T03:00Z", NOW },
		{ "2026-11-21T03:00:07Z", NOW + 7 * S },
		{ "Sat 2026-11-21 03:00", NOW },
		{ "saturday, 2026-11-21 03:00:00 UTC", NOW },
		{ "2024-02-29 12:00", 1709208000ull * S },
		{ "3:00", NOW },
		{ "2:59:3", NOW - 57 * S },
		{ "2026-11-21 3:00", NOW },
		{ "2026-11-21 2:59:60", NOW },
		{ "26-11-21", NOW - 3 * 3600 * S },
		{ "99-1-2", 915235200ull * S },
		{ "@0", 0 },
		{ "@1795230000", NOW },
		{ "@1795230000.5", NOW + S / 2 },
		{ "-2h", NOW - 7200 * S },
		{ "+90min", NOW + 5400 * S },
		{ "2 hours ago", NOW - 7200 * S },
		{ "1h 30min ago", NOW - 5400 * S },
		{ "1 week left", NOW + 7 * DAY },
		{ "yesterday 03:00", NOW - DAY },
		{ "Today 2:59:30.5", NOW - 30 * S + S / 2 },
		{ "tomorrow 03:00 UTC", NOW + DAY },
		{ "yesterday 22:00 Europe/Berlin", NOW - 6 * 3600 * S },
		{ "Sat 03:00", NOW },
		{ "2026-11-21 04:00 Europe/Berlin", NOW },
		{ "2026-07-01 12:00 Europe/Berlin", 1782900000ull * S },
		{ "2026-11-21T05:00:00+02:00", NOW },
		{ "2026-11-20 23:30 -0330", NOW },
		{ "03:00+00:00", NOW },
	};

	check_points("UTC", points, op_array_size(points));
}

static void test_zone(void **state OP_UNUSED)
{
	static const struct point points[] = {
		{ "today", NOW - 4 * 3600 * S },           { "03:00", NOW - 3600 * S },  { "2026-11-21 03:00", NOW - 3600 * S },
		{ "2026-11-21 03:00 UTC", NOW },           { "2026-11-21T03:00Z", NOW }, { "03:00 UTC", NOW },
		{ "2026-07-01 12:00", 1782900000ull * S }, /* in summer, two hours ahead */
	};

	check_points("CET-1CEST,M3.5.0,M10.5.0/3", points, op_array_size(points));
}

static void test_refused(void **state OP_UNUSED)
{
	static const struct {
		const char *text;
		int err;
	} rows[] = {
		{ "", -EINVAL },
		{ "  ", -EINVAL },
		{ "soon", -EINVAL },
		{ "2026", -EINVAL },
		{ "126-11-21", -EINVAL },
		{ "6-11-21", -EINVAL },
		{ "02026-11-21", -EINVAL },
		{ "2026-11-021", -EINVAL },
		{ "2026-11", -EINVAL },
		{ "003:00", -EINVAL },
		{ "03:00:61", -ERANGE },
		{ "2026-11-21 03:00 tea", -EINVAL },
		{ "yesterday 24:00", -ERANGE },
		{ "yesterday 03:00 ago", -EINVAL },
		{ "2026-11-21 ago", -EINVAL },
		{ "yesterday x", -EINVAL },
		{ "yesterdays", -EINVAL },
		{ "today 03:00 Europe/../UTC", -EINVAL },
		{ "today 03:00 ../../../etc/hostname", -EINVAL },
		{ "today Europe/", -EINVAL },
		{ "2026-11-21+02:00", -EINVAL },
		{ "03:00+02:0", -EINVAL },
		{ "03:00+25:00", -EINVAL },
		{ "Mon 03:00", -ERANGE },
		{ "2026-11-21x", -EINVAL },
		{ "03:00:", -EINVAL },
		{ "03:00:00.", -EINVAL },
		{ "Sat", -EINVAL },
		{ "-", -EINVAL },
		{ "-2 parsecs", -EINVAL },
		{ "2 hours", -EINVAL },
		{ "@", -EINVAL },
		{ "@1.", -EINVAL },
		{ "@-1", -EINVAL },
		{ "@99999999999999999999", -ERANGE },
		{ "2026-02-29", -ERANGE },
		{ "2026-13-01", -ERANGE },
		{ "2026-00-10", -ERANGE },
		{ "2026-11-00", -ERANGE },
		{ "24:00", -ERANGE },
		{ "03:60", -ERANGE },
		{ "1960-01-01", -ERANGE },
		{ "Mon 2026-11-21", -ERANGE },
		{ "-100y", -ERANGE },
	};

	set_zone("UTC");
	for (size_t i = 0; i < op_array_size(rows); i++) {
		uint64_t us = 4711;
		int err = opr_when_parse(rows[i].text, NOW, &us);

		if (err != rows[i].err || us != 4711)
			fail_msg("'%s' gives %d, not %d", rows[i].text, err, rows[i].err);
	}
}

static void test_spans(void **state OP_UNUSED)
{
	static const struct point spans[] = {
		{ "0", 0 },
		{ "5", 5 * S },
		{ "1h", 3600 * S },
		{ "1h30", 3630 * S },
		{ "1h 30min", 5400 * S },
		{ "1d12h", 129600 * S },
		{ "4weeks", 28 * DAY },
		{ "2 days 1 s 5ms 7us", 2 * DAY + S + 5007 },
		{ "0.5h", 1800 * S },
		{ "1.5ms", 1500 },
		{ "1M", 2629800 * S },
		{ "1m", 60 * S },
		{ "1y", 31557600 * S },
	};
	static const char *const bad[] = { "", " ", "h", "1x", "-1", "1.", "1h.5", "1 hh", "hour" };
	uint64_t us = 4711;

	for (size_t i = 0; i < op_array_size(spans); i++)
		if (op_parse_span_us(spans[i].text, &us) || us != spans[i].us)
			fail_msg("'%s' is %llu, not %llu", spans[i].text, (unsigned long long)us, (unsigned long long)spans[i].us);
	us = 4711;
	for (size_t i = 0; i < op_array_size(bad); i++)
		if (op_parse_span_us(bad[i], &us) != -EINVAL || us != 4711)
			fail_msg("'%s' is taken for a span", bad[i]);
	assert_int_equal(op_parse_span_us("18446744073709551615y", &us), -ERANGE);
	assert_int_equal(op_parse_span_us("99999999999999999999", &us), -ERANGE);
	assert_int_equal(us, 4711);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_utc),
		cmocka_unit_test(test_zone),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_spans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
