/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The entries of .eh_frame (Linux Standard Base Core 5.0, "Exception Frames") and of .debug_frame
 * (DWARF 5, section 6.4.1): a CIE has what many functions share, an FDE describes one function. The
 * bytes are hostile: every read is bounded. One thread. No messages.
 *
 *	for (uint64_t at = 0; opr_frame_next(frames, &at, &entry);)
 *		if (entry.is_fde && opr_fde_read(frames, &entry, &cie, &fde))
 *			...
 */
#ifndef OPR_ELF_FRAME_ENTRIES_H
#define OPR_ELF_FRAME_ENTRIES_H

#include "tools/elf/bytes.h"

struct opr_frames {
	const uint8_t *bytes;
	uint64_t nr_bytes;
	uint64_t address;    /* of the first byte, in the image */
	uint64_t text, data; /* what DW_EH_PE_textrel and _datarel are relative to; 0: not known */
	bool is_eh_frame;    /* else .debug_frame */
	bool is_32, is_big;  /* addresses of 32 bits; numbers are big-endian */
};

struct opr_frame_entry {
	uint64_t at; /* offset in the section */
	uint64_t id_at, id;
	struct opr_bytes bytes; /* behind the id */
	bool is_fde;
};

struct opr_cie {
	uint64_t at; /* offset in the section; OPR_CIE_NONE: none was read */
	bool is_usable;
	bool has_data_length; /* 'z': functions say how long their augmentation data is */
	bool is_signal;       /* 'S': the frame of a signal handler */
	uint8_t pointer_encoding;
	uint64_t code_factor, ra_reg;
	int64_t data_factor;
	struct opr_bytes program; /* its initial instructions */
};

#define OPR_CIE_NONE UINT64_MAX

struct opr_fde {
	uint64_t start, nr_bytes; /* start + nr_bytes does not overflow; nr_bytes may be 0 */
	struct opr_bytes program;
};

/*
 * Reads the entry at offset *at, which moves on. False: *at is the end of the section, or the bytes
 * there are no entry. An entry without an id ends the part of one object file; it is no FDE.
 */
bool opr_frame_next(const struct opr_frames *frames, uint64_t *at, struct opr_frame_entry *ret_entry) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads an FDE. `cie` becomes its CIE; it is read again only when it is another one than before.
 * False: the entry is damaged, of an unknown kind, or has an address that is not in the section.
 */
bool opr_fde_read(const struct opr_frames *frames, const struct opr_frame_entry *entry, struct opr_cie *cie,
		  struct opr_fde *ret_fde) OP_NONNULL OP_MUST_CHECK;

#endif
