/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The events that ophelp lists, of a type of CPU or of this host. */
#ifndef OPR_HELP_EVENTS_H
#define OPR_HELP_EVENTS_H

#include "tools/common/words.h"
#include "tools/events/description_files.h"

/* The sources of events of this host: name and heading. */
#define OPR_HELP_SOURCES(X)                                                                                                        \
	X(opd, "Events that opd has names for")                                                                                    \
	X(ibs, "Events of AMD's instruction-based sampling")                                                                       \
	X(pmu, "Events that the kernel names for its PMUs")                                                                        \
	X(pfm, "Events that libpfm4 knows of this CPU")                                                                            \
	X(tracepoint, "Tracepoints")

enum opr_help_source {
#define X(name, heading) OPR_HELP_##name,
	OPR_HELP_SOURCES(X)
#undef X
		OPR_NR_HELP_SOURCES,
	OPR_HELP_FILES = OPR_NR_HELP_SOURCES, /* the description files of a type of CPU */
};

struct opr_help_event {
	char *name, *description;
	enum opr_help_source source;
	uint64_t number;                 /* its number in sample files, or its code */
	uint64_t minimum;                /* smallest count; 0: not known */
	/* a bit for each counter that can count it; 0: all, or `ext` */
	uint32_t counters;
	char *ext;                       /* what counts it instead of counters; NULL: counters do */
	char *as;                        /* its name for --event of opcontrol(1); NULL: none */
	const struct opr_event_row *row; /* of files, for its unit masks; NULL: no row */
};

struct opr_help_events {
	char *cpu_type;   /* "x86-64/family10" */
	char *cpu_pretty; /* "AMD64 family10" */
	struct opr_event_files files;
	struct opr_help_event *events;
	size_t nr_events, capacity;
	bool is_host; /* of this host: the kernel can be asked about them */
};

/*
 * Reads the events of a type of CPU, by name or number; name_only: the names of the type alone.
 * Freed with opr_help_free in any case. 0 or -errno.
 */
int opr_help_read_type(struct opr_help_events *events, const char *cpu_type, bool name_only) OP_NONNULL OP_MUST_CHECK;

/* The same for this host (host.c). */
int opr_help_read_host(struct opr_help_events *events, bool name_only) OP_NONNULL OP_MUST_CHECK;

/* For sources: adds an event, or sets the names of the type, as copies. 0 or -ENOMEM. */
int opr_help_add(struct opr_help_events *events, const struct opr_help_event *event) OP_NONNULL OP_MUST_CHECK;
int opr_help_set_type(struct opr_help_events *events, const char *name, const char *pretty) OP_NONNULL_ARGS(1) OP_MUST_CHECK;

/* Adds the events that libpfm4 knows (pfm.c). 0 or -ENOMEM. */
int opr_help_add_pfm(struct opr_help_events *events) OP_NONNULL OP_MUST_CHECK;

/* Finds an event by name; without one in the same case, in another case. NULL: none. */
const struct opr_help_event *opr_help_find(const struct opr_help_events *events, const char *name) OP_NONNULL;

/* Reports that there is no event of that name, and which one comes near. -EINVAL. */
int opr_help_refuse(const struct opr_help_events *events, const char *name) OP_NONNULL;

/*
 * Finds the event of a specification NAME[:COUNT...]; names may contain colons. Moves *spec behind
 * the colon after the name, or to NULL when nothing follows. NULL: none, and *spec is unchanged.
 */
const struct opr_help_event *opr_help_take(const struct opr_help_events *events, char **spec) OP_NONNULL;

/* Finds a unit mask by name; NULL: the default, if the files name it. NULL: none. */
const struct opr_mask_value *opr_help_mask(const struct opr_help_events *events, const struct opr_help_event *event,
					   const char *name) OP_NONNULL_ARGS(1, 2);

/* The unit mask of an event when the user gives none. */
uint32_t opr_help_default_mask(const struct opr_help_events *events, const struct opr_help_event *event) OP_NONNULL;

/* Lists the events whose names match one of the words, or all without words (write.c). */
void opr_help_write_text(FILE *out, const struct opr_help_events *events, const struct opr_words *words) OP_NONNULL;
void opr_help_write_xml(FILE *out, const struct opr_help_events *events, const struct opr_words *words) OP_NONNULL;

struct opr_help_check {
	bool ignore_count;
	bool callgraph; /* counts must be 15 times the minimum */
};

/*
 * Reads specifications as --event of opcontrol takes them and writes what counts each
 * (check_events.c): the number of a counter, or the event's `ext`. 0; -EINVAL: one is unknown, has
 * a wrong mask or count, is given twice, or has no counter left; -ENOMEM.
 */
int opr_help_check(FILE *out, const struct opr_help_events *events, const struct opr_words *specs,
		   const struct opr_help_check *check) OP_NONNULL OP_MUST_CHECK;

void opr_help_free(struct opr_help_events *events);

#endif
