/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What was at an address at a time: a comparison with a model that keeps the history of each
 * address by itself, with limits, and with additions at the ends of the address space and of time.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdlib.h>

#include "pipeline/jit/spans.h"

#define ADDRESSES 48u
#define NR_ADDED  400u
#define LIMIT     64u

struct row {
	OPD_SPAN_FIELDS(offset);
	uint64_t id; /* its number, from 1 */
};

/* How many rows there are of each number. */
static int nr_of[NR_ADDED + 1];

static void count(const void *row, bool is_more, void *arg)
{
	assert_ptr_equal(arg, nr_of);
	nr_of[((const struct row *)row)->id] += is_more ? 1 : -1;
	assert_true(nr_of[((const struct row *)row)->id] >= 0);
}

static const struct opd_span_kind whole = { .row_bytes = sizeof(struct row), .past_max = SIZE_MAX, .count = count };
static const struct opd_span_kind small = { .row_bytes = sizeof(struct row), .past_max = 16, .count = count };
static const struct opd_span_kind limited = { .row_bytes = sizeof(struct row), .past_max = LIMIT, .rows_max = LIMIT };

static const struct row *find(const struct opd_spans *spans, uint64_t address, uint64_t time_ns)
{
	return opd_spans_find(spans, sizeof(struct row), address, time_ns);
}

static uint64_t id_at(const struct opd_spans *spans, uint64_t address, uint64_t time_ns)
{
	const struct row *row = find(spans, address, time_ns);

	return row ? row->id : 0;
}

static void add(struct opd_spans *spans, const struct row *row, uint64_t horizon_ns)
{
	assert_int_equal(opd_spans_reserve(spans, row), 0);
	opd_spans_replace(spans, row, row, spans, horizon_ns);
}

/* ---- the model ---- */

struct stay {
	uint64_t from_ns, to_ns, id; /* id 0: nothing holds */
	uint64_t start;              /* of the row that was added */
};

/* What was at each address; the last one holds. */
struct history {
	struct stay stays[NR_ADDED + 1];
	size_t nr;
};

static void put(struct history *history, const struct row *row, bool is_added)
{
	struct stay *last = &history->stays[history->nr - 1];

	if (last->id && row->from_ns > last->from_ns)
		last->to_ns = row->from_ns;
	else
		history->nr--;
	history->stays[history->nr++] = (struct stay){ row->from_ns, UINT64_MAX, is_added ? row->id : 0, row->start };
}

static const struct stay *wanted_at(const struct history *history, uint64_t time_ns)
{
	const struct stay *last = &history->stays[history->nr - 1];

	for (size_t i = history->nr; i > 0; i--) {
		const struct stay *stay = &history->stays[i - 1];

		if (stay->id && stay->from_ns <= time_ns && (time_ns < stay->to_ns || stay == last))
			return stay;
	}
	return last->id ? last : NULL;
}

static void compare(const struct opd_spans *spans, const struct history *histories, uint64_t horizon_ns, uint64_t now_ns)
{
	for (uint64_t address = 0; address < ADDRESSES; address++) {
		for (int question = 0; question < 4; question++) {
			uint64_t time_ns = question ? horizon_ns + (uint64_t)random() % (now_ns - horizon_ns + 5) : UINT64_MAX;
			const struct stay *wanted = wanted_at(&histories[address], time_ns);
			const struct row *found = find(spans, address, time_ns);

			if (!found && time_ns < spans->unknown_until_ns)
				continue;
			assert_int_equal(found ? found->id : 0, wanted ? wanted->id : 0);
			if (found)
				assert_int_equal(found->offset + address - found->start, address - wanted->start);
		}
	}
}

static bool is_odd(const void *row, void *arg)
{
	(*(size_t *)arg)++;
	return ((const struct row *)row)->id & 1;
}

/* Ends the rows with odd numbers. */
static void end_odd(struct opd_spans *spans, struct history *histories, uint64_t time_ns)
{
	size_t nr_rows = spans->now.nr, nr_asked = 0;

	opd_spans_end(spans, is_odd, &nr_asked, time_ns);
	assert_int_equal(nr_asked, nr_rows);
	for (size_t i = 0; i < ADDRESSES; i++)
		if (histories[i].stays[histories[i].nr - 1].id & 1)
			put(&histories[i], &(struct row){ .from_ns = time_ns }, false);
}

