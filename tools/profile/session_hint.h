/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the user may have meant who named something that is no session, or no image with samples. */
#ifndef OPR_SESSION_HINT_H
#define OPR_SESSION_HINT_H

#include "libop/base/text.h"

/*
 * Adds a sentence, "A is an archive: archive:A reads it.", when `name` is an archive of oparchive, a session directory, or (is_session false) the name of a session
 * below session_dir/samples. Else nothing is added.
 */
void opr_hint_at_name(struct op_text *text, const char *session_dir, const char *name, bool is_session) OP_NONNULL;

/* Adds which sessions there are, in a sentence that begins with a blank; nothing when there is none to be seen. */
void opr_hint_at_sessions(struct op_text *text, const char *session_dir) OP_NONNULL;

#endif
