/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The helper process that runs opd-tables (libop/process/helper.h). It passes two descriptors on:
 * the image, which a looker sends, and the file for the table. It reads neither.
 */
#ifndef OPD_TABLER_H
#define OPD_TABLER_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"
#include "pipeline/files/identity.h"

#define OPD_TABLES_ENV "OPD_TABLES" /* environment: another path of the program */

#define OPD_TABLER_NO_PROGRAM 127 /* exit code when opd-tables cannot be executed, as of sh(1) */

#define OPD_TABLER_NEVER_IDLE UINT32_MAX

/* Asked with a socket, over which the file for the table comes first, and then the image. */
struct opd_tabler_question {
	uint32_t normal_ms;  /* of time at normal priority; then opd-tables is SCHED_IDLE */
	uint8_t only_header; /* no rows: the header has the build-id */
};

struct opd_tabler_answer {
	int32_t status; /* of waitpid(2); -1: opd-tables was not started */
	uint64_t cpu_ns;
	struct opd_file_identity image; /* the file that opd-tables read; its inode is 0: unknown */
	uint8_t has_changed;            /* the image was written to meanwhile */
};

/* The program that will be run. Call it before the nursery starts. */
void opd_tabler_find_program(void);
const char *opd_tabler_program(void);

/*
 * For struct op_helper_kind. The caller gives up rights behind opd_tabler_begin. The question is a
 * struct opd_tabler_question, the answer a struct opd_tabler_answer.
 */
int opd_tabler_begin(void) OP_MUST_CHECK;
int opd_tabler_answer(const char *question, size_t nr_bytes, int fd, struct op_text *answer) OP_NONNULL;

#endif
