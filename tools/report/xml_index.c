/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/xml_index.h"

#include <errno.h>

#include "tools/common/log.h"

static int compare_rows(const struct opr_symbol_row *a, const struct opr_symbol_row *b)
{
	int order = strcmp(a->image, b->image);

	if (!order && a->symbol != b->symbol)
		order = (uintptr_t)a->symbol < (uintptr_t)b->symbol ? -1 : 1;
	return order;
}

static int compare_pointers(const void *left, const void *right)
{
	return compare_rows(*(struct opr_symbol_row *const *)left, *(struct opr_symbol_row *const *)right);
}

static void number_groups(struct opr_xml_index *index, const struct opr_symbol_row **rows)
{
	size_t nr_rows = index->report->nr_made;

	for (size_t i = 0; i < nr_rows; i++) {
		rows[i] = &index->report->rows[i];
		index->details[i] = OPR_XML_NO_ID;
	}
	qsort(rows, nr_rows, sizeof(*rows), compare_pointers);
	for (size_t i = 0; i < nr_rows; i++) {
		if (!i || compare_rows(rows[i - 1], rows[i]))
			index->ids[index->nr_groups++] = OPR_XML_NO_ID;
		index->groups[rows[i]->order] = index->nr_groups - 1;
	}
}

int opr_xml_index_make(struct opr_xml_index *index, const struct opr_symbol_report *report)
{
	const struct opr_symbol_row **rows = calloc(report->nr_made + 1, sizeof(*rows));

	index->report = report;
	index->groups = calloc(report->nr_made + 1, sizeof(*index->groups));
	index->ids = calloc(report->nr_made + 1, sizeof(*index->ids));
	index->details = calloc(report->nr_made + 1, sizeof(*index->details));
	if (rows && index->groups && index->ids && index->details)
		number_groups(index, rows);
	free(rows);
	return index->groups && index->ids && index->details && rows ? 0 : opr_no_memory();
}

size_t opr_xml_id(struct opr_xml_index *index, const struct opr_symbol_row *row)
{
	size_t *id = &index->ids[index->groups[row->order]];

	if (*id == OPR_XML_NO_ID)
		*id = index->nr_ids++;
	return *id;
}

size_t opr_xml_first_detail(struct opr_xml_index *index, const struct opr_symbol_row *row)
{
	size_t *first = &index->details[row->order];

	if (*first == OPR_XML_NO_ID) {
		*first = index->nr_details;
		index->nr_details += row->nr_details;
	}
	return *first;
}

size_t opr_xml_id_if_any(const struct opr_xml_index *index, const struct opr_symbol_row *row)
{
	return index->ids[index->groups[row->order]];
}

void opr_xml_index_free(struct opr_xml_index *index)
{
	free(index->groups);
	free(index->ids);
	free(index->details);
	*index = (struct opr_xml_index){ 0 };
}
