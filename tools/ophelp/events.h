/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What ophelp lists: the events of a type of CPU, from its description files, or those of this host, from whoever knows of them. */
#ifndef OPR_HELP_EVENTS_H
#define OPR_HELP_EVENTS_H

#include "tools/events/description_files.h"

/* Where an event of this host is known from: name and heading. */
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
	uint64_t number;                 /* what stands for it in sample files, or its code */
	uint64_t minimum;                /* smallest count; 0: not known */
	uint32_t counters;               /* a bit for each; 0: all, or `ext` */
	char *ext;                       /* what counts it in the place of counters; NULL: they do */
	char *as;                        /* how --event of opcontrol(1) names it; NULL: not at all */
	const struct opr_event_row *row; /* of files, for its unit masks; NULL: it has none */
};

struct opr_help_events {
	char *cpu_type;   /* "x86-64/family10" */
	char *cpu_pretty; /* "AMD64 family10" */
	struct opr_event_files files;
	struct opr_help_event *events;
	size_t nr_events, capacity;
	bool is_host; /* they are those of this host, and so the kernel can be asked */
};

/* The events of a type of CPU, by name or number; name_only: its names alone, and no events. To be freed with opr_help_free in any case. 0 or -errno. */
int opr_help_read_type(struct opr_help_events *events, const char *cpu_type, bool name_only) OP_NONNULL OP_MUST_CHECK;

/* Those of this host. The same. */
int opr_help_read_host(struct opr_help_events *events, bool name_only) OP_NONNULL OP_MUST_CHECK;

/* For sources: adds a copy of an event; strings may be NULL where the structure allows it. 0 or -ENOMEM. */
int opr_help_add(struct opr_help_events *events, const struct opr_help_event *event) OP_NONNULL OP_MUST_CHECK;

/* For hosts: what each source knows. 0 or -ENOMEM; a source that is not there has nothing. */
int opr_help_add_pmus(struct opr_help_events *events, const char *devices_dir) OP_NONNULL OP_MUST_CHECK;
int opr_help_add_pfm(struct opr_help_events *events) OP_NONNULL OP_MUST_CHECK;
int opr_help_add_tracepoints(struct opr_help_events *events, const char *events_dir) OP_NONNULL OP_MUST_CHECK;

/* By name, as it is written before one that has other case; NULL: there is none. */
const struct opr_help_event *opr_help_find(const struct opr_help_events *events, const char *name) OP_NONNULL;

/*
 * The event that a specification NAME[:COUNT...] begins with; names may have colons. *spec is moved to what stands behind the name and its colon, NULL when nothing
 * does. NULL: there is none, and *spec stays.
 */
const struct opr_help_event *opr_help_take(const struct opr_help_events *events, char **spec) OP_NONNULL;

/* The value of an event's unit masks that has this name, of NULL the one that is the default by its name; NULL: there is none. */
const struct opr_mask_value *opr_help_mask(const struct opr_help_events *events, const struct opr_help_event *event,
					   const char *name) OP_NONNULL_ARGS(1, 2);

/* The unit mask that an event has when none is said. */
uint32_t opr_help_default_mask(const struct opr_help_events *events, const struct opr_help_event *event) OP_NONNULL;

/* Lists them: names that match one of the words, all when there are none. */
struct opr_words;
void opr_help_write_text(FILE *out, const struct opr_help_events *events, const struct opr_words *words) OP_NONNULL;
void opr_help_write_xml(FILE *out, const struct opr_help_events *events, const struct opr_words *words) OP_NONNULL;

struct opr_help_check {
	bool ignore_count;
	bool callgraph; /* counts must be 15 times what they need otherwise */
};

/*
 * Reads events as --event of opcontrol has them and writes what counts each: the number of a counter, or its `ext`: "timer", "software", "tracepoint", "ibs_fetch", "ibs_op". 0; -EINVAL when one
 * is not known, has a mask or count that it cannot have, is there twice, or has no counter left; -ENOMEM.
 */
int opr_help_check(FILE *out, const struct opr_help_events *events, const struct opr_words *specs,
		   const struct opr_help_check *check) OP_NONNULL OP_MUST_CHECK;

void opr_help_free(struct opr_help_events *events);

#endif
