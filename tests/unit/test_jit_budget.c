/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The CPU time for files of JIT code: of a visit, of users, and of processes that come and go. */
#include "tests/unit/cmocka_all.h"

#include <time.h>

#include "pipeline/jit/budget.h"

static uint64_t passed_ns, waited_ns; /* the time that the test lets pass, with and without work */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	uint64_t now_ns = OP_NS_PER_S + passed_ns + (clock == CLOCK_THREAD_CPUTIME_ID ? 0 : waited_ns);

	*time = (struct timespec){ .tv_sec = (time_t)(now_ns / OP_NS_PER_S), .tv_nsec = (long)(now_ns % OP_NS_PER_S) };
	return 0;
}

#define VISIT_NS (250 * (uint64_t)OP_NS_PER_MS)
#define SLICE_NS (OPD_JIT_VISIT_NS / 50)
#define SLICE    1000u /* steps, after which the clock is looked at */
#define STEP_NS  1000u /* as budget.h says */

/* A process that wants so much time. */
struct reader {
	uid_t uid;
	uint64_t wanted_ns, got_ns;
	uint32_t round;
};

static void begin_visit(struct opd_jit_budget *budget)
{
	static uint64_t now_ns = OP_NS_PER_S;

	now_ns += VISIT_NS;
	opd_jit_budget_begin(budget, now_ns);
}

/* Reads in slices, as far as the allowance goes. False: it was put off, or not finished. */
static bool read_some(struct opd_jit_budget *budget, struct reader *reader)
{
	struct opd_jit_allowance allowance;
	uint64_t nr_steps = 0, spent_ns;

	if (!opd_jit_budget_grant(budget, reader->uid, &reader->round, &allowance))
		return false;
	while (reader->wanted_ns && !opd_jit_allowance_ends(&allowance, nr_steps)) {
		passed_ns += SLICE_NS;
		reader->wanted_ns -= op_min_u64(reader->wanted_ns, SLICE_NS);
		nr_steps += SLICE;
	}
	spent_ns = opd_jit_budget_charge(budget, reader->uid, &allowance);
	reader->got_ns += spent_ns;
	return !allowance.is_spent;
}

static uint64_t visit(struct opd_jit_budget *budget, struct reader *readers, size_t nr)
{
	uint64_t before_ns = passed_ns;

	begin_visit(budget);
	for (size_t i = 0; i < nr; i++)
		read_some(budget, &readers[i]);
	return passed_ns - before_ns;
}

static void a_visit_is_bounded(void **state OP_UNUSED)
{
	struct opd_jit_budget budget = { 0 };
	struct reader readers[100];

	for (size_t i = 0; i < op_array_size(readers); i++)
		readers[i] = (struct reader){ .uid = (uid_t)i % 10, .wanted_ns = OP_NS_PER_S };
	for (int i = 0; i < 50; i++)
		assert_in_range(visit(&budget, readers, op_array_size(readers)), OPD_JIT_VISIT_NS / 2,
				OPD_JIT_VISIT_NS + SLICE_NS);
}

static void what_is_asked_for_too_often_is_little(void **state OP_UNUSED)
{
	struct opd_jit_budget budget = { 0 };
	struct reader reader = { .uid = 1, .wanted_ns = OP_NS_PER_S };
	uint64_t now_ns = OP_NS_PER_S, before_ns = passed_ns;

	/* a visit in every millisecond, for a second */
	for (int i = 0; i < 1000; i++) {
		now_ns += OP_NS_PER_MS;
		opd_jit_budget_begin(&budget, now_ns);
		read_some(&budget, &reader);
	}
	assert_in_range(passed_ns - before_ns, OP_NS_PER_S / OPD_JIT_TIME_PART / 4,
			OP_NS_PER_S / OPD_JIT_TIME_PART + OPD_JIT_VISIT_NS + SLICE_NS);
}

/* New processes of a user come first in each visit. The process of another user gets its share. */
static void new_processes_gain_nothing(void **state OP_UNUSED)
{
	struct opd_jit_budget budget = { 0 };
	struct reader other = { .uid = 2, .wanted_ns = OP_NS_PER_S };
	uint64_t got_ns = 0;

	for (int i = 0; i < 40; i++) {
		begin_visit(&budget);
		for (int k = 0; k < 100; k++) {
			struct reader reader = { .uid = 1, .wanted_ns = OP_NS_PER_S };

			read_some(&budget, &reader);
			got_ns += reader.got_ns;
		}
		read_some(&budget, &other);
	}
	assert_in_range(other.got_ns, 35 * OPD_JIT_VISIT_NS * 3 / 8, 40 * OPD_JIT_VISIT_NS / 2);
	assert_true(got_ns <= other.got_ns + 3 * OPD_JIT_VISIT_NS);
}

