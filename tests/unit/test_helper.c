/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Helper processes: questions, descriptors, deadlines, late answers, and what a helper inherits. */
#include "tests/unit/cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/process/nursery.h"

#define LONG_NS  (600 * (uint64_t)OP_NS_PER_S) /* ends a test that would hang */
#define SHORT_NS (20 * (uint64_t)OP_NS_PER_MS)
#define LARGE    (3u << 20)
#define SPIN_NS  (700 * (uint64_t)OP_NS_PER_MS) /* longer than the time that the question gets */
#define LESS_NS  (500 * (uint64_t)OP_NS_PER_MS)

enum kind { ANSWERS, REFUSES };

static struct op_nursery *nursery;

static size_t count_fds(void)
{
	DIR *directory = opendir("/proc/self/fd");
	size_t nr = 0;

	while (directory && readdir(directory))
		nr++;
	if (directory)
		closedir(directory);
	return nr - 3; /* ".", ".." and the directory itself */
}

static int number_in(const char *path)
{
	FILE *file = fopen(path, "re");
	int number = 0;

	if (file && fscanf(file, "%d", &number) != 1)
		number = 0;
	if (file)
		fclose(file);
	return number;
}

/* A question is a word. */
static int answer(const char *question, size_t nr_bytes, int fd, struct op_text *text)
{
	char c = '!';

	if (!strcmp(question, "echo")) {
		op_text_add_bytes(text, question, nr_bytes);
		return 7;
	}
	if (!strcmp(question, "large"))
		for (size_t i = 0; i < LARGE; i++)
			op_text_add_char(text, (char)('a' + i % 26));
	if (!strcmp(question, "descriptors"))
		return (int)count_fds();
	if (!strcmp(question, "end"))
		_exit(0);
	if (!strcmp(question, "spin"))
		for (uint64_t until_ns = op_now_ns() + SPIN_NS; op_now_ns() < until_ns;)
			continue;
	if (!strcmp(question, "signals"))
		return raise(SIGTERM) || raise(SIGHUP) || raise(SIGINT);
	if (!strcmp(question, "parent"))
		return getppid();
	if (!strcmp(question, "oom"))
		return number_in("/proc/self/oom_score_adj");
	/* Says that it has begun, and waits for a byte. */
	if (!strcmp(question, "wait"))
		return write(fd, &c, 1) == 1 && read(fd, &c, 1) == 1 ? c : -EIO;
	return 0;
}

static int refuse(void)
{
	return -EPERM;
}

static const struct op_helper_kind kinds[] = {
	[ANSWERS] = { "opd-answers", NULL, answer },
	[REFUSES] = { "opd-refuses", refuse, answer },
};

static int set_up(void **state OP_UNUSED)
{
	return op_nursery_start(kinds, op_array_size(kinds), &nursery);
}

static int tear_down(void **state OP_UNUSED)
{
	op_nursery_stop(nursery);
	return 0;
}

static struct op_helper *new_helper(enum kind kind)
{
	struct op_helper *helper = NULL;

	assert_int_equal(op_helper_start(nursery, kind, LONG_NS, &helper), 0);
	assert_non_null(helper);
	return helper;
}

static int ask(struct op_helper *helper, const char *word, int fd, uint64_t wait_ns, int *ret_result, struct op_text *ret_answer)
{
	struct iovec parts[] = {
		{ (void *)(uintptr_t)word, 1 }, // NOLINT(performance-no-int-to-ptr)
		{ (void *)(uintptr_t)(word + 1), strlen(word + 1) + 1 }, // NOLINT(performance-no-int-to-ptr)
	};

	return op_helper_ask(helper, parts, op_array_size(parts), fd, wait_ns, ret_result, ret_answer);
}

static int result_of(struct op_helper *helper, const char *word)
{
	struct op_text text = { 0 };
	int result = -1;

	assert_int_equal(ask(helper, word, -1, LONG_NS, &result, &text), 0);
	op_text_free(&text);
	return result;
}

static void answers_are_those_of_the_helper(void **state OP_UNUSED)
{
	struct op_helper *helper = new_helper(ANSWERS);
	struct op_text text = { 0 };
	int result;

	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(ask(helper, "echo", -1, LONG_NS, &result, &text), 0);
		assert_int_equal(result, 7);
		assert_int_equal(text.length, 5);
		assert_string_equal(text.data, "echo");
	}
	assert_int_equal(ask(helper, "large", -1, LONG_NS, &result, &text), 0);
	assert_int_equal(text.length, LARGE);
	for (size_t i = 0; i < LARGE; i++)
		assert_int_equal(text.data[i], 'a' + i % 26);
	op_text_free(&text);
	op_helper_stop(helper, op_now_ns() + OP_NS_PER_S);
}

