/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The profile specification: which sample files a report is made of. Words are `tag:value` or names of images; doc/opreport.1 has the tags, the table in
 * spec.c is what it describes.
 */
#ifndef OPR_SPEC_H
#define OPR_SPEC_H

#include "libop/odb/mangle.h"
#include "tools/common/option_table.h"
#include "tools/common/words.h"

struct opr_spec {
	struct opr_words sessions; /* names or paths; {current} when nothing was said */
	bool sessions_given;       /* something was said */
	bool add_sessions;         /* the same file of two sessions is added up, and no error */
	struct opr_words session_exclude;
	struct opr_words image, image_exclude, lib_image;
	struct opr_words cgroup; /* paths or patterns; what lies below belongs to them */
	bool by_cgroup;		 /* an application and its images are the cgroup that they ran in */
	bool memory;             /* what the memory view kept, in the place of samples (libop/session/memory_view.h) */
	bool arcs;               /* callgraph files are wanted, too */
	struct opr_words event, count, unit_mask, cpu, tid, tgid; /* empty: all */
	struct opr_words archive;                                 /* a directory that oparchive made, or nothing */
	struct opr_words names;                                   /* words without a tag */
	struct opr_words seen;                                    /* every tagged word as it was written */
};

/* Reads the words into an empty spec, to be freed with opr_spec_free in any case. 0 or -errno. */
int opr_spec_parse(struct opr_spec *spec, const char *const words[], size_t nr_words) OP_NONNULL_ARGS(1) OP_MUST_CHECK;

/* For the completion of shells: the tags that are understood. */
opr_tag_fn opr_spec_tag;

/* True when a file of this name is part of the profile; app and image are the names that reports show (opr_image_name). */
bool opr_spec_match(const struct opr_spec *spec, const struct op_sample_name *name, const char *app, const char *image) OP_NONNULL;

/* True when samples of the cgroup with this path are part of the profile: it or one that it lies in is named or matched. */
bool opr_spec_match_cgroup(const struct opr_spec *spec, const char *path) OP_NONNULL;

void opr_spec_free(struct opr_spec *spec);

#endif
