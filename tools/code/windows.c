/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/code/windows.h"

#include <errno.h>

/* A point in the area; rank 0 has the most samples. */
struct ranked {
	uint64_t vma, count;
	size_t rank;
};

static int by_count(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return a->vma < b->vma ? -1 : a->vma > b->vma;
}

static int by_address(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	return a->vma < b->vma ? -1 : a->vma > b->vma;
}

static struct opr_code_window around(uint64_t vma, uint64_t start, uint64_t end)
{
	return (struct opr_code_window){ vma - start > OPR_CODE_AROUND_BYTES ? vma - OPR_CODE_AROUND_BYTES : start,
					 end - vma > OPR_CODE_AROUND_BYTES ? vma + OPR_CODE_AROUND_BYTES : end };
}

/* Merges windows when the lead of one would touch the one before. Uses ranks below `limit`. */
static size_t make_windows(const struct ranked *points, size_t nr_points, size_t limit, uint64_t start, uint64_t end,
			   struct opr_code_window *windows)
{
	size_t nr_windows = 0;

	for (size_t i = 0; i < nr_points; i++) {
		struct opr_code_window window = around(points[i].vma, start, end);

		if (points[i].rank >= limit)
			continue;
		if (nr_windows && window.start - start <= windows[nr_windows - 1].end - start + OPR_CODE_LEAD_BYTES)
			windows[nr_windows - 1].end = window.end;
		else
			windows[nr_windows++] = window;
	}
	return nr_windows;
}

uint64_t opr_code_windows_bytes(const struct opr_code_window *windows, size_t nr_windows, uint64_t start)
{
	uint64_t nr_bytes = 0;

	for (size_t i = 0; i < nr_windows; i++)
		nr_bytes += windows[i].end - windows[i].start + op_min_u64(OPR_CODE_LEAD_BYTES, windows[i].start - start);
	return nr_bytes;
}

/* Takes as many points as there is room for, by rank, and makes their windows. */
static size_t choose_windows(const struct ranked *points, size_t nr_points, uint64_t start, uint64_t end, uint64_t bytes_max,
			     struct opr_code_window *windows)
{
	size_t low = 0, high = nr_points, nr_windows;

	while (low < high) {
		size_t middle = low + (high - low + 1) / 2;

		nr_windows = make_windows(points, nr_points, middle, start, end, windows);
		if (opr_code_windows_bytes(windows, nr_windows, start) <= bytes_max)
			low = middle;
		else
			high = middle - 1;
	}
	return make_windows(points, nr_points, low, start, end, windows);
}

int opr_code_windows(const struct opr_code_point *points, size_t nr_points, uint64_t start, uint64_t end, uint64_t bytes_max,
		     struct opr_code_window **ret_windows, size_t *ret_nr_windows)
{
	struct ranked *ranked = calloc(nr_points + 1, sizeof(*ranked));
	struct opr_code_window *windows = calloc(nr_points + 1, sizeof(*windows));
	size_t nr_ranked = 0;

	if (!ranked || !windows) {
		free(ranked);
		free(windows);
		return -ENOMEM;
	}
	for (size_t i = 0; i < nr_points; i++)
		if (points[i].vma >= start && points[i].vma < end)
			ranked[nr_ranked++] = (struct ranked){ .vma = points[i].vma, .count = points[i].count };
	qsort(ranked, nr_ranked, sizeof(*ranked), by_count);
	for (size_t i = 0; i < nr_ranked; i++)
		ranked[i].rank = i;
	qsort(ranked, nr_ranked, sizeof(*ranked), by_address);
	*ret_nr_windows = choose_windows(ranked, nr_ranked, start, end, bytes_max, windows);
	*ret_windows = windows;
	free(ranked);
	return 0;
}