/* A user who was never put off finds a share, even behind ten who want everything. */
static void a_newcomer_finds_a_share(void **state OP_UNUSED)
{
	struct opd_jit_budget budget = { 0 };
	struct reader readers[10], late = { .uid = 100, .wanted_ns = OPD_JIT_VISIT_NS / 20 };

	for (size_t i = 0; i < op_array_size(readers); i++)
		readers[i] = (struct reader){ .uid = (uid_t)i, .wanted_ns = 10 * (uint64_t)OP_NS_PER_S };
	for (int i = 0; i < 10; i++)
		visit(&budget, readers, op_array_size(readers));
	visit(&budget, readers, op_array_size(readers));
	assert_true(read_some(&budget, &late));
	assert_int_equal(late.wanted_ns, 0);
}

/* Each process of a user has its turn, whichever comes first in a visit. */
static void processes_take_turns(void **state OP_UNUSED)
{
	struct opd_jit_budget budget = { 0 };
	struct reader readers[5];

	for (size_t i = 0; i < op_array_size(readers); i++)
		readers[i] = (struct reader){ .uid = 1, .wanted_ns = 10 * (uint64_t)OP_NS_PER_S };
	for (int i = 0; i < 50; i++)
		visit(&budget, readers, op_array_size(readers));
	for (size_t i = 1; i < op_array_size(readers); i++)
		assert_in_range(readers[i].got_ns, readers[0].got_ns / 2, readers[0].got_ns * 2);
}

/* Time beyond the budget is paid back, whichever process of the user comes next. */
static void debts_stay(void **state OP_UNUSED)
{
	struct opd_jit_budget budget = { 0 };
	struct opd_jit_allowance allowance;
	struct reader late = { .uid = 1, .wanted_ns = OP_NS_PER_S };
	uint32_t round = 0;
	int nr_waited = 0;

	begin_visit(&budget);
	assert_true(opd_jit_budget_grant(&budget, 1, &round, &allowance));
	assert_false(opd_jit_allowance_ends(&allowance, 0));
	passed_ns += 10 * VISIT_NS / OPD_JIT_TIME_PART; /* in one long step */
	assert_true(opd_jit_allowance_ends(&allowance, SLICE));
	opd_jit_budget_charge(&budget, 1, &allowance);
	for (begin_visit(&budget); !read_some(&budget, &late) && !late.got_ns; begin_visit(&budget))
		nr_waited++;
	assert_in_range(nr_waited, 8, 22);
}

/* Opens a file that is dear in CPU time or in waiting, and reads some of it. Returns the steps. */
static uint64_t read_dear_file(struct opd_jit_budget *budget, uid_t uid, uint32_t *round, uint64_t *opening_ns, uint64_t cost_ns)
{
	struct opd_jit_allowance allowance;
	uint64_t nr_steps = 0;

	if (!opd_jit_budget_grant(budget, uid, round, &allowance))
		return 0;
	*opening_ns += cost_ns;
	for (; !opd_jit_allowance_ends(&allowance, nr_steps); nr_steps++) {
		opd_jit_allowance_check_wait(&allowance);
		passed_ns += STEP_NS;
	}
	opd_jit_budget_charge(budget, uid, &allowance);
	return nr_steps;
}

/*
 * On a slow machine a user's share does not suffice for opening the file. The reading comes further
 * all the same, and at least half of what is spent goes into it. Three quarters of all are for
 * users with a share of their own.
 */
static void check_dear_files(uint64_t *opening_ns, uint64_t cost_ns)
{
	struct opd_jit_budget budget = { 0 };
	uint64_t nr_steps[2] = { 0 }, before_ns = passed_ns, most_ns = 104 * OPD_JIT_VISIT_NS;
	uint32_t rounds[2] = { 0 };

	for (int i = 0; i < 100; i++) {
		begin_visit(&budget);
		for (uid_t uid = 0; uid < 2; uid++)
			nr_steps[uid] += read_dear_file(&budget, uid, &rounds[uid], opening_ns, cost_ns);
	}
	for (uid_t uid = 0; uid < 2; uid++)
		assert_in_range(nr_steps[uid], most_ns / STEP_NS / 6, most_ns / STEP_NS / 2);
	assert_true(passed_ns - before_ns <= most_ns);
}

static void dear_files_are_read_in_the_end(void **state OP_UNUSED)
{
	check_dear_files(&passed_ns, 2 * OPD_JIT_VISIT_NS / 3);
	check_dear_files(&waited_ns, OPD_JIT_WAIT_PART * (uint64_t)OPD_JIT_VISIT_NS * 2 / 3);
}

/* However dear opening is: the time beyond it is limited. */
static void opening_buys_no_more_than_a_visit(void **state OP_UNUSED)
{
	struct opd_jit_budget budget = { 0 };
	uint32_t round = 0;

	begin_visit(&budget);
	assert_in_range(read_dear_file(&budget, 1, &round, &passed_ns, 10 * OPD_JIT_VISIT_NS), OPD_JIT_VISIT_NS / STEP_NS,
			OPD_JIT_VISIT_NS / STEP_NS + SLICE);
}

