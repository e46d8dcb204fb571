/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/elf/frame_ranges.h"

#include <elf.h>
#include <errno.h>

#include "libop/base/grow.h"
#include "tools/elf/frame_entries.h"

#define SECTION ".eh_frame"

/* 0 or -ENOMEM. */
static int read_entries(const struct opr_frames *frames, struct opr_ranges *ranges)
{
	struct opr_cie cie = { .at = OPR_CIE_NONE };
	struct opr_frame_entry entry;
	size_t capacity = 0;
	struct opr_fde fde;

	for (uint64_t at = 0; opr_frame_next(frames, &at, &entry);) {
		if (!entry.is_fde || !opr_fde_read(frames, &entry, &cie, &fde) || !fde.nr_bytes)
			continue;
		if (!op_grow(&ranges->ranges, &capacity, ranges->nr_ranges + 1))
			return -ENOMEM;
		ranges->ranges[ranges->nr_ranges++] = (struct opr_range){ fde.start, fde.start + fde.nr_bytes, cie.is_signal };
	}
	return 0;
}

static int compare_ranges(const void *left, const void *right)
{
	const struct opr_range *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->end < b->end ? -1 : a->end > b->end;
}

/* x86-64 has a type of its own for the section. */
static const struct opr_elf_section *find_section(const struct opr_elf *elf)
{
	const struct opr_elf_section *section = opr_elf_find(elf, SHT_PROGBITS, SECTION);

	return section ? section : opr_elf_find(elf, SHT_X86_64_UNWIND, SECTION);
}

static uint64_t address_of(const struct opr_elf *elf, const char *name)
{
	const struct opr_elf_section *section = opr_elf_find(elf, SHT_PROGBITS, name);

	return section ? section->vma : 0;
}

int opr_frame_ranges(const struct opr_elf *elf, struct opr_ranges *ret_ranges)
{
	const struct opr_elf_section *section = find_section(elf);
	struct opr_ranges ranges = { 0 };
	uint8_t *bytes = NULL;
	int err = section ? opr_elf_read(elf, section, &bytes) : 0;

	if (bytes) {
		struct opr_frames frames = {
			.bytes = bytes,
			.nr_bytes = section->nr_bytes,
			.address = section->vma,
			.text = address_of(elf, ".text"),
			.data = address_of(elf, ".got"),
			.is_eh_frame = true,
			.is_32 = !elf->is_64,
			.is_big = elf->is_big,
		};

		err = read_entries(&frames, &ranges);
	}
	free(bytes);
	if (err) {
		free(ranges.ranges);
		return err;
	}
	if (ranges.nr_ranges)
		qsort(ranges.ranges, ranges.nr_ranges, sizeof(*ranges.ranges), compare_ranges);
	*ret_ranges = ranges;
	return 0;
}

uint64_t opr_frame_end(const struct opr_ranges *ranges, uint64_t vma)
{
	size_t nr = op_nr_leading(ranges->ranges, ranges->nr_ranges, range, range->start <= vma);

	if (nr && ranges->ranges[nr - 1].end > vma)
		return ranges->ranges[nr - 1].end;
	return nr < ranges->nr_ranges ? ranges->ranges[nr].start : UINT64_MAX;
}

void opr_frame_ranges_free(struct opr_ranges *ranges)
{
	free(ranges->ranges);
	*ranges = (struct opr_ranges){ 0 };
}
