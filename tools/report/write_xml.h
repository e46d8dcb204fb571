/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes a symbol report as XML of oprofile's schema 3.1 (doc/opreport.xsd). */
#ifndef OPR_REPORT_XML_H
#define OPR_REPORT_XML_H

#include "tools/report/callgraph.h"
#include "tools/profile/classes.h"
#include "tools/report/writer.h"

struct opr_xml_attribute {
	const char *name, *value;
};

struct opr_xml_document {
	struct opr_origin origin;
	const struct opr_classes *classes;
	const struct opr_symbol_report *report; /* sorted by application, then image */
	const struct opr_callgraph *graph;      /* NULL: none */
	const char *title;                      /* the command line */
	const struct opr_xml_attribute *options;
	size_t nr_options;
	bool details, lines;
	struct opr_block_limits limits; /* of callers and callees */
};

/* Writes the document. 0 or -errno. */
int opr_report_xml(const struct opr_xml_document *document, FILE *out) OP_NONNULL OP_MUST_CHECK;

#endif
