/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The owner of JIT code and its files, by a looker when there is one: the files lie in file systems
 * that anybody may have mounted.
 *
 * Sync thread only, except the answers, which run in the looker.
 */
#ifndef OPD_JIT_OWNER_ASK_H
#define OPD_JIT_OWNER_ASK_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"
#include "pipeline/files/far_file.h"
#include "pipeline/files/owner.h"

/* A process that may describe its code. */
struct opd_jit_process {
	uint32_t pid, parent_pid; /* parent_pid 0: unknown */
	uint64_t began_ns;        /* when its program began, OP_CLOCK; 0: before opd looked */
	bool has_ended;
	struct opd_look_about about;
};

/* Reads who the process is, as opd_jit_owner_init and opd_jit_owner_init_ended. */
void opd_jit_owner_ask(struct opd_jit_owner *owner, struct opd_lookers *lookers, const struct opd_jit_process *process)
	OP_NONNULL_ARGS(1, 3);

/* A file of a process. */
struct opd_jit_wanted {
	const char *path;
	uint64_t start, end; /* the process has it mapped there; end 0: it has not */
	/*
	 * device, inode, length and time of the last reading; the same file is not opened again;
	 * NULL: it is
	 */
	const struct stat *known;
};

/*
 * Opens a file as opd_jit_owner_open and opd_jit_owner_open_mapped. 0; then ret_file->fd is -1 when
 * the file is the known one. -EBUSY: there is no answer; another -errno.
 */
int opd_jit_owner_ask_file(struct opd_jit_owner *owner, struct opd_lookers *lookers, const struct opd_look_about *about,
			   const struct opd_jit_wanted *wanted, struct opd_far_file *ret_file,
			   struct stat *ret_stat) OP_NONNULL_ARGS(1, 3, 4, 5, 6) OP_MUST_CHECK;

/* The answers to OPD_LOOK_OWNER and OPD_LOOK_OPEN. */
int opd_jit_owner_answer(const char *question, size_t nr_bytes, int fd, struct op_text *answer) OP_NONNULL OP_MUST_CHECK;
int opd_jit_open_answer(const char *question, size_t nr_bytes, int fd, struct op_text *answer) OP_NONNULL OP_MUST_CHECK;

#endif
