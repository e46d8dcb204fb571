/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tables of an XML report: events, classes, symbols, and the addresses in them. */
#ifndef OPR_XML_TABLES_H
#define OPR_XML_TABLES_H

#include "tools/profile/classes.h"
#include "tools/report/xml_index.h"

/* Classes without their threads: counts name them when there is more than one CPU or event, or a unit mask. */
struct opr_xml_classes {
	const struct opr_classes *classes;
	size_t *names;  /* by class: the N of "cN" */
	size_t *events; /* by class: number of the event */
	size_t nr_names, nr_events;
	bool by_thread; /* samples are separated by process */
	bool by_cpu, has_masks, named;
};

/* To be freed with opr_xml_classes_free in any case. 0 or -errno. */
int opr_xml_classes_make(struct opr_xml_classes *xml, const struct opr_classes *classes) OP_NONNULL OP_MUST_CHECK;
void opr_xml_classes_free(struct opr_xml_classes *xml);

/* The greatest number of a CPU and one more; 0: samples are not separated by CPU. */
uint64_t opr_xml_nr_cpus(const struct opr_xml_classes *xml) OP_NONNULL;

void opr_xml_write_events(const struct opr_xml_classes *xml, FILE *out) OP_NONNULL;

/* <classes>, when counts name them. */
void opr_xml_write_classes(const struct opr_xml_classes *xml, FILE *out) OP_NONNULL;

/* <count> */
void opr_xml_write_count(const struct opr_xml_classes *xml, FILE *out, size_t class_index, uint64_t count) OP_NONNULL;

struct opr_xml_tables {
	const struct opr_symbol_report *report;
	const struct opr_xml_classes *classes;
	struct opr_xml_index *index;
	bool details, lines;
};

/* <symboltable>: the symbols that have a number. */
void opr_xml_write_symbols(const struct opr_xml_tables *tables, FILE *out) OP_NONNULL;

/* <detailtable> and <bytestable>. 0 or -errno. */
int opr_xml_write_details(const struct opr_xml_tables *tables, FILE *out) OP_NONNULL OP_MUST_CHECK;

#endif
