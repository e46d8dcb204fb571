/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The source lines of some addresses of an image, and the inlined functions that they are in. A
 * child process looks them up (lines.h).
 */
#ifndef OPR_LINE_TABLE_H
#define OPR_LINE_TABLE_H

#include "tools/elf/demangle.h"

struct opr_line_row {
	uint64_t vma;
	uint32_t file;  /* offset in the strings */
	uint32_t line;  /* 0: not known */
	uint32_t frame; /* 1 + index in the frames; 0: in no inlined function */
	uint32_t spare; /* 0 */
};

/* An inlined function in its place. Equal frames of a table are one. */
struct opr_frame {
	const char *name, *shown; /* as the debugging information has it; for reports */
	const char *file;         /* of the call that was inlined; "": not known */
	unsigned int line;        /* of that call; 0: not known */
	/* the inlined function that has this call in it; NULL: the symbol has it */
	const struct opr_frame *outer;
};

struct opr_line_table {
	struct opr_line_row *rows; /* sorted by address; unknown addresses have none */
	size_t nr_rows;
	struct opr_frame *frames;
	size_t nr_frames;
	char *strings;
	bool has_debug_info; /* the image or its debug file has it */
	/* what is wrong with it, and in which file; NULL: nothing is known to be wrong */
	const char *damage, *damaged;
};

struct opr_line_search {
	const char *path, *name, *root; /* those of struct opr_debug_search */
	const struct opr_file_read *file; /* that of opr_lines_open */
	bool with_frames;               /* else there are no frames */
	enum opr_demangle demangle;     /* of their names */
};

/* The lookup of the addresses of one image, in its file or its debug file. */
struct opr_line_job {
	struct opr_line_search search;
	uint64_t *vmas; /* are sorted */
	size_t nr_vmas;
	/* the results: freed with opr_line_table_free, NULL after an error; for opr_child_reason */
	struct opr_line_table *table;
	int err;
	bool done;
};

/* Does all jobs, several at a time, and shows its progress. 0 with the results, or -errno. */
int opr_line_tables_make(struct opr_line_job *jobs, size_t nr_jobs) OP_MUST_CHECK;

/* False: the line is not known. *ret_file is valid as long as the table. */
bool opr_line_table_find(const struct opr_line_table *table, uint64_t vma, const char **ret_file,
			 unsigned int *ret_line) OP_NONNULL;

/* The innermost inlined function at an address. NULL: there is none, or it is not known. */
const struct opr_frame *opr_line_table_frame(const struct opr_line_table *table, uint64_t vma) OP_NONNULL;

void opr_line_table_free(struct opr_line_table *table);

#endif
