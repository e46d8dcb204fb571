/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Lookers: who lets one hang is not asked again, cannot hang them all, and keeps nobody else from
 * answers.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <linux/sockios.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "pipeline/files/lookers.h"

#define GUEST_NS 4026532001u

static struct op_nursery *nursery;
static struct opd_lookers *lookers;
static int ends[2]; /* the test, and the lookers */

/*
 * 'q': answers. 'p' and 'n': its pid, and that of the nursery. 'h': says so on the descriptor, and
 * waits there for a byte. 'e': ends.
 */
static int answer(const char *question, size_t nr_bytes, int fd, struct op_text *text)
{
	char c = question[sizeof(uint32_t)];

	if (c == 'e')
		_exit(0);
	if (c == 'p' || c == 'n')
		return c == 'p' ? getpid() : getppid();
	if (c == 'h' && (write(fd, &c, 1) != 1 || read(fd, &c, 1) != 1))
		return -EIO;
	op_text_add_bytes(text, question, nr_bytes);
	return 0;
}

static const struct op_helper_kind kind = { "opd-test", NULL, answer };

static int set_up(void **state OP_UNUSED)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0 || op_nursery_start(&kind, 1, &nursery) < 0)
		return -1;
	return opd_lookers_new(nursery, 0, &lookers);
}

