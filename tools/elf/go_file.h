/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of a Go program (go_table.h), and the file that it is in. One thread. */
#ifndef OPR_ELF_GO_FILE_H
#define OPR_ELF_GO_FILE_H

#include "tools/elf/go_table.h"

struct opr_go_file {
	const uint8_t *bytes; /* NULL: there is no table */
	uint64_t nr_bytes;
	struct opr_go_table table;
};

/*
 * Maps the file at `fd`, which stays the caller's, and finds the table. Without one `bytes` is
 * NULL. The file must not become shorter: call it in a child process. opr_go_file_close frees.
 */
void opr_go_file_open(struct opr_go_file *go, int fd) OP_NONNULL;
void opr_go_file_close(struct opr_go_file *go) OP_NONNULL;

#endif
