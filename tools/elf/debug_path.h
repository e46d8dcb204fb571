/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the separate debug file of an image may be. Source: gdb(1), Separate Debug Files. */
#ifndef OPR_DEBUG_PATH_H
#define OPR_DEBUG_PATH_H

#include "libop/base/text.h"

/* In the order in which they are tried; three of them need a .gnu_debuglink. */
enum opr_debug_place {
	OPR_DEBUG_BY_BUILD_ID, /* ROOT/usr/lib/debug/.build-id/01/23456789.debug */
	OPR_DEBUG_IN_SUBDIR,   /* in .debug/ beside the image */
	OPR_DEBUG_IN_MIRROR,   /* below ROOT/usr/lib/debug at the path of the image */
	OPR_DEBUG_BESIDE,      /* beside the image */
	OPR_DEBUG_DOWNLOADED,  /* from a server, by build-id (tools/fetch/debuginfod.h) */
	OPR_DEBUG_NR_PLACES,
};

struct opr_debug_search {
	const char *path;     /* where the image is */
	const char *name;     /* the path that the image had when it was sampled */
	const char *root;     /* NULL: none */
	const char *build_id; /* hexadecimal digits; NULL: none */
	const char *link;     /* the name in .gnu_debuglink; NULL: none */
};

/*
 * Replaces the contents of `ret_path` with the path of a place. False: the image has no debug file
 * there by its build-id or link, or memory is out (ret_path->failed). Whether the file exists is
 * not checked.
 */
bool opr_debug_path(const struct opr_debug_search *search, enum opr_debug_place place, struct op_text *ret_path) OP_NONNULL;

/* True for a path of the place OPR_DEBUG_DOWNLOADED, also when downloaded files are not used. */
bool opr_debug_is_downloaded(const char *path, const char *build_id) OP_NONNULL;

#endif
