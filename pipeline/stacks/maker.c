/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/stacks/maker.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "libop/process/pass.h"
#include "libop/unwind/row_table.h"
#include "pipeline/stacks/helper_kinds.h"

/* for a helper that was just ordered; later it is only asked whether it is there */
#define START_NS   (20u * OP_NS_PER_MS)
#define STOPPED_NS (2u * (uint64_t)OP_NS_PER_S)
#define NO_OWNER   UINT64_MAX /* owns no file */

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

int opd_maker_init(struct opd_maker *maker, struct op_nursery *nursery, struct opd_lookers *lookers, uint64_t wait_ns,
		   bool is_awaited)
{
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	if (epoll_fd < 0)
		return -errno;
	*maker = (struct opd_maker){
		.nursery = nursery,
		.lookers = lookers,
		.table_fd = -1,
		.wait_ns = wait_ns ? wait_ns : OPD_MAKER_WAIT_NS,
		.is_awaited = is_awaited,
		.credit_ns = OPD_MAKER_CREDIT_NS,
		.credit_at_ns = op_now_ns(),
		.epoll_fd = epoll_fd,
	};
	return 0;
}

/* ---- helpers ---- */

static int start_helper(struct opd_maker *maker)
{
	struct epoll_event event = { .events = EPOLLIN };
	int err;

	if (maker->helper)
		return 0;
	err = op_helper_start(maker->nursery, OPD_HELPER_TABLER, maker->is_awaited ? OP_NS_PER_S : START_NS, &maker->helper);
	if (!err && epoll_ctl(maker->epoll_fd, EPOLL_CTL_ADD, op_helper_fd(maker->helper), &event) < 0) {
		err = -errno;
		op_helper_leave(maker->helper);
		maker->helper = NULL;
	}
	return err;
}

/* It ends opd-tables, and then itself, unless one of them hangs. */
static void abandon(struct opd_maker *maker)
{
	epoll_ctl(maker->epoll_fd, EPOLL_CTL_DEL, op_helper_fd(maker->helper), NULL);
	op_helper_end(maker->helper);
	maker->hanging[maker->nr_hanging].helper = maker->helper;
	maker->hanging[maker->nr_hanging++].owner = maker->owner;
	maker->helper = NULL;
}

static void lose_helper(struct opd_maker *maker)
{
	maker->nr_ended++;
	op_helper_leave(maker->helper);
	maker->helper = NULL;
}

/* Closing its socket takes it out of the epoll, and ends it. */
static void leave_helper(struct opd_maker *maker)
{
	op_helper_leave(maker->helper);
	maker->helper = NULL;
}

static void forget_ended(struct opd_maker *maker)
{
	for (size_t i = maker->nr_hanging; i--;) {
		if (!op_helper_is_idle(maker->hanging[i].helper))
			continue;
		op_helper_leave(maker->hanging[i].helper);
		maker->hanging[i] = maker->hanging[--maker->nr_hanging];
	}
}

bool opd_maker_can(struct opd_maker *maker)
{
	forget_ended(maker);
	if (maker->helper && !maker->is_making && op_helper_has_ended(maker->helper))
		lose_helper(maker);
	return maker->nursery && !maker->is_making && maker->nr_hanging < OPD_MAKER_HANGING_MAX &&
	       (!maker->helper || op_helper_is_idle(maker->helper));
}

void opd_maker_rest(struct opd_maker *maker)
{
	forget_ended(maker);
	if (!maker->is_making && maker->helper)
		leave_helper(maker);
}

/* ---- a table ---- */

static void close_table(struct opd_maker *maker)
{
	if (maker->table_fd >= 0)
		close(maker->table_fd);
	maker->table_fd = -1;
	maker->is_making = false;
}

/* Takes normal_ns out of the credit; result_of gives back what was not used. */
static uint32_t take_credit(struct opd_maker *maker)
{
	uint64_t now_ns = op_now_ns();

	if (maker->is_awaited)
		return OPD_TABLER_NEVER_IDLE;
	maker->credit_ns += (now_ns - maker->credit_at_ns) / OPD_MAKER_CREDIT_SHARE;
	maker->credit_ns = op_min_u64(maker->credit_ns, OPD_MAKER_CREDIT_NS);
	maker->credit_at_ns = now_ns;
	maker->normal_ns = op_min_u64(maker->credit_ns, OPD_MAKER_NORMAL_NS);
	maker->credit_ns -= maker->normal_ns;
	return (uint32_t)(maker->normal_ns / OP_NS_PER_MS);
}

