/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers of symbols in an XML report: a symbol of an image has one, whoever used it, in the order in which the document first names it. */
#ifndef OPR_XML_INDEX_H
#define OPR_XML_INDEX_H

#include "tools/report/symbol_rows.h"

#define OPR_XML_NO_ID SIZE_MAX

struct opr_xml_index {
	const struct opr_symbol_report *report;
	size_t *groups;  /* by the order of a row: rows of one symbol have the same */
	size_t *ids;     /* by group: OPR_XML_NO_ID until it is named */
	size_t *details; /* by the order of a row: number of its first address */
	size_t nr_groups, nr_ids, nr_details;
};

/* Looks at all rows that the report ever had. To be freed with opr_xml_index_free in any case. 0 or -errno. */
int opr_xml_index_make(struct opr_xml_index *index, const struct opr_symbol_report *report) OP_NONNULL OP_MUST_CHECK;

/* The number of a row's symbol, given to it when it has none. */
size_t opr_xml_id(struct opr_xml_index *index, const struct opr_symbol_row *row) OP_NONNULL;

/* The number of a row's first address, given to it and those that follow when it has none. */
size_t opr_xml_first_detail(struct opr_xml_index *index, const struct opr_symbol_row *row) OP_NONNULL;

/* The number, or OPR_XML_NO_ID. */
size_t opr_xml_id_if_any(const struct opr_xml_index *index, const struct opr_symbol_row *row) OP_NONNULL;

void opr_xml_index_free(struct opr_xml_index *index);

#endif
