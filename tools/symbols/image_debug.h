/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whether there are symbols for an image, and which debug file has them or would. */
#ifndef OPR_IMAGE_DEBUG_H
#define OPR_IMAGE_DEBUG_H

#include "libop/session/dcookie.h"
#include "tools/symbols/image_path.h"

enum opr_symbol_state {
	OPR_SYMBOLS_NO_FILE,   /* a region or a pseudo-image: there is nothing to look for */
	OPR_SYMBOLS_NOT_FOUND, /* the image is not where it was */
	OPR_SYMBOLS_UNREADABLE,
	OPR_SYMBOLS_REPLACED, /* another file is where it was */
	OPR_SYMBOLS_NOT_OBJECT,
	OPR_SYMBOLS_HIDDEN,   /* of the kernel */
	OPR_SYMBOLS_NONE,
	OPR_SYMBOLS_EXPORTED, /* dynamic symbols alone, which reports do not use */
	OPR_SYMBOLS_TABLE,    /* all symbols, no lines */
	OPR_SYMBOLS_DEBUG,    /* debugging information */
	OPR_SYMBOLS_DAMAGED,  /* the same, but not all of it can be read; the user has been told why */
};

struct opr_debug {
	enum opr_symbol_state state;
	char build_id[OP_BUILD_ID_DIGITS]; /* "": none, or not known */
	char *path;				      /* where the image is; NULL: not there, or not the one */
	char *debug_file; /* the separate debug file that is used, or one that would help; NULL: none, or no build-id to tell it by */
};

/* The word for a state in reports. */
const char *opr_symbol_state_word(enum opr_symbol_state state);

/*
 * Looks for the file of an image called `name` (opr_image_name), which `row` describes (NULL: no table), and for its symbols. To be freed with
 * opr_debug_free in any case. 0 or -ENOMEM.
 */
int opr_debug_look(struct opr_debug *debug, struct opr_finder *finder, const struct op_image_name *image, const char *name,
		   const struct op_dcookie_row *row) OP_NONNULL_ARGS(1, 2, 3, 4) OP_MUST_CHECK;

/* True when a debug file would tell more than there is. */
bool opr_debug_would_help(const struct opr_debug *debug) OP_NONNULL;

void opr_debug_free(struct opr_debug *debug);

#endif