/* It has its socket, and /dev/null three times. Signals that end the program are not for it. */
static void a_helper_inherits_nothing(void **state OP_UNUSED)
{
	int mine = open("/dev/null", O_RDONLY);
	struct op_helper *first = new_helper(ANSWERS), *second = new_helper(ANSWERS);

	assert_true(mine >= 0);
	assert_int_equal(result_of(first, "descriptors"), 4);
	assert_int_equal(result_of(second, "descriptors"), 4);
	assert_int_equal(result_of(second, "signals"), 0);
	assert_int_equal(result_of(second, "echo"), 7);
	close(mine);
	op_helper_stop(first, op_now_ns() + OP_NS_PER_S);
	op_helper_stop(second, op_now_ns() + OP_NS_PER_S);
}

/* Of any length, and with descriptors: these are closed after the answer. */
static void questions_leave_nothing(void **state OP_UNUSED)
{
	struct op_helper *helper = new_helper(ANSWERS);
	struct op_text text = { 0 };
	char *bytes = calloc(1, 100000);
	struct iovec part = { bytes, 100000 };
	int mine = open("/dev/null", O_RDONLY | O_CLOEXEC), result;

	assert_true(bytes && mine >= 0);
	for (size_t i = 0; i < 10; i++) {
		memcpy(bytes, "echo", 5);
		assert_int_equal(op_helper_ask(helper, &part, 1, mine, LONG_NS, &result, &text), 0);
		assert_int_equal(result, 7);
		assert_int_equal(text.length, part.iov_len);
		assert_memory_equal(text.data, bytes, part.iov_len);
		memset(bytes + 5, 'a' + (int)i, 99995);
	}
	assert_int_equal(result_of(helper, "descriptors"), 4);
	op_text_free(&text);
	free(bytes);
	close(mine);
	op_helper_stop(helper, op_now_ns() + OP_NS_PER_S);
}

/* A helper that computes, or waits for a CPU, does not hang, and that is no sleep. */
static void a_helper_that_runs_has_time(void **state OP_UNUSED)
{
	struct op_helper *helper = new_helper(ANSWERS);
	struct op_text text = { 0 };
	int result = 99, err = ask(helper, "spin", -1, LESS_NS, &result, &text);

	/* Ten times that time may pass before it has had a CPU for so long. */
	if (!err) {
		assert_int_equal(result, 0);
		assert_int_equal(op_helper_slept_ns(helper), 0);
	} else {
		assert_int_equal(err, -ETIMEDOUT);
		assert_false(op_helper_is_blocked(helper));
	}
	op_text_free(&text);
	op_helper_stop(helper, op_now_ns() + OP_NS_PER_S);
}

/* Who stops a helper has waited for its end, as far as it ends. */
static void the_end_is_awaited(void **state OP_UNUSED)
{
	struct op_helper *helper = new_helper(ANSWERS);
	pid_t pid = op_helper_pid(helper);
	uint64_t begin_ns;

	assert_int_equal(result_of(helper, "echo"), 7);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	begin_ns = op_now_ns();
	op_helper_stop(helper, op_now_ns() + OP_NS_PER_S);
	assert_true(op_now_ns() - begin_ns >= LESS_NS);
	assert_int_equal(kill(pid, SIGCONT), 0);
}

/* A late answer is not taken for the answer to the next question. */
static void a_helper_that_hangs_is_left_alone(void **state OP_UNUSED)
{
	struct op_helper *helper = new_helper(ANSWERS), *other = new_helper(ANSWERS);
	struct op_text text = { 0 };
	int ends[2], result = 99;
	char c = 'x';

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(ask(helper, "wait", ends[1], SHORT_NS, &result, &text), -ETIMEDOUT);
	assert_int_equal(result, 99);
	assert_int_equal(read(ends[0], &c, 1), 1); /* now it waits */
	while (!op_helper_is_blocked(helper))
		usleep(1000);
	assert_false(op_helper_is_idle(helper));
	assert_int_equal(ask(helper, "echo", -1, SHORT_NS, &result, &text), -EBUSY);
	assert_int_equal(result_of(other, "echo"), 7);
	assert_int_equal(write(ends[0], "y", 1), 1);
	while (!op_helper_is_idle(helper))
		usleep(1000);
	assert_true(op_helper_slept_ns(helper) > 0);
	assert_int_equal(result_of(helper, "echo"), 7);
	close(ends[0]);
	close(ends[1]);
	op_helper_stop(helper, op_now_ns() + OP_NS_PER_S);
	op_helper_stop(other, op_now_ns() + OP_NS_PER_S);
}

static void a_helper_that_ended_tells_so(void **state OP_UNUSED)
{
	struct op_helper *helper = new_helper(ANSWERS);
	struct op_text text = { 0 };
	int result;

	assert_int_equal(ask(helper, "end", -1, LONG_NS, &result, &text), -EPIPE);
	assert_int_equal(ask(helper, "echo", -1, LONG_NS, &result, &text), -EPIPE);
	op_helper_stop(helper, op_now_ns() + OP_NS_PER_S);
	helper = new_helper(REFUSES);
	assert_int_equal(ask(helper, "echo", -1, LONG_NS, &result, &text), -EPIPE);
	op_helper_stop(helper, op_now_ns() + OP_NS_PER_S);
	helper = new_helper(ANSWERS);
	kill(op_helper_pid(helper), SIGKILL);
	assert_int_equal(ask(helper, "echo", -1, LONG_NS, &result, &text), -EPIPE);
	op_helper_stop(helper, op_now_ns() + OP_NS_PER_S);
}

