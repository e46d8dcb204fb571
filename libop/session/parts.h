/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The table of the parts of a session. A new part is a row in parts.c and its functions. To close,
 * save, remove, weigh and import a session is to move its directory or to walk over all of it: that
 * needs nothing of a row. Source: doc/format.md.
 */
#ifndef OP_SESSION_PARTS_H
#define OP_SESSION_PARTS_H

#include "libop/session/part.h"

/* In the order in which op_session_compact and op_session_clear take them. */
extern const struct op_session_part op_session_parts[];

/* The part that a path below the session's directory is, or is in. NULL: of none. */
const struct op_session_part *op_session_part_of(const char *path) OP_NONNULL;

/*
 * Frees what the parts of a closed session do not need: packs the sample files of a large one
 * (op_session_pack), and frees the space that the others have for growth (op_odb_compact). Comes
 * before op_session_mark_whole: after a power cut in between, the next daemon repairs the marked
 * session. dir_fd is the session's directory.
 */
void op_session_compact(int dir_fd);

#endif
