/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an object file says of itself. Asked in a process of its own (tools/common/child.h): whoever made the file may have made it for libbfd to fail. */
#ifndef OPR_OBJECT_LOOK_H
#define OPR_OBJECT_LOOK_H

#include "libop/session/dcookie.h"

/* Which symbols there are, the better the greater. */
enum opr_object_symbols {
	OPR_OBJECT_NONE,
	OPR_OBJECT_EXPORTED, /* dynamic ones alone */
	OPR_OBJECT_TABLE,
	OPR_OBJECT_DEBUG, /* debugging information */
	OPR_OBJECT_NR_SYMBOLS,
};

struct opr_object {
	bool is_object;                                 /* false: it is none, or whoever looked did not come to an end */
	enum opr_object_symbols symbols, debug_symbols; /* its own; of its debug file */
	char build_id[OP_BUILD_ID_DIGITS];   /* "": none */
	char *debug_file;                               /* the separate debug file that there is; NULL: none */
	char *debug_link;                               /* the name of such a file that the object says; NULL: none */
	char *damage;                                   /* what is wrong with its debugging information, or its debug file's; NULL: nothing that was seen, or looked for */
};

/*
 * Looks at the file at `path`. `name`: the image's own name, for debug files below /usr/lib/debug of `root` (NULL: none); without a name (NULL) no debug file is looked for.
 * To be freed with opr_object_free in any case. 0, -ENOMEM, or -errno of fork(2).
 */
int opr_object_look(struct opr_object *object, const char *path, const char *name, const char *root)
	OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/* The same, and looks for the lines of some addresses: what is wrong then is the damage. */
int opr_object_look_closely(struct opr_object *object, const char *path, const char *name, const char *root)
	OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

void opr_object_free(struct opr_object *object);

#endif
