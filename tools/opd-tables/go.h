/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rows from the table of the runtime of Go (tools/elf/go_table.h). It says by how
 * much each instruction has lowered the stack pointer, so the rows are as exact as those of
 * .eh_frame, which Go programs do not have. One thread.
 */
#ifndef OPT_GO_H
#define OPT_GO_H

#include "tools/elf/go_table.h"
#include "tools/opd-tables/rows.h"

/* Adds the rows of the table. *ret_is_whole becomes false when a part is damaged. 0 or -ENOMEM. */
int opt_go_read_rows(const struct opr_go_table *table, uint16_t machine, struct opt_rows *rows,
		     bool *ret_is_whole) OP_NONNULL OP_MUST_CHECK;

#endif