/* Adds, cuts, ends and forgets. One addition in ten has an earlier time than those before it. */
static void run(const struct opd_span_kind *kind, unsigned int seed, uint64_t behind_ns)
{
	static struct history histories[ADDRESSES];
	struct opd_span_account account = { .arg = nr_of };
	struct opd_spans spans = { .kind = kind, .account = &account };

	srandom(seed);
	for (size_t i = 0; i < ADDRESSES; i++)
		histories[i] = (struct history){ .nr = 1 };
	for (uint64_t id = 1; id <= NR_ADDED; id++) {
		uint64_t now_ns = 10 * id, horizon_ns = now_ns - op_min_u64(now_ns, behind_ns);
		uint64_t start = (uint64_t)random() % ADDRESSES, end = start + 1 + (uint64_t)random() % (ADDRESSES - start);
		bool is_late = behind_ns > 50 && random() % 10 == 0, is_added = random() % 5;
		struct row row = { .start = start, .end = end, .from_ns = now_ns, .id = id };

		if (is_late)
			row.from_ns = op_max_u64(now_ns - 35, horizon_ns);
		assert_int_equal(opd_spans_reserve(&spans, &row), 0);
		opd_spans_replace(&spans, &row, is_added ? &row : NULL, &spans, horizon_ns);
		for (uint64_t address = start; address < end; address++)
			put(&histories[address], &row, is_added);
		if (random() % 40 == 0)
			end_odd(&spans, histories, now_ns);
		opd_spans_forget(&spans, horizon_ns);
		compare(&spans, histories, horizon_ns, now_ns);
		assert_true(spans.past.nr <= kind->past_max);
		assert_true(account.nr_rows == spans.now.capacity + spans.past.capacity);
	}
	assert_true(kind == &whole || account.nr_dropped);
	opd_spans_free(&spans);
	assert_int_equal(account.nr_rows, 0);
	for (size_t id = 0; id <= NR_ADDED; id++)
		assert_int_equal(nr_of[id], 0);
}

static void as_in_the_model(void **state OP_UNUSED)
{
	for (unsigned int seed = 1; seed <= 10; seed++) {
		run(&whole, seed, UINT64_MAX);
		run(&whole, seed, 200);
		run(&small, seed, 1000);
	}
}

/* ---- limits and hostile rows ---- */

static void what_has_no_room_is_refused(void **state OP_UNUSED)
{
	struct opd_span_account account = { 0 };
	struct opd_spans spans = { .kind = &limited, .account = &account };
	uint64_t i;

	for (i = 0; i < 2 * LIMIT; i++) {
		struct row row = { .start = 2 * i, .end = 2 * i + 1, .from_ns = i, .id = i + 1 };

		if (opd_spans_reserve(&spans, &row))
			break;
		opd_spans_replace(&spans, &row, &row, &spans, 0);
	}
	assert_in_range(i, LIMIT / 2, LIMIT);
	assert_int_equal(opd_spans_reserve(&spans, &(struct row){ .start = 1, .end = 2 }), -ENOSPC);
	assert_true(account.nr_rows <= LIMIT);
	assert_int_equal(id_at(&spans, 2, 1), 2);
	opd_spans_free(&spans);
	assert_int_equal(account.nr_rows, 0);
}

/* Without room for the past, an earlier sample finds nothing rather than what came later. */
static void a_lost_past_is_unknown(void **state OP_UNUSED)
{
	struct opd_span_account account = { .arg = nr_of };
	struct opd_spans spans = { .kind = &small, .account = &account };

	for (uint64_t i = 1; i <= 40; i++)
		add(&spans, &(struct row){ .end = 8, .from_ns = 10 * i, .id = i }, 0);
	assert_int_equal(id_at(&spans, 0, UINT64_MAX), 40);
	assert_int_equal(id_at(&spans, 0, 395), 39);
	assert_int_equal(id_at(&spans, 0, 295), 29);
	assert_null(find(&spans, 0, 15));
	assert_int_equal(account.nr_dropped, spans.unknown_until_ns / 10 - 1);
	opd_spans_free(&spans);
}

static void the_ends_of_addresses_and_of_time(void **state OP_UNUSED)
{
	struct opd_span_account account = { .arg = nr_of };
	struct opd_spans spans = { .kind = &whole, .account = &account };

	assert_null(find(&spans, 0, 0));
	add(&spans, &(struct row){ .end = UINT64_MAX, .id = 1 }, 0);
	add(&spans, &(struct row){ .start = UINT64_MAX - 1, .end = UINT64_MAX, .from_ns = UINT64_MAX - 1, .id = 2 }, 0);
	add(&spans, &(struct row){ .end = 1, .from_ns = UINT64_MAX - 1, .id = 3 }, 0);
	assert_int_equal(spans.now.nr, 3);
	assert_int_equal(id_at(&spans, 0, 5), 1);
	assert_int_equal(id_at(&spans, 0, UINT64_MAX), 3);
	assert_int_equal(spans.now.nr ? opd_span_at(&spans.now, sizeof(struct row), 1)->offset : 0, 1);
	assert_int_equal(id_at(&spans, UINT64_MAX - 1, 5), 1);
	assert_int_equal(id_at(&spans, UINT64_MAX - 1, UINT64_MAX - 1), 2);
	assert_null(find(&spans, UINT64_MAX, UINT64_MAX));
	opd_spans_free(&spans);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_in_the_model),
		cmocka_unit_test(what_has_no_room_is_refused),
		cmocka_unit_test(a_lost_past_is_unknown),
		cmocka_unit_test(the_ends_of_addresses_and_of_time),
	};

	return cmocka_run_group_tests_name("spans", tests, NULL, NULL);
}
