/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A merge sort. Each of 2^n threads sorts a piece; then pairs of pieces are merged, n times. For
 * each merge the result is cut into one segment of equal length per thread. A binary search finds
 * where a segment begins in both pieces.
 */
#include "tools/common/parallel_sort.h"

#include <errno.h>

#include "libop/base/atomic.h"
#include "libop/session/memory_view.h"
#include "libop/process/threads.h"

#define ITEMS_OF_THREAD 4096

struct sort {
	size_t nr_items, item_bytes;
	int (*compare)(const void *a, const void *b, void *arg);
	void *arg;
	char *from, *to;
	size_t nr_pieces; /* a power of 2, in the beginning */
	size_t nr_merged; /* pieces that are merged into one already */
	uint64_t next;    /* the next piece or segment for any thread */
};

static size_t begin_of(const struct sort *sort, size_t piece)
{
	return sort->nr_items / sort->nr_pieces * piece + op_min_u64(piece, sort->nr_items % sort->nr_pieces);
}

static char *item_of(const struct sort *sort, size_t index)
{
	return sort->from + index * sort->item_bytes;
}

static void sort_pieces(void *arg)
{
	struct sort *sort = arg;
	size_t piece;

	while ((piece = op_fetch_add_relaxed(&sort->next, 1)) < sort->nr_pieces) {
		size_t begin = begin_of(sort, piece);

		qsort_r(item_of(sort, begin), begin_of(sort, piece + 1) - begin, sort->item_bytes, sort->compare, sort->arg);
	}
}

/* Two neighbours, each sorted: [left, middle) and [middle, right). */
struct pair {
	size_t left, middle, right;
};

/* How many of the first `nr` merged items come from the left one. */
static size_t split(const struct sort *sort, const struct pair *pair, size_t nr)
{
	size_t nr_left = pair->middle - pair->left, nr_right = pair->right - pair->middle;
	size_t low = nr > nr_right ? nr - nr_right : 0, high = op_min_u64(nr, nr_left);

	while (low < high) {
		size_t i = low + (high - low) / 2;

		if (sort->compare(item_of(sort, pair->left + i), item_of(sort, pair->middle + nr - i - 1), sort->arg) < 0)
			low = i + 1;
		else
			high = i;
	}
	return low;
}

static void merge(const struct sort *sort, const struct pair *pair, size_t begin, size_t end)
{
	size_t left = pair->left + split(sort, pair, begin), left_end = pair->left + split(sort, pair, end);
	size_t right = pair->left + pair->middle + begin - left, right_end = pair->left + pair->middle + end - left_end;
	char *to = sort->to + (pair->left + begin) * sort->item_bytes;

	for (; left < left_end && right < right_end; to += sort->item_bytes) {
		bool is_left = sort->compare(item_of(sort, left), item_of(sort, right), sort->arg) < 0;

		memcpy(to, item_of(sort, is_left ? left++ : right++), sort->item_bytes);
	}
	memcpy(to, item_of(sort, left), (left_end - left) * sort->item_bytes);
	memcpy(to + (left_end - left) * sort->item_bytes, item_of(sort, right), (right_end - right) * sort->item_bytes);
}

/* The segments of a pair are numbered like its pieces. */
static void merge_segments(void *arg)
{
	struct sort *sort = arg;
	size_t segment, nr_segments = 2 * sort->nr_merged;

	while ((segment = op_fetch_add_relaxed(&sort->next, 1)) < sort->nr_pieces) {
		size_t first = segment / nr_segments * nr_segments, at = segment % nr_segments;
		const struct pair pair = { begin_of(sort, first), begin_of(sort, first + sort->nr_merged),
					   begin_of(sort, first + nr_segments) };
		size_t nr_both = pair.right - pair.left;

		merge(sort, &pair, nr_both * at / nr_segments, nr_both * (at + 1) / nr_segments);
	}
}

static void run_step(struct sort *sort, void (*work)(void *arg))
{
	sort->next = 0;
	op_run_threads(sort->nr_pieces, work, sort);
}

int opr_sort_by_some(void *items, size_t nr_items, size_t item_bytes, int (*compare)(const void *a, const void *b, void *arg),
		     void *arg, size_t nr_threads)
{
	struct sort sort = { nr_items, item_bytes, compare, arg, items, NULL, 1, 1, 0 };
	char *more;

	while (2 * sort.nr_pieces <= nr_threads)
		sort.nr_pieces *= 2;
	if (sort.nr_pieces == 1) {
		qsort_r(items, nr_items, item_bytes, compare, arg);
		return 0;
	}
	more = sort.to = reallocarray(NULL, nr_items + 1, item_bytes);
	if (!more)
		return -ENOMEM;
	run_step(&sort, sort_pieces);
	for (; sort.nr_merged < sort.nr_pieces; sort.nr_merged *= 2) {
		char *merged = sort.to;

		run_step(&sort, merge_segments);
		sort.to = sort.from;
		sort.from = merged;
	}
	if (sort.from != items)
		memcpy(items, sort.from, nr_items * item_bytes);
	free(more);
	return 0;
}

int opr_sort_by_threads(void *items, size_t nr_items, size_t item_bytes, int (*compare)(const void *a, const void *b, void *arg),
			void *arg)
{
	size_t nr_wanted = nr_items / ITEMS_OF_THREAD;

	return opr_sort_by_some(items, nr_items, item_bytes, compare, arg, nr_wanted > 1 ? op_min_u64(op_nr_cpus(), nr_wanted) : 1);
}
