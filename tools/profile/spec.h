/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The profile specification: which sample files a report is made of. Its words are `tag:value` or
 * names of images. doc/opreport.1 describes the table of tags in spec.c.
 */
#ifndef OPR_SPEC_H
#define OPR_SPEC_H

#include "libop/odb/mangle.h"
#include "tools/common/option_table.h"
#include "libop/base/text.h"
#include "tools/common/words.h"

struct opr_spec {
	struct opr_words sessions; /* names or paths; {current} when there is no session: */
	bool sessions_given;       /* there is a session: */
	bool add_sessions;         /* the same file of two sessions is added up, else an error */
	struct opr_words session_exclude;
	struct opr_words image, image_exclude, lib_image;
	struct opr_words cgroup; /* paths or patterns; cgroups below them match, too */
	bool by_cgroup; /* the report is by cgroup, not by image */
	bool or_stacks; /* no sample files by cgroup, but stacks: -ENODATA without a message */
	bool optional; /* no such cgroup, and no sample files, are no error */
	bool memory; /* the memory view instead of samples (libop/session/memory_view.h) */
	bool arcs; /* callgraph files, too */
	struct opr_words event, count, unit_mask, cpu, tid, tgid; /* empty: all */
	struct opr_words archive; /* directories of archives; empty: none */
	struct opr_words names; /* words without a tag */
	struct opr_words seen; /* every word with a tag */
};

/* Parses words into an empty spec. Freed with opr_spec_free in any case. 0 or -errno. */
int opr_spec_parse(struct opr_spec *spec, const char *const words[], size_t nr_words) OP_NONNULL_ARGS(1) OP_MUST_CHECK;

/* Lists the tags, for the completion of shells. */
opr_tag_fn opr_spec_tag;

/*
 * For the file of an option: 0, or -EINVAL after a message if it looks like a word with a tag, as
 * in "--html session:monday", where the file was forgotten.
 */
int opr_spec_check_file(const char *option, const char *file) OP_NONNULL OP_MUST_CHECK;

/* For a word that matches nothing: adds "; did you mean 'session'?" if it looks like a tag. */
void opr_spec_suggest_tag(const char *word, struct op_text *text) OP_NONNULL;

/* Whether an image matches a list of names: by its path, or by the path of an image told apart. */
bool opr_spec_match_name(const struct opr_words *words, const char *name) OP_NONNULL;

/* Whether a sample file is selected by its event, thread and CPU. */
bool opr_spec_match(const struct opr_spec *spec, const struct op_sample_name *name) OP_NONNULL;

/*
 * The rule of all reports: whether a sample in `image` of the application `app` is selected. Of a
 * program, `application` is the application; else it is NULL.
 */
bool opr_spec_match_images(const struct opr_spec *spec, const char *app, const char *application, const char *image)
	OP_NONNULL_ARGS(1, 2, 4);

/* Whether words of the specification are about images. */
static inline bool opr_spec_has_images(const struct opr_spec *spec)
{
	return spec->names.nr_words + spec->image.nr_words + spec->lib_image.nr_words + spec->image_exclude.nr_words;
}

/* Whether the words of a list have a number, or "all", or are none. */
bool opr_spec_match_number(const struct opr_words *words, uint64_t number) OP_NONNULL;

/* Whether the words of a list have a word, or "all", or are none. */
bool opr_spec_match_word(const struct opr_words *words, const char *word) OP_NONNULL;

/* Whether a cgroup is selected: a word matches it or a cgroup above it. */
bool opr_spec_match_cgroup(const struct opr_spec *spec, const char *path) OP_NONNULL;

void opr_spec_free(struct opr_spec *spec);

struct opr_spec_words {
	/* words outside of the blocks belong to both; without blocks all are in the first */
	struct opr_words sides[2];
	bool differential; /* there are two blocks */
};

/*
 * Splits the words of a command line at { and }. Freed with opr_spec_words_free in any case. 0 or
 * -errno.
 */
int opr_spec_words_split(struct opr_spec_words *words, const struct opr_words *all) OP_NONNULL OP_MUST_CHECK;

void opr_spec_words_free(struct opr_spec_words *words);

#endif