static int tear_down(void **state OP_UNUSED)
{
	opd_lookers_free(lookers);
	op_nursery_stop(nursery);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static int look_about(const struct opd_look_about *about, char what)
{
	struct iovec part = { &what, 1 };
	struct op_text text = { 0 };
	uint32_t any = 0;
	int result = opd_look(lookers, about, OPD_LOOK_VIEW, &part, 1, ends[1], &any, &text);

	op_text_free(&text);
	return result;
}

static int look(uint32_t pid, uint64_t user_ns, char what)
{
	return look_about(&(const struct opd_look_about){ .pid = pid, .user_ns = user_ns }, what);
}

/* The caller has something better to do than to wait. */
static void nothing_is_asked_too_late(void **state OP_UNUSED)
{
	uint64_t nr_unanswered = opd_lookers_nr_unanswered(lookers);

	opd_lookers_wait_until(lookers, op_now_ns() - 1);
	assert_int_equal(look(1, 0, 'q'), -EBUSY);
	assert_int_equal(opd_lookers_nr_unanswered(lookers), nr_unanswered + 1);
	opd_lookers_wait_until(lookers, op_now_ns() + 1000 * (uint64_t)OP_NS_PER_S);
	assert_int_equal(look(1, 0, 'q'), 0);
	opd_lookers_wait_until(lookers, 0);
	assert_int_equal(look(1, 0, 'q'), 0);
}

/* How many lookers have begun to wait since the last call. */
static size_t nr_begun(void)
{
	char bytes[64];
	ssize_t nr = recv(ends[0], bytes, sizeof(bytes), MSG_DONTWAIT);

	return nr < 0 ? 0 : (size_t)nr;
}

/*
 * Asks until one more looker waits; the time for waiting may be used up for the moment. Returns how
 * many questions were not asked.
 */
static size_t let_hang(uint32_t pid, uint64_t user_ns)
{
	size_t nr_refused = 0;

	for (;; nr_refused++) {
		assert_int_equal(look(pid, user_ns, 'h'), -EBUSY);
		usleep(1000);
		if (nr_begun())
			return nr_refused;
	}
}

/* Ends the wait of one looker. The byte is gone before another looker could take it. */
static void free_one(void)
{
	int nr_unread;

	assert_int_equal(write(ends[0], "x", 1), 1);
	do {
		usleep(1000);
		assert_int_equal(ioctl(ends[0], SIOCOUTQ, &nr_unread), 0);
	} while (nr_unread);
}

/* An answer, although time is needed before questions are allowed again. */
static void await_answer(uint32_t pid, uint64_t user_ns)
{
	while (look(pid, user_ns, 'q'))
		usleep(1000);
}

static void who_hangs_is_not_asked_again(void **state OP_UNUSED)
{
	uint64_t nr;

	await_answer(1001, GUEST_NS);
	let_hang(1001, GUEST_NS);
	nr = opd_lookers_nr_unanswered(lookers);
	assert_true(nr > 0);
	assert_int_equal(look(1001, GUEST_NS, 'h'), -EBUSY);
	assert_int_equal(look(1002, GUEST_NS, 'h'), -EBUSY); /* nor another of its namespace */
	assert_int_equal(nr_begun(), 0);
	assert_int_equal(opd_lookers_nr_unanswered(lookers), nr + 2);
	await_answer(1003, GUEST_NS + 1);
	await_answer(1001, GUEST_NS); /* not for ever */
}

/* A looker whose call returned is used again, and its late answer is dropped. */
static void a_late_answer_frees_the_looker(void **state OP_UNUSED)
{
	for (uint64_t i = 0; i < 2 * OPD_LOOKERS_MAX; i++) {
		let_hang(1, GUEST_NS + i);
		free_one();
	}
	await_answer(1, GUEST_NS + 1000);
}

/* The time for waiting is limited, however many there are to be waited for. */
static void waiting_has_a_limit(void **state OP_UNUSED)
{
	size_t nr_refused = 0;

	for (uint64_t i = 0; i < 4 * OPD_LOOKERS_MAX; i++) {
		nr_refused += let_hang(1, GUEST_NS + i);
		free_one();
	}
	assert_true(nr_refused > 0);
}

static void each_pause_is_longer(void **state OP_UNUSED)
{
	uint64_t begin_ns;

	let_hang(1, GUEST_NS);
	await_answer(1, GUEST_NS);
	let_hang(1, GUEST_NS);
	begin_ns = op_now_ns();
	await_answer(1, GUEST_NS);
	assert_true(op_now_ns() - begin_ns >= 3u * (uint64_t)OP_NS_PER_S / 2);
}

/* Namespaces are cheap, so there is a limit for all of them, which is not that of the others. */
static void strangers_cannot_use_up_all_lookers(void **state OP_UNUSED)
{
	for (uint64_t i = 0; i < OPD_LOOKERS_MAX; i++)
		let_hang(1, GUEST_NS + i);
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(look(1, GUEST_NS + 1000 + i, 'q'), -EBUSY);
	await_answer((uint32_t)getpid(), 0);
	free_one();
	await_answer(1, GUEST_NS + 2000);
}

/* All processes that are gone count as one owner. Those of this user are another. */
static void one_owner_cannot_use_up_all_lookers(void **state OP_UNUSED)
{
	const uint32_t gone = 4000000000u;
	size_t nr = 0;

	for (uint32_t i = 0; nr < 3; i++) {
		assert_int_equal(look(gone + i, 0, 'h'), -EBUSY);
		nr += nr_begun();
	}
	await_answer((uint32_t)getpid(), 0);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(look(gone + 100000 + i, 0, 'q'), -EBUSY);
	await_answer((uint32_t)getpid(), 0);
}

/* The files of a user are not asked about any more; those of another user and processes are. */
static void who_owns_files_that_hang(void **state OP_UNUSED)
{
	const struct opd_look_about files = { .is_files = true, .uid = 1001 };
	const struct opd_look_about others = { .is_files = true, .uid = 1002 };

	do {
		assert_int_equal(look_about(&files, 'h'), -EBUSY);
		usleep(1000);
	} while (!nr_begun());
	assert_int_equal(look_about(&files, 'h'), -EBUSY);
	assert_int_equal(nr_begun(), 0);
	while (look_about(&others, 'q'))
		usleep(1000);
	await_answer(1001, 0);
	while (look_about(&files, 'q')) /* not for ever */
		usleep(1000);
}

static void a_looker_that_ended_is_replaced(void **state OP_UNUSED)
{
	for (int i = 0; i < 20; i++) {
		assert_int_equal(look((uint32_t)getpid(), 0, 'e'), -EBUSY);
		await_answer((uint32_t)getpid(), 0);
	}
}

/* The process that it looked at is not to blame, nor is its user. */
static void a_looker_that_is_stopped_is_replaced(void **state OP_UNUSED)
{
	for (uint64_t i = 0; i < 5; i++) {
		int pid;

		while ((pid = look((uint32_t)getpid(), 0, 'p')) < 0)
			usleep(1000);
		assert_int_equal(kill(pid, SIGSTOP), 0);
		while (op_process_state(pid) != 'T')
			usleep(1000);
		while (opd_lookers_nr_ended(lookers) == i)
			assert_int_equal(look((uint32_t)getpid(), 0, 'q'), -EBUSY);
	}
	await_answer((uint32_t)getpid(), 0);
}

/* One that was killed while it had no work costs no answer. */
static void a_looker_that_was_killed_is_missed(void **state OP_UNUSED)
{
	for (uint64_t i = 0; i < 5; i++) {
		int pid;

		while ((pid = look((uint32_t)getpid(), 0, 'p')) < 0)
			usleep(1000);
		assert_int_equal(kill(pid, SIGKILL), 0);
		while (opd_lookers_nr_ended(lookers) == i)
			opd_lookers_watch(lookers);
		await_answer((uint32_t)getpid(), 0);
	}
	assert_int_equal(opd_lookers_nr_ended(lookers), 5);
}

/* Starting a looker has the same limit of waiting as an answer. */
static void a_nursery_that_is_stopped_is_not_awaited(void **state OP_UNUSED)
{
	int pid;

	while ((pid = look((uint32_t)getpid(), 0, 'n')) < 0)
		usleep(1000);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(look((uint32_t)getpid(), 0, 'e'), -EBUSY);
	for (size_t i = 0; i < 10000; i++) /* each would be a second */
		assert_int_equal(look((uint32_t)getpid(), 0, 'q'), -EBUSY);
	await_answer((uint32_t)getpid(), 0); /* of the spare's looker */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_hangs_is_not_asked_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_late_answer_frees_the_looker, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_is_asked_too_late, set_up, tear_down),
		cmocka_unit_test_setup_teardown(waiting_has_a_limit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_pause_is_longer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(strangers_cannot_use_up_all_lookers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_owner_cannot_use_up_all_lookers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_owns_files_that_hang, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_looker_that_ended_is_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_looker_that_is_stopped_is_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_looker_that_was_killed_is_missed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_nursery_that_is_stopped_is_not_awaited, set_up, tear_down),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
