/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A file that a looker has open. opd never has a descriptor of a stranger's file: even to close it
 * may hang.
 *
 * Sync thread only, except the answers, which run in the looker.
 */
#ifndef OPD_FAR_FILE_H
#define OPD_FAR_FILE_H

#include <sys/types.h>

#include "libop/base/compiler.h"
#include "pipeline/files/lookers.h"

struct opd_far_file {
	struct opd_lookers *lookers; /* NULL: fd is a descriptor of this process */
	struct opd_look_about about;
	uint32_t serial; /* of the looker that has it */
	int fd;          /* there; -1: none */
};

/* As op_sys_pread. -EBUSY: there is no answer. */
ssize_t opd_far_read(const struct opd_far_file *file, void *bytes, size_t nr_bytes, off_t offset) OP_NONNULL OP_MUST_CHECK;

/* The length of the file. 0 or -errno; -EBUSY as above. */
int opd_far_length(const struct opd_far_file *file, uint64_t *ret_nr_bytes) OP_NONNULL OP_MUST_CHECK;

/* True when the looker that had it open has ended. */
bool opd_far_is_lost(const struct opd_far_file *file) OP_NONNULL OP_MUST_CHECK;

/* Closes it unless fd is -1, and sets fd to -1. */
void opd_far_close(struct opd_far_file *file) OP_NONNULL;

/* The answers to OPD_LOOK_READ and OPD_LOOK_CLOSE. */
int opd_far_read_answer(const char *question, size_t nr_bytes, struct op_text *answer) OP_NONNULL OP_MUST_CHECK;
int opd_far_close_answer(const char *question, size_t nr_bytes) OP_NONNULL OP_MUST_CHECK;

#endif
