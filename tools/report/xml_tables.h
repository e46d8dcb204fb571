/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tables of an XML report: events, classes, symbols, and the addresses in them. */
#ifndef OPR_XML_TABLES_H
#define OPR_XML_TABLES_H

#include "tools/profile/classes.h"
#include "tools/report/symbol_rows.h"

/*
 * Profile classes without process and thread. Counts name a class when there are several CPUs or
 * events, or a unit mask.
 */
struct opr_xml_classes {
	const struct opr_classes *classes;
	size_t *names;  /* by class: the N of "cN" */
	size_t *events; /* by class: the number of the event */
	size_t nr_names, nr_events;
	bool by_thread; /* samples are separated by process */
	bool by_cpu, has_masks, named;
};

/* Freed with opr_xml_classes_free in any case. 0 or -errno. */
int opr_xml_classes_make(struct opr_xml_classes *xml, const struct opr_classes *classes) OP_NONNULL OP_MUST_CHECK;
void opr_xml_classes_free(struct opr_xml_classes *xml);

/* The highest CPU number plus one; 0: samples are not separated by CPU. */
uint64_t opr_xml_nr_cpus(const struct opr_xml_classes *xml) OP_NONNULL;

void opr_xml_write_events(const struct opr_xml_classes *xml, FILE *out) OP_NONNULL;

/* Writes <classes>, when counts name classes. */
void opr_xml_write_classes(const struct opr_xml_classes *xml, FILE *out) OP_NONNULL;

/* Writes <count>. */
void opr_xml_write_count(const struct opr_xml_classes *xml, FILE *out, size_t class_index, uint64_t count) OP_NONNULL;

/*
 * Numbers the symbols of an XML report: one number for each symbol of an image, in the order in
 * which the document names them first.
 */
struct opr_xml_index {
	const struct opr_symbol_report *report;
	size_t *groups;  /* by row->order: rows of one symbol are one group */
	size_t *ids;     /* by group: SIZE_MAX until the symbol is named */
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

void opr_xml_index_free(struct opr_xml_index *index);

struct opr_xml_tables {
	const struct opr_symbol_report *report;
	const struct opr_xml_classes *classes;
	struct opr_xml_index *index;
	bool details, lines;
};

/* Writes <symboltable>: the symbols that have a number. */
void opr_xml_write_symbols(const struct opr_xml_tables *tables, FILE *out) OP_NONNULL;

/* Writes <detailtable> and <bytestable>. 0 or -errno. */
int opr_xml_write_details(const struct opr_xml_tables *tables, FILE *out) OP_NONNULL OP_MUST_CHECK;

#endif
