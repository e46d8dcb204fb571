/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Hints for a user who names something that is no session, or no image with samples. */
#ifndef OPR_SESSION_HINT_H
#define OPR_SESSION_HINT_H

#include "libop/base/text.h"

/*
 * Adds a sentence such as "A is an archive: archive:A reads it." when `name` is an archive, a
 * session directory, or (is_session false) the name of a session below session_dir/samples.
 */
void opr_hint_at_name(struct op_text *text, const char *session_dir, const char *name, bool is_session) OP_NONNULL;

/*
 * Adds a sentence with the names of the sessions, after a blank, and the one that comes near to
 * `name`; nothing when there are none.
 */
void opr_hint_at_sessions(struct op_text *text, const char *session_dir, const char *name) OP_NONNULL;

#endif
