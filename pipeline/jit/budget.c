/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/jit/budget.h"

#define SLICE_STEPS 64u                     /* between two looks at the clock */
#define FORGET_NS   ((uint64_t)OP_NS_PER_S) /* after this time a user has no share of his own */

static int64_t min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static uint64_t cpu_now_ns(void)
{
	return op_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static int64_t refill(int64_t left_ns, uint64_t more_ns, uint64_t most_ns)
{
	return min_i64(left_ns + (int64_t)more_ns, (int64_t)most_ns);
}

static void forget_users(struct opd_jit_budget *budget)
{
	size_t nr_left = 0;

	for (size_t i = 0; i < budget->nr_users; i++) {
		const struct opd_jit_user *user = &budget->users[i];

		if (user->left_ns < 0 || budget->visit_ns - user->last_ns < FORGET_NS)
			budget->users[nr_left++] = *user;
	}
	budget->nr_users = nr_left;
}

/* The share of each user who has one. */
static uint64_t share_of(const struct opd_jit_budget *budget, uint64_t ns)
{
	return (ns - ns / OPD_JIT_COMMON_PART) / budget->nr_users;
}

void opd_jit_budget_begin(struct opd_jit_budget *budget, uint64_t now_ns)
{
	uint64_t more_ns = op_min_u64((now_ns - budget->visit_ns) / OPD_JIT_TIME_PART, OPD_JIT_VISIT_NS), common_part;

	if (budget->visit_ns == now_ns)
		return;
	budget->visit_ns = now_ns;
	forget_users(budget);
	common_part = budget->nr_users ? OPD_JIT_COMMON_PART : 1;
	budget->left_ns = refill(budget->left_ns, more_ns, OPD_JIT_VISIT_NS);
	budget->common_ns = refill(budget->common_ns, more_ns / common_part, OPD_JIT_VISIT_NS / common_part);
	for (size_t i = 0; i < budget->nr_users; i++) {
		struct opd_jit_user *user = &budget->users[i];

		user->left_ns = refill(user->left_ns, share_of(budget, more_ns), share_of(budget, OPD_JIT_VISIT_NS));
		if (!user->round_goes_on)
			user->round = ++budget->last_round;
		user->round_goes_on = false;
	}
	budget->left_bytes = OPD_JIT_VISIT_BYTES;
	budget->spent_ns = 0;
	budget->nr_first = 0;
}

static struct opd_jit_user *find_user(struct opd_jit_budget *budget, uid_t uid)
{
	for (size_t i = 0; i < budget->nr_users; i++)
		if (budget->users[i].uid == uid)
			return &budget->users[i];
	return NULL;
}

/* From the next visit on the user has a share of his own. NULL: too many users have one. */
static struct opd_jit_user *note_put_off(struct opd_jit_budget *budget, uid_t uid)
{
	struct opd_jit_user *user = find_user(budget, uid);

	if (!user) {
		if (budget->nr_users == OPD_JIT_USERS_MAX)
			return NULL;
		user = &budget->users[budget->nr_users++];
		*user = (struct opd_jit_user){ .uid = uid, .round = ++budget->last_round };
	}
	user->last_ns = budget->visit_ns;
	return user;
}

struct opd_jit_allowance opd_jit_budget_allowance(const struct opd_jit_budget *budget)
{
	return (struct opd_jit_allowance){
		.bytes = budget->left_bytes,
		.granted_ns = UINT64_MAX,
		.begin_cpu_ns = cpu_now_ns(),
		.begin_ns = op_now_ns(),
	};
}

static int64_t left_for(const struct opd_jit_budget *budget, const struct opd_jit_user *user)
{
	return min_i64(budget->left_ns, user ? user->left_ns : budget->common_ns);
}

/* Waiting costs less than work. */
static uint64_t cost_ns(const struct opd_jit_allowance *allowance)
{
	uint64_t cpu_ns = cpu_now_ns() - allowance->begin_cpu_ns;

	return op_max_u64(cpu_ns, (op_now_ns() - allowance->begin_ns) / OPD_JIT_WAIT_PART);
}

bool opd_jit_budget_has_time(struct opd_jit_budget *budget, uid_t uid)
{
	if (left_for(budget, find_user(budget, uid)) > 0 || budget->nr_first++ < OPD_JIT_FIRST_MAX)
		return true;
	note_put_off(budget, uid);
	return false;
}

bool opd_jit_budget_grant(struct opd_jit_budget *budget, uid_t uid, uint32_t *round, struct opd_jit_allowance *ret_allowance)
{
	struct opd_jit_user *user = find_user(budget, uid);
	int64_t left_ns = left_for(budget, user);

	if (user && user->round == *round)
		return false;
	if (left_ns <= 0 || !budget->left_bytes) {
		user = note_put_off(budget, uid);
		if (user)
			user->round_goes_on = true;
		return false;
	}
	if (user)
		*round = user->round;
	*ret_allowance = opd_jit_budget_allowance(budget);
	ret_allowance->granted_ns = ret_allowance->limit_ns = (uint64_t)left_ns;
	return true;
}

bool opd_jit_allowance_ends(struct opd_jit_allowance *allowance, uint64_t nr_steps)
{
	bool is_first = !allowance->next_step;

	if (allowance->bytes && nr_steps < allowance->next_step)
		return false;
	allowance->next_step = nr_steps + SLICE_STEPS;
	/*
	 * Opening the file may have taken all the time. The reading has as much again, or none
	 * would ever come further.
	 */
	if (is_first) {
		uint64_t opening_ns = cost_ns(allowance);

		allowance->limit_ns = op_max_u64(allowance->limit_ns, opening_ns + op_min_u64(opening_ns, OPD_JIT_VISIT_NS));
	}
	if (!allowance->bytes || (!is_first && cpu_now_ns() - allowance->begin_cpu_ns >= allowance->limit_ns))
		allowance->is_spent = true;
	return allowance->is_spent;
}

void opd_jit_allowance_check_wait(struct opd_jit_allowance *allowance)
{
	allowance->is_spent |= (op_now_ns() - allowance->begin_ns) / OPD_JIT_WAIT_PART >= allowance->limit_ns;
}

/* Takes the time from the share of the user, or from the common one. */
static void take_time(struct opd_jit_budget *budget, struct opd_jit_user *user, uint64_t ns)
{
	*(user ? &user->left_ns : &budget->common_ns) -= (int64_t)ns;
	budget->left_ns -= (int64_t)ns;
}

uint64_t opd_jit_budget_charge(struct opd_jit_budget *budget, uid_t uid, const struct opd_jit_allowance *allowance)
{
	uint64_t cpu_ns = cpu_now_ns() - allowance->begin_cpu_ns, cost = cost_ns(allowance);
	uint64_t within_ns = op_min_u64(cost, allowance->granted_ns);

	take_time(budget, find_user(budget, uid), within_ns);
	if (allowance->is_spent || cost > within_ns)
		take_time(budget, note_put_off(budget, uid), cost - within_ns);
	budget->spent_ns += cpu_ns;
	budget->left_bytes = allowance->bytes;
	return cpu_ns;
}

/* ---- memory ---- */

struct opd_jit_use *opd_jit_use_get(struct opd_jit_uses *uses, uid_t uid)
{
	struct opd_jit_use *free_row = NULL, *use = NULL;

	for (size_t i = OPD_JIT_MEMORY_USERS_MAX; i-- && !use;) {
		if (!uses->rows[i].nr_refs)
			free_row = &uses->rows[i];
		else if (uses->rows[i].uid == uid)
			use = &uses->rows[i];
	}
	if (!use && free_row) {
		*free_row = (struct opd_jit_use){ .uid = uid };
		use = free_row;
	}
	if (!use)
		use = &uses->rows[OPD_JIT_MEMORY_USERS_MAX - 1];
	use->nr_refs++;
	return use;
}

void opd_jit_use_put(struct opd_jit_use *use)
{
	use->nr_refs--;
}
