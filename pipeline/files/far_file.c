/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/files/far_file.h"

#include <errno.h>
#include <unistd.h>

#include "libop/base/sys.h"

#define READ_MAX_BYTES 65536u

/* nr_bytes 0: only the length is wanted. */
struct question {
	int fd;
	uint32_t nr_bytes;
	int64_t offset;
};

/* The answer: the length of the file, then the bytes. */

/* ---- in the looker ---- */

int opd_far_read_answer(const char *question, size_t nr_bytes, struct op_text *answer)
{
	static char bytes[READ_MAX_BYTES];
	struct question asked;
	uint64_t length;
	struct stat st;
	ssize_t nr = 0;
	int err;

	if (nr_bytes != sizeof(asked))
		return -EINVAL;
	memcpy(&asked, question, sizeof(asked));
	err = op_sys_fstat(asked.fd, &st);
	if (err)
		return err;
	if (asked.nr_bytes)
		nr = op_sys_pread(asked.fd, bytes, op_min_u64(asked.nr_bytes, sizeof(bytes)), asked.offset);
	if (nr < 0)
		return (int)nr;
	length = (uint64_t)st.st_size;
	op_text_add_bytes(answer, &length, sizeof(length));
	op_text_add_bytes(answer, bytes, (size_t)nr);
	return 0;
}

int opd_far_close_answer(const char *question, size_t nr_bytes)
{
	struct question asked;

	if (nr_bytes != sizeof(asked))
		return -EINVAL;
	memcpy(&asked, question, sizeof(asked));
	close(asked.fd);
	return 0;
}

/* ---- in opd ---- */

static int ask(const struct opd_far_file *file, enum opd_look look, struct question *question, struct op_text *ret_answer)
{
	struct iovec part = { question, sizeof(*question) };
	uint32_t serial = file->serial;

	question->fd = file->fd;
	return opd_look(file->lookers, &file->about, look, &part, 1, -1, &serial, ret_answer);
}

ssize_t opd_far_read(const struct opd_far_file *file, void *bytes, size_t nr_bytes, off_t offset)
{
	struct question question = { .nr_bytes = (uint32_t)op_min_u64(nr_bytes, READ_MAX_BYTES), .offset = offset };
	struct op_text answer = { 0 };
	ssize_t nr;

	if (!file->lookers)
		return op_sys_pread(file->fd, bytes, nr_bytes, offset);
	if (!nr_bytes)
		return 0;
	nr = ask(file, OPD_LOOK_READ, &question, &answer);
	if (!nr && (answer.length < sizeof(uint64_t) || answer.length > sizeof(uint64_t) + question.nr_bytes))
		nr = -EBUSY;
	if (!nr) {
		nr = (ssize_t)(answer.length - sizeof(uint64_t));
		memcpy(bytes, answer.data + sizeof(uint64_t), (size_t)nr);
	}
	op_text_free(&answer);
	return nr;
}

int opd_far_length(const struct opd_far_file *file, uint64_t *ret_nr_bytes)
{
	struct question question = { 0 };
	struct op_text answer = { 0 };
	struct stat st;
	int err;

	if (!file->lookers) {
		err = op_sys_fstat(file->fd, &st);
		if (err)
			return err;
		*ret_nr_bytes = (uint64_t)st.st_size;
		return 0;
	}
	err = ask(file, OPD_LOOK_READ, &question, &answer);
	if (!err && answer.length != sizeof(*ret_nr_bytes))
		err = -EBUSY;
	if (!err)
		memcpy(ret_nr_bytes, answer.data, sizeof(*ret_nr_bytes));
	op_text_free(&answer);
	return err;
}

bool opd_far_is_lost(const struct opd_far_file *file)
{
	return file->fd >= 0 && file->lookers && !opd_lookers_has(file->lookers, file->serial);
}

/* Without an answer the looker keeps the file open until it ends. */
void opd_far_close(struct opd_far_file *file)
{
	struct question question = { 0 };
	struct op_text answer = { 0 };

	if (file->fd >= 0 && file->lookers)
		(void)!ask(file, OPD_LOOK_CLOSE, &question, &answer);
	else if (file->fd >= 0)
		close(file->fd);
	op_text_free(&answer);
	file->fd = -1;
}
