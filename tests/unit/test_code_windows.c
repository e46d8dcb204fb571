/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which parts of large code are listed: around all samples when there is room, else around the
 * addresses with the most samples.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tools/code/windows.h"

#define START 0x400000u
#define END   0x4000000u
#define ROOM  (16u << 20)
/* of a sample without another one near it */
#define ALONE (2 * OPR_CODE_AROUND_BYTES + OPR_CODE_LEAD_BYTES)

struct choice {
	struct opr_code_window *windows;
	size_t nr_windows;
};

static struct choice choose(const struct opr_code_point *points, size_t nr_points, uint64_t bytes_max)
{
	struct choice choice = { 0 };

	assert_int_equal(opr_code_windows(points, nr_points, START, END, bytes_max, &choice.windows, &choice.nr_windows), 0);
	assert_true(opr_code_windows_bytes(choice.windows, choice.nr_windows, START) <= bytes_max);
	for (size_t i = 0; i < choice.nr_windows; i++) {
		assert_true(choice.windows[i].start >= START && choice.windows[i].end <= END);
		assert_true(choice.windows[i].start < choice.windows[i].end);
		assert_true(!i || choice.windows[i].start > choice.windows[i - 1].end + OPR_CODE_LEAD_BYTES);
	}
	return choice;
}

static bool is_shown(const struct choice *choice, uint64_t vma)
{
	for (size_t i = 0; i < choice->nr_windows; i++)
		if (vma >= choice->windows[i].start && vma < choice->windows[i].end)
			return true;
	return false;
}

static void around_each(void **state OP_UNUSED)
{
	const struct opr_code_point points[] = { { START - 1, 9 }, { START, 1 },
						 { 0x500000, 2 },  { 0x500000 + 2 * OPR_CODE_AROUND_BYTES, 1 },
						 { 0x600000, 3 },  { END - 1, 1 },
						 { END, 7 } };
	struct choice choice = choose(points, op_array_size(points), ROOM);

	assert_int_equal(choice.nr_windows, 4);
	for (size_t i = 1; i + 1 < op_array_size(points); i++)
		assert_true(is_shown(&choice, points[i].vma));
	assert_int_equal(choice.windows[0].start, START);
	assert_int_equal(choice.windows[1].end - choice.windows[1].start, 4 * OPR_CODE_AROUND_BYTES);
	assert_int_equal(choice.windows[2].start, 0x600000 - OPR_CODE_AROUND_BYTES);
	assert_int_equal(choice.windows[3].end, END);
	free(choice.windows);
}

static void nowhere(void **state OP_UNUSED)
{
	const struct opr_code_point point = { END + 1, 5 };
	struct choice choice = choose(&point, 1, ROOM);

	assert_int_equal(choice.nr_windows, 0);
	free(choice.windows);
	choice = choose(NULL, 0, ROOM);
	assert_int_equal(choice.nr_windows, 0);
	free(choice.windows);
}

/*
 * When there is not enough room, the addresses with the most samples stay; equal counts are taken
 * by address.
 */
static void most_samples_first(void **state OP_UNUSED)
{
	enum { NR = 1000, ROOM_FOR = 100 };
	static struct opr_code_point points[NR];
	struct choice choice;

	for (size_t i = 0; i < NR; i++)
		points[i] = (struct opr_code_point){ START + 0x1000 + i * 0x1000, 1 + i % 10 };
	choice = choose(points, NR, ROOM_FOR * ALONE);
	assert_int_equal(choice.nr_windows, ROOM_FOR);
	for (size_t i = 0; i < NR; i++)
		assert_int_equal(is_shown(&choice, points[i].vma), i % 10 == 9);
	free(choice.windows);
	choice = choose(points, NR, (ROOM_FOR + 1) * ALONE);
	assert_true(is_shown(&choice, points[8].vma) && !is_shown(&choice, points[18].vma));
	free(choice.windows);
	choice = choose(points, NR, 0);
	assert_int_equal(choice.nr_windows, 0);
	free(choice.windows);
}

/* Neighbours share their context, so more addresses fit. */
static void crowds_have_room(void **state OP_UNUSED)
{
	enum { NR = 100000 };
	static struct opr_code_point points[NR];
	struct choice choice;

	for (size_t i = 0; i < NR; i++)
		points[i] = (struct opr_code_point){ START + i * 4, 1 };
	choice = choose(points, NR, NR * 4 + OPR_CODE_AROUND_BYTES);
	assert_int_equal(choice.nr_windows, 1);
	assert_true(is_shown(&choice, points[NR - 1].vma));
	free(choice.windows);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(around_each), cmocka_unit_test(nowhere),
					    cmocka_unit_test(most_samples_first), cmocka_unit_test(crowds_have_room) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
