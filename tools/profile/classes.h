/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Profile classes: the columns of a report. Files are of one class when they agree in event, count, unit mask, tgid, tid and cpu, those left out that are merged.
 */
#ifndef OPR_PROFILE_CLASSES_H
#define OPR_PROFILE_CLASSES_H

#include "libop/odb/odb.h"
#include "tools/profile/merge_option.h"
#include "tools/profile/profile.h"

enum opr_axis { OPR_AXIS_EVENT, OPR_AXIS_TGID, OPR_AXIS_TID, OPR_AXIS_CPU, OPR_NR_AXES };

struct opr_class {
	const char *event;
	uint64_t count;
	int64_t unit_mask; /* OP_CLASS_ALL when merged, like the next three */
	int64_t tgid, tid, cpu;
	uint32_t masks; /* of all files, when the unit mask is merged */
	const struct opr_file *first_file; /* in the order of paths; valid until the files are arranged */
	char *title;                       /* "TIMER:0", "tgid:12" */
	const char *unit;                  /* of the counts: "samples", of some events of IBS "cycles" or "misses" */
	char *description;                 /* "Samples on CPU 1"; of the event when that is what differs */
};

struct opr_classes {
	struct opr_class *classes;
	size_t nr_classes;
	bool any_axes;      /* set before the classes are found: they may differ in more than one way */
	enum opr_axis axis; /* in what the classes differ */
	char *cpu_line;     /* "CPU: ..." */
	struct op_odb_header header; /* of the first class's first file */
	char *event_line;   /* what was counted when the axis is not the event, else NULL */
};

/*
 * Finds the classes of the files and sets each file's class_index. Reads the header of each class's first file for the descriptions. To be freed with
 * opr_classes_free in any case. 0 or -errno; classes that differ in two ways are an error.
 */
int opr_classes_find(struct opr_classes *classes, struct opr_profile *profile,
		     const struct opr_merge *merge) OP_NONNULL OP_MUST_CHECK;

void opr_classes_free(struct opr_classes *classes);

#endif