/* ---- nurseries that end ---- */

static int spare_of(int pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	return number_in(path); /* the first child */
}

/* A helper of the nursery that takes the place of another one. */
static struct op_helper *next_helper(void)
{
	struct op_helper *helper = NULL;

	while (op_helper_start(nursery, ANSWERS, SHORT_NS, &helper))
		usleep(1000);
	assert_int_equal(result_of(helper, "echo"), 7);
	return helper;
}

/* Helpers outlive their nursery, and another one takes its place. */
static void a_nursery_that_ended_is_replaced(void **state OP_UNUSED)
{
	struct op_helper *helper = new_helper(ANSWERS), *next;

	for (uint64_t i = 0; i < 3; i++) {
		int pid = result_of(helper, "parent");

		while (!spare_of(pid))
			usleep(1000);
		assert_int_equal(kill(pid, SIGKILL), 0);
		while (op_nursery_nr_ended(nursery) == i)
			op_nursery_watch(nursery);
		next = next_helper();
		assert_int_not_equal(result_of(next, "parent"), pid);
		assert_int_equal(result_of(next, "oom"), 1000);
		assert_int_equal(result_of(helper, "echo"), 7);
		op_helper_stop(helper, op_now_ns() + OP_NS_PER_S);
		helper = next;
	}
	assert_int_equal(op_nursery_nr_ended(nursery), 3);
	op_helper_stop(helper, op_now_ns() + OP_NS_PER_S);
}

/* An order that it does not understand ends a nursery. */
static void a_nursery_that_ends_is_missed(void **state OP_UNUSED)
{
	struct op_helper *none = NULL;

	assert_int_equal(op_helper_start(nursery, op_array_size(kinds), LONG_NS, &none), -EPIPE);
	assert_null(none);
	op_helper_stop(next_helper(), op_now_ns() + OP_NS_PER_S);
	assert_int_equal(op_nursery_nr_ended(nursery), 1);
}

/* Nobody waits for it a second time, and after a while the spare takes its place. */
static void a_nursery_that_is_stopped_is_not_awaited(void **state OP_UNUSED)
{
	struct op_helper *helper = new_helper(ANSWERS), *none = NULL;
	int pid = result_of(helper, "parent");

	op_nursery_watch(nursery);
	while (!spare_of(pid))
		usleep(1000);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	while (op_process_state(pid) != 'T')
		usleep(1000);
	assert_int_equal(op_helper_start(nursery, ANSWERS, SHORT_NS, &none), -EAGAIN);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(op_helper_start(nursery, ANSWERS, LONG_NS, &none), -EAGAIN);
	assert_null(none);
	op_helper_stop(helper, op_now_ns() + OP_NS_PER_S);
	helper = next_helper();
	assert_int_not_equal(result_of(helper, "parent"), pid);
	assert_int_equal(op_nursery_nr_ended(nursery), 1);
	op_helper_stop(helper, op_now_ns() + OP_NS_PER_S);
}

static size_t nr_resorts;

static pid_t start_again(int fd)
{
	pid_t pid = fork();

	nr_resorts++;
	if (!pid) {
		assert_int_equal(dup2(fd, OP_HELPER_SOCKET_FD), OP_HELPER_SOCKET_FD);
		op_nursery_serve(kinds, op_array_size(kinds));
	}
	return pid;
}

static void without_a_spare_the_program_starts_another(void **state OP_UNUSED)
{
	struct op_helper *helper = new_helper(ANSWERS);
	int pid = result_of(helper, "parent"), spare;

	op_nursery_set_last_resort(nursery, start_again);
	while (!(spare = spare_of(pid)))
		usleep(1000);
	op_nursery_watch(nursery);
	assert_int_equal(kill(pid, SIGSTOP), 0); /* it makes no other spare */
	assert_int_equal(kill(spare, SIGKILL), 0);
	while (!op_nursery_nr_ended(nursery))
		op_nursery_watch(nursery);
	assert_int_equal(kill(pid, SIGKILL), 0);
	op_helper_stop(helper, op_now_ns() + OP_NS_PER_S);
	helper = next_helper();
	assert_int_equal(op_nursery_nr_ended(nursery), 2);
	assert_int_equal(nr_resorts, 1);
	op_helper_stop(helper, op_now_ns() + OP_NS_PER_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(answers_are_those_of_the_helper, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_helper_inherits_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(questions_leave_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_helper_that_runs_has_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_end_is_awaited, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_helper_that_hangs_is_left_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_helper_that_ended_tells_so, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_nursery_that_ended_is_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_nursery_that_ends_is_missed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_nursery_that_is_stopped_is_not_awaited, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_a_spare_the_program_starts_another, set_up, tear_down),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