/* Asks the helper, which then has one end of the socket, and sends it the file for the table. */
static int ask_helper(struct opd_maker *maker, bool only_header, int ends[2])
{
	struct iovec part = { (char[]){ 0 }, 1 };
	struct opd_tabler_question question = { .only_header = only_header };
	struct iovec whole = { &question, sizeof(question) };
	int err = start_helper(maker);
	ssize_t nr;

	if (err)
		return err;
	maker->table_fd = op_sys_memfd_create("opd-table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (maker->table_fd < 0)
		return maker->table_fd;
	question.normal_ms = take_credit(maker);
	nr = op_pass_send(ends[0], &part, 1, maker->table_fd, MSG_DONTWAIT);
	err = nr < 0 ? (int)nr : op_helper_send(maker->helper, &whole, 1, ends[1]);
	if (err)
		leave_helper(maker);
	return err;
}

/* Without the image the helper sees the end of the socket, and answers that. */
static int start(struct opd_maker *maker, const struct opd_pass_wanted *wanted, bool only_header, int image_fd)
{
	struct iovec part = { (char[]){ 0 }, 1 };
	int ends[2], err;
	ssize_t nr;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	err = ask_helper(maker, only_header, ends);
	close(ends[1]);
	if (!err && wanted) {
		err = opd_pass_file(maker->lookers, wanted, ends[0]);
	} else if (!err) {
		nr = op_pass_send(ends[0], &part, 1, image_fd, MSG_DONTWAIT);
		err = nr < 0 ? (int)nr : 0;
	}
	close(ends[0]);
	if (err) {
		close_table(maker);
		if (err == -EBUSY && maker->helper) /* the looker hangs, and has the socket */
			abandon(maker);
		return err;
	}
	maker->is_making = true;
	maker->has_wanted = wanted;
	if (wanted)
		maker->wanted = *wanted;
	maker->wanted.path = NULL;
	maker->begin_ns = op_now_ns();
	return 0;
}

int opd_maker_start(struct opd_maker *maker, const struct opd_pass_wanted *wanted, bool only_header)
{
	maker->owner = opd_look_owner(&wanted->about);
	for (size_t i = 0; i < maker->nr_hanging; i++)
		if (maker->hanging[i].owner == maker->owner)
			return -EBUSY;
	return start(maker, wanted, only_header, -1);
}

int opd_maker_start_memory(struct opd_maker *maker, int image_fd)
{
	return start(maker, NULL, false, image_fd);
}

/* The helper asked the descriptor that opd-tables read. What the looker said counts for nothing. */
static bool is_of_another(const struct opd_maker *maker, const struct opd_tabler_answer *answer)
{
	return answer->has_changed || (maker->has_wanted && !opd_pass_is_wanted(&answer->image, &maker->wanted));
}

static enum opd_make_result result_of(struct opd_maker *maker, const struct op_text *text, struct opd_file_identity *ret_image)
{
	struct opd_tabler_answer answer;

	if (text->length != sizeof(answer))
		return OPD_MAKE_NOT_STARTED;
	memcpy(&answer, text->data, sizeof(answer));
	if (answer.cpu_ns < maker->normal_ns)
		maker->credit_ns += maker->normal_ns - answer.cpu_ns;
	*ret_image = answer.image;
	if (answer.status >= 0 && is_of_another(maker, &answer))
		return OPD_MAKE_CHANGED;
	if (answer.status < 0 || (WIFEXITED(answer.status) && WEXITSTATUS(answer.status) == OPD_TABLER_NO_PROGRAM))
		return OPD_MAKE_NOT_STARTED;
	if (WIFSIGNALED(answer.status) && WTERMSIG(answer.status) == SIGKILL)
		return OPD_MAKE_KILLED;
	if (!WIFEXITED(answer.status))
		return WIFSIGNALED(answer.status) && WTERMSIG(answer.status) == SIGXCPU ? OPD_MAKE_TIMED_OUT : OPD_MAKE_CRASHED;
	if (WEXITSTATUS(answer.status) == OP_ROW_TABLE_NO_SANDBOX)
		return OPD_MAKE_NO_SANDBOX;
	return WEXITSTATUS(answer.status) ? OPD_MAKE_FAILED : OPD_MAKE_MADE;
}

int opd_maker_take(struct opd_maker *maker, enum opd_make_result *ret_result, int *ret_fd, struct opd_file_identity *ret_image)
{
	enum opd_make_result result = OPD_MAKE_HELPER_ENDED;
	struct op_text text = { 0 };
	int ignored, err = op_helper_take(maker->helper, &ignored, &text);
	uint64_t took_ns = op_now_ns() - maker->begin_ns;

	if (err == -EAGAIN && took_ns > STOPPED_NS && op_helper_is_stopped(maker->helper)) {
		maker->owner = NO_OWNER; /* no file system is to blame */
		maker->nr_ended++;
		abandon(maker);
	} else if (err == -EAGAIN) {
		if (took_ns < maker->wait_ns)
			return -EAGAIN;
		result = OPD_MAKE_NO_ANSWER;
		abandon(maker);
	} else if (err) {
		lose_helper(maker);
	} else {
		result = result_of(maker, &text, ret_image);
	}
	op_text_free(&text);
	*ret_fd = -1;
	if (result == OPD_MAKE_MADE && op_sys_fcntl(maker->table_fd, F_ADD_SEALS, SEALS) < 0)
		result = OPD_MAKE_CRASHED;
	if (result == OPD_MAKE_MADE) {
		*ret_fd = maker->table_fd;
		maker->table_fd = -1;
	}
	close_table(maker);
	*ret_result = result;
	return 0;
}

void opd_maker_free(struct opd_maker *maker)
{
	if (maker->helper)
		leave_helper(maker);
	close_table(maker);
	for (size_t i = 0; i < maker->nr_hanging; i++)
		op_helper_leave(maker->hanging[i].helper);
	if (maker->epoll_fd >= 0)
		close(maker->epoll_fd);
	*maker = (struct opd_maker){ .epoll_fd = -1, .table_fd = -1 };
}
