/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whether there are symbols for an image, and which debug file has them or would have them. */
#ifndef OPR_IMAGE_DEBUG_H
#define OPR_IMAGE_DEBUG_H

#include "libop/session/dcookie.h"
#include "tools/symbols/image_path.h"

enum opr_symbol_state {
	OPR_SYMBOLS_NO_FILE,   /* a region or a pseudo-image, which has no file */
	OPR_SYMBOLS_NOT_FOUND, /* the image is not where it was */
	OPR_SYMBOLS_UNREADABLE,
	OPR_SYMBOLS_REPLACED, /* another file is where it was */
	OPR_SYMBOLS_NOT_OBJECT,
	OPR_SYMBOLS_HIDDEN,   /* addresses of the kernel */
	OPR_SYMBOLS_NONE,
	OPR_SYMBOLS_RANGES,   /* functions without names */
	OPR_SYMBOLS_EXPORTED, /* dynamic symbols only */
	OPR_SYMBOLS_MINIMAL,  /* the functions in .gnu_debugdata */
	OPR_SYMBOLS_TABLE,    /* all symbols, no lines */
	OPR_SYMBOLS_DEBUG,    /* debugging information */
	/* debugging information that cannot be read in whole; the user was warned */
	OPR_SYMBOLS_DAMAGED,
};

struct opr_debug {
	enum opr_symbol_state state;
	char build_id[OP_BUILD_ID_DIGITS]; /* "": none, or not known */
	char *path;                        /* of the image; NULL: not found, or replaced */
	/* the debug file that is used, or the one that would help; NULL: none, or not known */
	char *debug_file;
};

/* The word for a state in reports. */
const char *opr_symbol_state_word(enum opr_symbol_state state);

/*
 * Finds the file of an image called `name` (opr_image_name), which `row` describes (NULL: no
 * table), and looks at its symbols; `sources`: those that count (source_set.h). Fills a zeroed
 * structure, to be freed with opr_debug_free in any case. 0 or -ENOMEM.
 */
int opr_debug_look(struct opr_debug *debug, struct opr_finder *finder, const struct op_image_name *image, const char *name,
		   const struct op_dcookie_row *row, uint32_t sources) OP_NONNULL_ARGS(1, 2, 3, 4) OP_MUST_CHECK;

/* True when functions have no names: there are no symbols, or only some of them. */
bool opr_debug_lacks_names(const struct opr_debug *debug) OP_NONNULL;

/* True when a debug file would add symbols or lines. */
bool opr_debug_would_help(const struct opr_debug *debug) OP_NONNULL;

void opr_debug_free(struct opr_debug *debug);

#endif
