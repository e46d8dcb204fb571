/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The functions that .eh_frame lists. Sources: Linux Standard Base Core 5.0, "Exception Frames";
 * DWARF 5, section 6.4.1.
 */
#ifndef OPR_ELF_FRAME_RANGES_H
#define OPR_ELF_FRAME_RANGES_H

#include "tools/elf/elf_file.h"

struct opr_range {
	uint64_t start, end; /* addresses; end is exclusive */
	bool is_signal;      /* what a signal handler returns to */
};

struct opr_ranges {
	struct opr_range *ranges; /* sorted by start; some may overlap */
	size_t nr_ranges;
};

/*
 * The ranges of all frame description entries, freed with opr_frame_ranges_free. Entries that are
 * damaged or of another kind are left out. 0, also when there are none; -EBADMSG: the section is
 * not within the file; another -errno.
 */
int opr_frame_ranges(const struct opr_elf *elf, struct opr_ranges *ret_ranges) OP_NONNULL OP_MUST_CHECK;

/* Where the range that has the address ends, or the next one begins. UINT64_MAX: none. */
uint64_t opr_frame_end(const struct opr_ranges *ranges, uint64_t vma) OP_NONNULL;

void opr_frame_ranges_free(struct opr_ranges *ranges);

#endif
