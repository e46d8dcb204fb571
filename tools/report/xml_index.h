/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Numbers the symbols of an XML report: one number for each symbol of an image, in the order in
 * which the document names them first.
 */
#ifndef OPR_XML_INDEX_H
#define OPR_XML_INDEX_H

#include "tools/report/symbol_rows.h"

#define OPR_XML_NO_ID SIZE_MAX

struct opr_xml_index {
	const struct opr_symbol_report *report;
	size_t *groups;  /* by row->order: rows of one symbol are one group */
	size_t *ids;     /* by group: OPR_XML_NO_ID until the symbol is named */
	size_t *details; /* by row->order: the number of the first detail */
	size_t nr_groups, nr_ids, nr_details;
};

/*
 * Groups all rows of the report, also those that were dropped. Freed with opr_xml_index_free in any
 * case. 0 or -errno.
 */
int opr_xml_index_make(struct opr_xml_index *index, const struct opr_symbol_report *report) OP_NONNULL OP_MUST_CHECK;

/* The number of the symbol of a row; a symbol without one gets the next. */
size_t opr_xml_id(struct opr_xml_index *index, const struct opr_symbol_row *row) OP_NONNULL;

/* The number of the first detail of a row; details without numbers get the next ones. */
size_t opr_xml_first_detail(struct opr_xml_index *index, const struct opr_symbol_row *row) OP_NONNULL;

/* The number of the symbol of a row, or OPR_XML_NO_ID. */
size_t opr_xml_id_if_any(const struct opr_xml_index *index, const struct opr_symbol_row *row) OP_NONNULL;

void opr_xml_index_free(struct opr_xml_index *index);

#endif
