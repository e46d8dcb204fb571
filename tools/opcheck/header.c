/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opcheck/header.h"

#include "libop/events/event.h"
#include "libop/events/ibs_cpu.h"
#include "libop/events/ibs_derived.h"

enum field { CTR_UM, CTR_COUNT, CPU_TYPE, CTR_EVENT, IS_KERNEL, MTIME, ANON_START, CG_TO_IS_KERNEL, CG_TO_ANON_START, NR_FIELDS };

#define BIT(field) (1u << (field))
#define AT(name)   offsetof(struct op_odb_header, name), sizeof(((struct op_odb_header *)NULL)->name)

static const struct {
	size_t offset, nr_bytes;
	bool identifies;
	const char *fault;
} fields[NR_FIELDS] = {
	[CTR_UM] = { AT(ctr_um), true, "the header has another unit mask than the name" },
	[CTR_COUNT] = { AT(ctr_count), true, "the header has another count than the name" },
	[CPU_TYPE] = { AT(cpu_type), false, "the header has a processor that no file of the event has" },
	[CTR_EVENT] = { AT(ctr_event), true, "the header has another event than the name" },
	[IS_KERNEL] = { AT(is_kernel), false, "the header says kernel or not, and the table of images says otherwise" },
	[MTIME] = { AT(mtime), true, "the header has another time of the image than the table of images" },
	[ANON_START] = { AT(anon_start), true, "the header has another start of the region than the name" },
	[CG_TO_IS_KERNEL] = { AT(cg_to_is_kernel), false,
			      "the header says kernel or not of what is called, and the table of images says otherwise" },
	[CG_TO_ANON_START] = { AT(cg_to_anon_start), true,
			       "the header has another start of the region that is called than the name" },
};

const struct op_dcookie_row *opk_row_of(const struct op_dcookie_table *images, const struct op_image_name *image)
{
	uint64_t cookie = images ? op_dcookie_by_name(images, image) : OP_DCOOKIE_NONE;

	return cookie == OP_DCOOKIE_NONE ? NULL : op_dcookie_row(images, cookie);
}

static uint64_t start_of(const struct op_image_name *image)
{
	return image->kind == OP_IMAGE_ANON ? image->start : 0;
}

/* The fields that opd takes from what makes the name. */
static void set_by_name(const struct op_sample_name *name, struct opk_header *header)
{
	struct op_odb_header *wanted = &header->wanted;

	wanted->ctr_um = name->unit_mask;
	wanted->ctr_count = (uint32_t)op_min_u64(name->count, UINT32_MAX);
	wanted->anon_start = start_of(&name->image);
	header->known = BIT(CTR_UM) | BIT(CTR_COUNT) | BIT(ANON_START);
	if (!name->has_callee)
		return;
	wanted->cg_to_anon_start = start_of(&name->callee);
	header->known |= BIT(CG_TO_ANON_START);
}

/* The numbers that opd has for an event. A raw event may have any name: its number is not known. */
static void set_by_event(const char *event, struct opk_header *header)
{
	struct op_odb_header *wanted = &header->wanted;
	uint32_t number;
	bool is_known = op_event_number(event, &number), may_be_ibs = !is_known || op_ibs_event_of_session(event),
	     must_be_ibs = is_known && may_be_ibs;

	header->known |= BIT(CPU_TYPE);
	if (!may_be_ibs || !op_ibs_is_cpu_type(wanted->cpu_type))
		wanted->cpu_type = must_be_ibs ? OP_IBS_CPU_TYPE_GENERIC : OP_CPU_TYPE_TIMER;
	if (!is_known || (op_event_is_raw_number(wanted->ctr_event) && !op_event_is_raw_number(number)))
		return;
	wanted->ctr_event = number;
	header->known |= BIT(CTR_EVENT);
}

static void set_by_image(const struct op_dcookie_row *row, struct opk_header *header)
{
	header->wanted.is_kernel = row->id.is_kernel;
	header->known |= BIT(IS_KERNEL);
	if (!header->wanted.mtime || !op_dcookie_mtime(row))
		return;
	header->wanted.mtime = op_dcookie_mtime(row);
	header->known |= BIT(MTIME);
}

static void set_by_callee(const struct op_dcookie_table *images, const struct op_sample_name *name, struct opk_header *header)
{
	const struct op_dcookie_row *row = name->has_callee ? opk_row_of(images, &name->callee) : NULL;

	if (name->has_callee && !row)
		return;
	header->wanted.cg_to_is_kernel = row && row->id.is_kernel;
	header->wanted.cg_to_anon_start = row ? start_of(&name->callee) : 0;
	header->known |= BIT(CG_TO_IS_KERNEL) | BIT(CG_TO_ANON_START);
}

void opk_header_compare(const struct op_dcookie_table *images, const struct op_sample_name *name, const struct op_odb_header *found,
			struct opk_header *ret_header)
{
	const struct op_dcookie_row *row = opk_row_of(images, &name->image);
	struct opk_header header = { .wanted = *found };

	set_by_name(name, &header);
	if (row) {
		set_by_event(name->event, &header);
		set_by_image(row, &header);
		set_by_callee(images, name, &header);
	}
	for (size_t i = 0; i < NR_FIELDS; i++) {
		size_t at = fields[i].offset;

		if (!(header.known & BIT(i)) || !memcmp((char *)&header.wanted + at, (const char *)found + at, fields[i].nr_bytes))
			continue;
		header.wrong |= BIT(i);
		header.identifies |= fields[i].identifies;
		if (header.fault)
			continue;
		header.fault = fields[i].fault;
		header.offset = at;
	}
	*ret_header = header;
}

bool opk_header_belongs(const struct op_dcookie_table *images, const struct op_sample_name *name, const struct op_odb_header *found,
			const struct opk_header *elsewhere)
{
	struct opk_header header;
	unsigned int identifying = 0;

	for (size_t i = 0; i < NR_FIELDS; i++)
		identifying |= fields[i].identifies ? BIT(i) : 0;
	opk_header_compare(images, name, found, &header);
	return !header.wrong && (header.known & elsewhere->wrong & identifying) != 0;
}
