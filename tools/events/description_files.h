/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * oprofile's descriptions of events: DIRECTORY/<cpu name>/events and unit_masks. The directory is that of OPROFILE_EVENTS_DIR, else opd's own, else
 * oprofile's. Source: oprofile-format, "Event description files"; opreport(1), FILES.
 */
#ifndef OPR_EVENT_FILES_H
#define OPR_EVENT_FILES_H

#include "libop/base/compiler.h"

#define OPR_EVENTS_DIR_ENV "OPROFILE_EVENTS_DIR"

struct opr_mask_value {
	uint32_t value;
	uint32_t
		extra; /* what else of the counter's register goes with the name, as perf_event_attr.config has it, the mask too; 0: nothing is said */
	char *name; /* NULL: it has none */
	char *description;
};

enum opr_mask_type { OPR_MASK_BITMASK, OPR_MASK_EXCLUSIVE, OPR_MASK_MANDATORY };

struct opr_mask_set {
	char *name;
	enum opr_mask_type type;
	uint32_t default_value;
	char *default_name; /* of the value that is the default; NULL: it is said as a number */
	struct opr_mask_value *values;
	size_t nr_values;
};

struct opr_event_row {
	uint32_t number;
	char *name, *description;
	char *masks;       /* names of sets, separated by commas; "": none */
	char *ext;         /* what counts it in the place of counters ("ibs_op"); NULL: counters do */
	uint32_t counters; /* a bit for each that can; 0: all, or ext */
	uint32_t minimum;  /* smallest count */
};

struct opr_event_files {
	struct opr_event_row *events;
	size_t nr_events, events_capacity;
	struct opr_mask_set *sets;
	size_t nr_sets, sets_capacity;
};

/*
 * Reads the files of a CPU ("x86-64/family10"). To be freed with opr_event_files_free in any case. 0; -ENOENT, and nothing is said: there are none;
 * another -errno, of which the user has been told: a file cannot be read, or does not keep to the form.
 */
int opr_event_files_read(struct opr_event_files *files, const char *cpu_name) OP_NONNULL OP_MUST_CHECK;

/* The event of a number that has the unit mask, else the first of the number; NULL: none has it. */
const struct opr_event_row *opr_event_find(const struct opr_event_files *files, uint32_t number, uint32_t mask) OP_NONNULL;

/* The set with this index of those that an event names, from 0; NULL after the last. */
const struct opr_mask_set *opr_event_set(const struct opr_event_files *files, const struct opr_event_row *event,
					 size_t index) OP_NONNULL;

/* What a unit mask of an event means; NULL: it is no single value of its sets. */
const char *opr_event_mask(const struct opr_event_files *files, const struct opr_event_row *event, uint32_t mask) OP_NONNULL;

void opr_event_files_free(struct opr_event_files *files);

#endif
