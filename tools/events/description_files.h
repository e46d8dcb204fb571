/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * oprofile's descriptions of events: DIRECTORY/<cpu name>/events and unit_masks. The directory is
 * OPROFILE_EVENTS_DIR, else opd's own, else oprofile's. Source: oprofile-format, "Event description
 * files"; opreport(1), FILES.
 */
#ifndef OPR_EVENT_FILES_H
#define OPR_EVENT_FILES_H

#include "libop/base/compiler.h"

#define OPR_EVENTS_DIR_ENV "OPROFILE_EVENTS_DIR"

struct opr_mask_value {
	uint32_t value;
	/* the bits of perf_event_attr.config that the name stands for, with the mask; 0: none */
	uint32_t extra;
	char *name;     /* NULL: none */
	char *description;
};

enum opr_mask_type { OPR_MASK_BITMASK, OPR_MASK_EXCLUSIVE, OPR_MASK_MANDATORY };

struct opr_mask_set {
	char *name;
	enum opr_mask_type type;
	uint32_t default_value;
	char *default_name; /* of the default value; NULL: the file gives its number */
	struct opr_mask_value *values;
	size_t nr_values, capacity;
};

struct opr_event_row {
	uint32_t number;
	char *name, *description;
	char *masks;       /* names of sets, separated by commas; "": none */
	char *ext;         /* what counts it instead of counters ("ibs_op"); NULL: counters do */
	uint32_t counters; /* a bit for each counter that can count it; 0: all, or ext */
	uint32_t minimum;  /* smallest count */
};

struct opr_event_files {
	struct opr_event_row *events;
	size_t nr_events, events_capacity;
	struct opr_mask_set *sets;
	size_t nr_sets, sets_capacity;
};

/*
 * Reads the files of a CPU ("x86-64/family10"). Freed with opr_event_files_free in any case. 0;
 * -ENOENT without a message: there are none; another -errno after a message: a file cannot be read
 * or is damaged.
 */
int opr_event_files_read(struct opr_event_files *files, const char *cpu_name) OP_NONNULL OP_MUST_CHECK;

/* The event with this number and unit mask, else the first one with this number; NULL: none. */
const struct opr_event_row *opr_event_find(const struct opr_event_files *files, uint32_t number, uint32_t mask) OP_NONNULL;

/* One of the sets that an event names, by its index from 0; NULL after the last one. */
const struct opr_mask_set *opr_event_set(const struct opr_event_files *files, const struct opr_event_row *event,
					 size_t index) OP_NONNULL;

/* The description of a unit mask of an event; NULL: it is no single value of its sets. */
const char *opr_event_mask(const struct opr_event_files *files, const struct opr_event_row *event, uint32_t mask) OP_NONNULL;

void opr_event_files_free(struct opr_event_files *files);

#endif
