/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/files/unchanged.h"

#include <errno.h>
#include <sys/sysmacros.h>

#include "libop/base/clock.h"
#include "pipeline/files/locate.h"

/*
 * The question: for each file this struct and its path with a NUL. The pointer means nothing there.
 * The answer: a byte for each file, 1 or 0.
 */

static bool is_unchanged(const struct opd_known_file *known, const char *path)
{
	struct statx st;
	uint64_t generation;

	return !opd_stat_on_host(path, &st, &generation) && makedev(st.stx_dev_major, st.stx_dev_minor) == known->device &&
	       st.stx_ino == known->inode && generation == known->inode_generation && st.stx_size == known->nr_bytes &&
	       (uint64_t)st.stx_mtime.tv_sec * OP_NS_PER_S + st.stx_mtime.tv_nsec == known->mtime_ns;
}

int opd_unchanged_answer(const char *question, size_t nr_bytes, struct op_text *answer)
{
	struct opd_known_file known;

	while (nr_bytes > sizeof(known)) {
		const char *path = question + sizeof(known);
		size_t taken = sizeof(known) + strlen(path) + 1;

		if (taken > nr_bytes)
			return -EINVAL;
		memcpy(&known, question, sizeof(known));
		op_text_add_char(answer, (char)is_unchanged(&known, path));
		question += taken;
		nr_bytes -= taken;
	}
	return 0;
}

int opd_unchanged_ask(struct opd_lookers *lookers, uint32_t uid, const struct opd_known_file *files, size_t nr_files,
		      bool *ret_unchanged)
{
	const struct opd_look_about about = { .is_files = true, .uid = uid };
	struct op_text question = { 0 }, answer = { 0 };
	uint32_t any = 0;
	int err = -ENOMEM;

	for (size_t i = 0; i < nr_files; i++) {
		op_text_add_bytes(&question, &files[i], sizeof(files[i]));
		op_text_add_bytes(&question, files[i].path, strlen(files[i].path) + 1);
	}
	if (!question.failed) {
		struct iovec part = { question.data, question.length };

		err = opd_look(lookers, &about, OPD_LOOK_UNCHANGED, &part, 1, -1, &any, &answer);
	}
	if (!err && answer.length != nr_files)
		err = -EBUSY;
	for (size_t i = 0; !err && i < nr_files; i++)
		ret_unchanged[i] = answer.data[i];
	op_text_free(&question);
	op_text_free(&answer);
	return err;
}