/*
 * A user whose file was read to its end, beyond what was granted, pays for it. A newcomer does not.
 */
static void the_user_pays(void **state OP_UNUSED)
{
	struct opd_jit_budget budget = { 0 };
	struct reader late = { .uid = 2, .wanted_ns = OPD_JIT_VISIT_NS / 20 };
	struct opd_jit_allowance allowance;
	uint32_t round = 0;

	begin_visit(&budget);
	assert_true(opd_jit_budget_grant(&budget, 1, &round, &allowance));
	passed_ns += OPD_JIT_VISIT_NS * 3 / 2;
	assert_false(opd_jit_allowance_ends(&allowance, 0));
	opd_jit_budget_charge(&budget, 1, &allowance);
	assert_int_equal(budget.nr_users, 1);
	assert_int_equal(budget.users[0].left_ns, -(int64_t)OPD_JIT_VISIT_NS / 2);
	begin_visit(&budget);
	assert_true(read_some(&budget, &late));
	assert_int_equal(late.wanted_ns, 0);
}

/* A file that lies far away: waiting costs less than work, and ends the reading. */
static void waiting_costs_less(void **state OP_UNUSED)
{
	struct opd_jit_budget budget = { 0 };
	struct opd_jit_allowance allowance;
	uint32_t round = 0;

	begin_visit(&budget);
	assert_true(opd_jit_budget_grant(&budget, 1, &round, &allowance));
	opd_jit_allowance_check_wait(&allowance);
	assert_false(allowance.is_spent);
	assert_false(opd_jit_allowance_ends(&allowance, 0));
	waited_ns += OPD_JIT_WAIT_PART * OPD_JIT_VISIT_NS;
	assert_false(opd_jit_allowance_ends(&allowance, SLICE));
	opd_jit_allowance_check_wait(&allowance);
	assert_true(allowance.is_spent);
	assert_int_equal(opd_jit_budget_charge(&budget, 1, &allowance), 0);
	assert_false(opd_jit_budget_grant(&budget, 2, &round, &allowance));
}

static void a_user_is_forgotten(void **state OP_UNUSED)
{
	struct opd_jit_budget budget = { 0 };
	struct reader reader = { .uid = 1, .wanted_ns = 2 * OPD_JIT_VISIT_NS }, other = { .uid = 2 };

	visit(&budget, &reader, 1);
	assert_int_equal(budget.nr_users, 1);
	for (int i = 0; i < 20; i++)
		visit(&budget, &other, 1);
	assert_int_equal(budget.nr_users, 0);
	other.wanted_ns = OP_NS_PER_S;
	assert_true(visit(&budget, &other, 1) >= OPD_JIT_VISIT_NS);
}

/* More users than the table holds: those beyond share one share. */
static void very_many_users(void **state OP_UNUSED)
{
	struct opd_jit_budget budget = { 0 };
	struct reader readers[3 * OPD_JIT_USERS_MAX];

	for (size_t i = 0; i < op_array_size(readers); i++)
		readers[i] = (struct reader){ .uid = (uid_t)i, .wanted_ns = OP_NS_PER_S };
	for (int i = 0; i < 20; i++)
		assert_true(visit(&budget, readers, op_array_size(readers)) <= OPD_JIT_VISIT_NS + SLICE_NS);
	assert_int_equal(budget.nr_users, OPD_JIT_USERS_MAX);
}

static void bytes_are_bounded_too(void **state OP_UNUSED)
{
	struct opd_jit_budget budget = { 0 };
	struct opd_jit_allowance allowance;
	uint32_t round = 0;

	begin_visit(&budget);
	assert_true(opd_jit_budget_grant(&budget, 1, &round, &allowance));
	assert_int_equal(allowance.bytes, OPD_JIT_VISIT_BYTES);
	allowance.bytes = 0;
	assert_true(opd_jit_allowance_ends(&allowance, 0));
	opd_jit_budget_charge(&budget, 1, &allowance);
	assert_false(opd_jit_budget_grant(&budget, 2, &round, &allowance));
	begin_visit(&budget);
	assert_true(opd_jit_budget_grant(&budget, 2, &round, &allowance));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_visit_is_bounded),
		cmocka_unit_test(what_is_asked_for_too_often_is_little),
		cmocka_unit_test(new_processes_gain_nothing),
		cmocka_unit_test(a_newcomer_finds_a_share),
		cmocka_unit_test(processes_take_turns),
		cmocka_unit_test(debts_stay),
		cmocka_unit_test(dear_files_are_read_in_the_end),
		cmocka_unit_test(opening_buys_no_more_than_a_visit),
		cmocka_unit_test(the_user_pays),
		cmocka_unit_test(waiting_costs_less),
		cmocka_unit_test(a_user_is_forgotten),
		cmocka_unit_test(very_many_users),
		cmocka_unit_test(bytes_are_bounded_too),
	};

	return cmocka_run_group_tests_name("jit_budget", tests, NULL, NULL);
}
