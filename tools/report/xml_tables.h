/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tables of an XML report: events, classes, symbols, and the addresses in them. */
#ifndef OPR_XML_TABLES_H
#define OPR_XML_TABLES_H

#include "tools/profile/classes.h"
#include "tools/report/call_block.h"

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

/* Which classes an element counts: all, those of a process, or those of a thread. */
struct opr_xml_scope {
	const struct opr_class *of; /* a class of the process or thread; NULL: all classes */
	bool one_thread;
};

bool opr_xml_counts(const struct opr_xml_scope *scope, const struct opr_class *class) OP_NONNULL;

/* The details that a <symbol> refers to. */
struct opr_xml_details {
	size_t id;    /* of the symbol */
	size_t first; /* the number of the first detail, among all details of the symbol */
	size_t nr_details;
	const struct opr_symbol_row *row;
	struct opr_xml_scope scope;
};

/*
 * Numbers the symbols of an XML report: one number for each symbol of an image, in the order in
 * which the document names them first. The details of each symbol have numbers of their own.
 */
struct opr_xml_index {
	const struct opr_symbol_report *report;
	const struct opr_classes *classes;
	size_t *groups; /* by row->order: rows of one symbol are one group */
	size_t *ids;    /* by group: SIZE_MAX until the symbol is named */
	size_t *next;   /* by group: the number of its next detail */
	size_t nr_groups, nr_ids;
	struct opr_xml_details *details; /* in the order of the <symbol>s */
	size_t nr_details, capacity;
};

/*
 * Groups all rows of the report, also those that were dropped. Freed with opr_xml_index_free in any
 * case. 0 or -errno.
 */
int opr_xml_index_make(struct opr_xml_index *index, const struct opr_symbol_report *report,
		       const struct opr_classes *classes) OP_NONNULL OP_MUST_CHECK;

/* The number of the symbol of a row; a symbol without one gets the next. */
size_t opr_xml_id(struct opr_xml_index *index, const struct opr_symbol_row *row) OP_NONNULL;

/*
 * Numbers the details of a row that have samples in the scope: one for each address and class. They
 * continue those of the same symbol. 0, without details, too; -errno.
 */
int opr_xml_number_details(struct opr_xml_index *index, const struct opr_symbol_row *row, const struct opr_xml_scope *scope,
			   size_t *ret_first, size_t *ret_nr_details) OP_NONNULL OP_MUST_CHECK;

void opr_xml_index_free(struct opr_xml_index *index);

struct opr_xml_tables {
	const struct opr_symbol_report *report;
	const struct opr_xml_classes *classes;
	struct opr_xml_index *index;
	const struct opr_callgraph *graph; /* NULL: without calls */
	const struct opr_block_limits *limits; /* of callers and callees */
	bool lines;
};

/*
 * Writes <symboltable>: the symbols that have a number, in the order of the rows, each followed by
 * its callers and callees. 0 or -errno.
 */
int opr_xml_write_symbols(const struct opr_xml_tables *tables, FILE *out) OP_NONNULL OP_MUST_CHECK;

/* Writes <detailtable> and <bytestable>. 0 or -errno. */
int opr_xml_write_details(const struct opr_xml_tables *tables, FILE *out) OP_NONNULL OP_MUST_CHECK;

#endif
