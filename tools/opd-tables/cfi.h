/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The rows of .eh_frame and .debug_frame (DWARF 5, section 6.4). Each function has a small program
 * that says, for each range of its code, where the caller's registers are. opt_cfi_read runs these
 * programs once and keeps the rows. The bytes are hostile: the work is bounded.
 */
#ifndef OPT_CFI_H
#define OPT_CFI_H

#include "tools/elf/frame_entries.h"
#include "tools/opd-tables/rows.h"

/*
 * Adds the rows of all functions that `rows` does not have yet. `machine` is EM_X86_64 or
 * EM_AARCH64. *ret_is_whole becomes false when some could not be read. 0 or -ENOMEM.
 */
int opt_cfi_read(const struct opr_frames *frames, uint16_t machine, struct opt_rows *rows,
		 bool *ret_is_whole) OP_NONNULL OP_MUST_CHECK;

#endif
