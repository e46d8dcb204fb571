/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Profile classes, the columns of a report. Files of one class agree in event, count, unit mask,
 * tgid, tid and CPU, except for those that --merge merges.
 */
#ifndef OPR_PROFILE_CLASSES_H
#define OPR_PROFILE_CLASSES_H

#include "libop/odb/format.h"
#include "tools/common/words.h"
#include "tools/profile/profile.h"

/* Classes that differ only in these are one class; lib: an image is its own application. */
struct opr_merge {
	bool cpu, lib, tid, tgid, unit_mask;
	bool is_chosen; /* the user named cpu, tid, tgid or all */
};

/* Which axes opr_classes_find may merge unasked. */
struct opr_may_merge {
	bool threads;         /* threads, and processes unless the user chose some */
	bool cpus;            /* CPUs, too, if columns would differ in several ways */
	bool chose_processes; /* the user named some: tgid: */
	bool chose_threads;   /* tid: their processes need no columns */
};

struct opr_merge_option {
	struct opr_words words; /* freed by the tool */
	struct opr_merge merge; /* what the words say */
};

enum opr_axis { OPR_AXIS_EVENT, OPR_AXIS_TGID, OPR_AXIS_TID, OPR_AXIS_CPU, OPR_NR_AXES };

struct opr_class {
	const char *event;
	uint64_t count;
	int64_t unit_mask; /* OP_CLASS_ALL when merged; also tgid, tid, cpu */
	int64_t tgid, tid, cpu;
	uint32_t masks; /* of all files or-ed, when the unit mask is merged */
	const struct opr_file *first_file; /* by path; valid until the files are arranged */
	char *title; /* "TIMER:0", "tgid:12" */
	const char *unit; /* "samples"; for some IBS events "cycles" or "misses" */
	char *description; /* "Samples on CPU 1"; of the event when classes differ by event */
};

struct opr_classes {
	struct opr_class *classes;
	size_t nr_classes;
	bool any_axes;               /* set by the caller: classes may differ in several ways */
	struct opr_may_merge may;    /* set by the caller */
	enum opr_axis axis;          /* how the classes differ */
	char *cpu_line;              /* "CPU: ..." */
	struct op_odb_header header; /* of the first file of the first class */
	char *event_line;            /* describes the event; NULL when classes differ by event */
};

/*
 * Finds the classes of the files and sets the class_index of each file. The headers of files give
 * the descriptions. Freed with opr_classes_free in any case. 0 or -errno. Classes that differ in
 * two ways are merged as far as `may` allows, with a note to the user; else they are an error,
 * unless any_axes is set.
 */
int opr_classes_find(struct opr_classes *classes, struct opr_profile *profile,
		     const struct opr_merge *merge) OP_NONNULL OP_MUST_CHECK;

void opr_classes_free(struct opr_classes *classes);

/* Takes --merge (tools/common/option_table.h); `field` is a struct opr_merge_option. */
int opr_take_merge(void *field, const char *value);

#endif
