/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/files/owner_ask.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/sys.h"

/* opd and its lookers are one program, so the structs need no form of their own. */
struct owner_question {
	struct opd_jit_owner owner;
	struct opd_jit_process process;
};

/* The path follows, with a NUL. */
struct open_question {
	struct opd_jit_owner owner;
	uint64_t start, end;
	bool has_known;
	struct stat known;
};

struct open_answer {
	struct opd_jit_owner owner;
	struct stat stat;
	int fd;
};

/* ---- in the looker ---- */

static void learn(struct opd_jit_owner *owner, const struct opd_jit_process *process)
{
	if (!process->has_ended)
		opd_jit_owner_learn(owner);
	if (!owner->is_known)
		opd_jit_owner_learn_ended(owner, process->parent_pid, process->began_ns);
}

int opd_jit_owner_answer(const char *question, size_t nr_bytes, int fd, struct op_text *answer)
{
	struct owner_question asked;

	if (nr_bytes != sizeof(asked))
		return -EINVAL;
	memcpy(&asked, question, sizeof(asked));
	asked.owner.proc_fd = fd < 0 ? -1 : op_sys_fcntl(fd, F_DUPFD_CLOEXEC, 0);
	learn(&asked.owner, &asked.process);
	op_text_add_bytes(answer, &asked.owner, sizeof(asked.owner));
	opd_jit_owner_close(&asked.owner);
	return 0;
}

static bool is_known(const struct stat *st, const struct stat *known)
{
	return st->st_dev == known->st_dev && st->st_ino == known->st_ino && st->st_size == known->st_size &&
	       st->st_mtim.tv_sec == known->st_mtim.tv_sec && st->st_mtim.tv_nsec == known->st_mtim.tv_nsec;
}

/* The descriptor stays open when the answer tells it. */
int opd_jit_open_answer(const char *question, size_t nr_bytes, int fd, struct op_text *answer)
{
	struct open_question asked;
	struct open_answer opened;
	const char *path = question + sizeof(asked);

	if (nr_bytes <= sizeof(asked))
		return -EINVAL;
	memcpy(&asked, question, sizeof(asked));
	opened.owner = asked.owner;
	opened.owner.proc_fd = fd;
	if (asked.end)
		opened.fd = opd_jit_owner_open_mapped(&opened.owner, asked.start, asked.end, path, &opened.stat);
	else
		opened.fd = opd_jit_owner_open(&opened.owner, path, &opened.stat);
	if (opened.fd < 0)
		return opened.fd;
	if (asked.has_known && is_known(&opened.stat, &asked.known)) {
		close(opened.fd);
		opened.fd = -1;
	}
	op_text_add_bytes(answer, &opened, sizeof(opened));
	if (answer->failed && opened.fd >= 0)
		close(opened.fd);
	return 0;
}

/* ---- in opd ---- */

/* The directory in /proc stays open here. It belongs to procfs, not to the process. */
void opd_jit_owner_ask(struct opd_jit_owner *owner, struct opd_lookers *lookers, const struct opd_jit_process *process)
{
	struct owner_question question = { .process = *process };
	struct iovec part = { &question, sizeof(question) };
	struct op_text answer = { 0 };
	uint32_t any = 0;
	int proc_fd;

	opd_jit_owner_begin(owner, process->pid, process->began_ns);
	if (owner->proc_fd == -EMFILE || owner->proc_fd == -ENFILE)
		return;
	if (!lookers) {
		learn(owner, process);
		return;
	}
	proc_fd = owner->proc_fd;
	question.owner = *owner;
	if (!opd_look(lookers, &process->about, OPD_LOOK_OWNER, &part, 1, proc_fd, &any, &answer) &&
	    answer.length == sizeof(*owner)) {
		memcpy(owner, answer.data, sizeof(*owner));
		if (owner->proc_fd < 0 && proc_fd >= 0)
			close(proc_fd);
		else
			owner->proc_fd = proc_fd;
	}
	op_text_free(&answer);
}

static int open_here(struct opd_jit_owner *owner, const struct opd_jit_wanted *wanted, struct opd_far_file *ret_file,
		     struct stat *ret_stat)
{
	int fd = wanted->end ? opd_jit_owner_open_mapped(owner, wanted->start, wanted->end, wanted->path, ret_stat)
			     : opd_jit_owner_open(owner, wanted->path, ret_stat);

	if (fd >= 0)
		*ret_file = (struct opd_far_file){ .fd = fd };
	return fd < 0 ? fd : 0;
}

/* The user of the process may have changed. */
static int take_opened(const struct op_text *answer, struct opd_jit_owner *owner, struct opd_far_file *file, struct stat *ret_stat)
{
	struct open_answer opened;

	if (answer->length != sizeof(opened))
		return -EBUSY;
	memcpy(&opened, answer->data, sizeof(opened));
	owner->uid = opened.owner.uid;
	file->fd = opened.fd;
	*ret_stat = opened.stat;
	return 0;
}

int opd_jit_owner_ask_file(struct opd_jit_owner *owner, struct opd_lookers *lookers, const struct opd_look_about *about,
			   const struct opd_jit_wanted *wanted, struct opd_far_file *ret_file, struct stat *ret_stat)
{
	struct opd_far_file file = { .lookers = lookers, .about = *about, .fd = -1 };
	struct open_question question = { .owner = *owner, .start = wanted->start, .end = wanted->end };
	struct iovec parts[] = {
		{ &question, sizeof(question) },
		{ (void *)(uintptr_t)wanted->path, strlen(wanted->path) + 1 }, // NOLINT(performance-no-int-to-ptr)
	};
	struct op_text answer = { 0 };
	int err;

	if (!lookers)
		return open_here(owner, wanted, ret_file, ret_stat);
	if (!owner->is_known)
		return -ENOENT;
	if (wanted->known) {
		question.has_known = true;
		question.known = *wanted->known;
	}
	err = opd_look(lookers, about, OPD_LOOK_OPEN, parts, op_array_size(parts), owner->proc_fd, &file.serial, &answer);
	if (!err)
		err = take_opened(&answer, owner, &file, ret_stat);
	op_text_free(&answer);
	if (!err)
		*ret_file = file;
	return err;
}
