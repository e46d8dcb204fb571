/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opd-tables/cfi.h"

#include <errno.h>

#include "tools/opd-tables/frame_state.h"

#define OPERATIONS_MAX 200000000u /* of all functions together; libLLVM-14 has 3 million */

struct reading {
	const struct opr_frames *frames;
	struct opt_rows *rows;
	uint16_t machine;
	struct opr_cie cie;     /* the last one; neighbours mostly share it */
	uint64_t begun_at;      /* the CIE that `begun` is of */
	struct opt_frame begun; /* after its initial instructions */
	bool has_begun;         /* they could be run */
	uint64_t nr_operations;
	bool is_whole;
};

/* False: the initial instructions of the CIE cannot be used. */
static bool begin_frame(struct reading *reading)
{
	const struct opr_cie *cie = &reading->cie;
	struct opr_bytes program = cie->program;

	if (cie->at == reading->begun_at)
		return reading->has_begun;
	reading->begun_at = cie->at;
	reading->has_begun = false;
	if (cie->ra_reg >= OP_UNWIND_REGISTERS)
		return false;
	reading->begun = (struct opt_frame){
		.is_signal = cie->is_signal,
		.code_factor = cie->code_factor,
		.data_factor = cie->data_factor,
	};
	opt_frame_begin(&reading->begun, reading->machine, (uint8_t)cie->ra_reg);
	reading->has_begun = !opt_frame_run(&reading->begun, &program, NULL, 0, NULL, &reading->nr_operations);
	return reading->has_begun;
}

/* 0 or -ENOMEM. */
static int read_fde(struct reading *reading, const struct opr_frame_entry *entry)
{
	struct opt_frame frame;
	struct opr_fde fde;
	bool is_code;
	int err;

	if (!opr_fde_read(reading->frames, entry, &reading->cie, &fde) || !begin_frame(reading)) {
		reading->is_whole = false;
		return 0;
	}
	/* The linker leaves descriptions of functions that it dropped: they begin at 0. */
	err = fde.nr_bytes ? opt_rows_begin(reading->rows, fde.start, fde.start + fde.nr_bytes, &is_code) : 0;
	if (err || !fde.nr_bytes || !is_code)
		return err;
	frame = reading->begun;
	err = opt_frame_run(&frame, &fde.program, &reading->begun, fde.start, reading->rows, &reading->nr_operations);
	if (err == -EBADMSG) {
		opt_rows_drop(reading->rows);
		reading->is_whole = false;
		err = 0;
	}
	return err;
}

int opt_cfi_read(const struct opr_frames *frames, uint16_t machine, struct opt_rows *rows, bool *ret_is_whole)
{
	struct reading reading = {
		.frames = frames,
		.rows = rows,
		.machine = machine,
		.cie.at = OPR_CIE_NONE,
		.begun_at = OPR_CIE_NONE,
		.is_whole = true,
	};
	struct opr_frame_entry entry;
	uint64_t at = 0;
	int err = 0;

	while (!err && reading.nr_operations <= OPERATIONS_MAX && opr_frame_next(frames, &at, &entry))
		if (entry.is_fde)
			err = read_fde(&reading, &entry);
	*ret_is_whole &= reading.is_whole && at >= frames->nr_bytes;
	return err;
}
