/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an object file has. A child process (tools/common/child.h) reads it. */
#ifndef OPR_OBJECT_LOOK_H
#define OPR_OBJECT_LOOK_H

#include "libop/base/build_id.h"

/* The best symbols that there are, in rising order. */
enum opr_object_symbols {
	OPR_OBJECT_NONE,
	OPR_OBJECT_RANGES,   /* functions without names */
	OPR_OBJECT_EXPORTED, /* dynamic symbols only */
	OPR_OBJECT_MINIMAL,  /* .gnu_debugdata */
	OPR_OBJECT_TABLE,
	OPR_OBJECT_DEBUG, /* debugging information */
	OPR_OBJECT_NR_SYMBOLS,
};

struct opr_object {
	bool is_object; /* false: no object file, or the child failed; nothing else is set */
	enum opr_object_symbols symbols, debug_symbols; /* its own; of its debug file */
	char build_id[OP_BUILD_ID_DIGITS];              /* "": none */
	uint64_t mtime;                                 /* of the file that was looked at */
	/* the separate debug file; NULL: not found, or not looked for */
	char *debug_file;
	uint64_t debug_device, debug_inode; /* of that file, which was opened */
	char *debug_link;                               /* the name in .gnu_debuglink; NULL: none */
	/* of the debugging information, in words; NULL: none known */
	char *damage;
};

/*
 * Reads the file at `path` into a zeroed structure. `name` is the path that the image had when it
 * was sampled, for debug files below `root` (NULL: /); NULL: no debug file is looked for.
 * `sources`: those that count as symbols (source_set.h). `probe`: looks up the lines of some
 * addresses to find damage. 0, also when it is no object file; -ENOMEM; -errno of fork(2). To be
 * freed with opr_object_free in any case.
 */
int opr_object_look(struct opr_object *object, const char *path, const char *name, const char *root, uint32_t sources, bool probe)
	OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

void opr_object_free(struct opr_object *object);

#endif
