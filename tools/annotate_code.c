/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>

#include "tools/annotate.h"
#include "tools/report_log.h"

#define KALLSYMS "/proc/kallsyms"
#define KCORE    "/proc/kcore"

static int open_kernel(const struct opr_annotate *annotate, const struct opr_image *image, struct opr_code_reader **ret_reader)
{
	int err = opr_code_open_core(KCORE, &image->symbols, annotate->options->params, ret_reader);

	if (!err || err == -ENOMEM)
		return err;
	opr_warn("the kernel's code cannot be read from " KCORE
		 " (%s): its symbols are left out. opd's --vmlinux names a file that has it.",
		 strerror(-err));
	return -ENOEXEC;
}

int opr_annotate_open_code(const struct opr_annotate *annotate, const struct opr_symbol_row *row,
			   struct opr_code_reader **ret_reader)
{
	struct opr_image *image = opr_image_cache_find(annotate->images, row->image);
	int err;

	if (!image)
		return -ENOMEM;
	if (!image->path)
		return -ENOEXEC;
	if (!image->is_object)
		return strcmp(image->name, KALLSYMS) ? -ENOEXEC : open_kernel(annotate, image, ret_reader);
	err = opr_code_open(image->path, &image->symbols, annotate->options->params, ret_reader);
	if (err && err != -ENOMEM) {
		opr_warn("the code of %s cannot be shown: %s", image->path, strerror(-err));
		err = -ENOEXEC;
	}
	return err == -ENOMEM ? opr_no_memory() : err;
}

/* An image without symbols is shown whole. */
int opr_annotate_list_code(const struct opr_symbol_row *row, struct opr_code_reader *reader, struct opr_code *code)
{
	uint64_t start = row->symbol ? row->vma : 0;
	uint64_t end = row->symbol && row->symbol->size < UINT64_MAX - start ? start + row->symbol->size : UINT64_MAX;
	int err;

	opr_code_clear(code);
	err = opr_code_list(reader, start, end, code);
	if (err && err != -ENOMEM) {
		opr_warn("the code of %s in %s cannot be shown: %s", row->name, row->image_shown, strerror(-err));
		opr_code_clear(code);
		err = 0;
	}
	return err ? opr_no_memory() : 0;
}

/* Details of an image without symbols are positions in the file. */
static uint64_t address_of(const struct opr_symbol_row *row, const struct opr_code_reader *reader, uint64_t vma)
{
	if (!row->symbol && !opr_code_address(reader, vma, &vma))
		return UINT64_MAX;
	return vma;
}

bool opr_annotate_sum(const struct opr_annotate *annotate, const struct opr_symbol_row *row, const struct opr_code_reader *reader,
		      uint64_t start, uint64_t end, size_t *detail, uint64_t *counts)
{
	const struct opr_symbol_report *report = annotate->report;
	bool any = false;

	memset(counts, 0, report->nr_classes * sizeof(*counts));
	for (; *detail < row->nr_details; ++*detail) {
		const struct opr_detail *next = &report->details[row->first_detail + *detail];
		uint64_t vma = address_of(row, reader, next->vma);

		if (vma >= end)
			break;
		for (size_t i = 0; i < report->nr_classes && vma >= start; i++) {
			counts[i] += report->detail_counts.values[next->counts + i];
			any |= counts[i] != 0;
		}
	}
	return any;
}
