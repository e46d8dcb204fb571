/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Opens the sessions of a specification: by name, or the open directories of profile->session_fds.
 */
#ifndef OPR_OPEN_SESSIONS_H
#define OPR_OPEN_SESSIONS_H

#include "tools/profile/profile.h"
#include "tools/profile/spec.h"

/*
 * Opens the sessions below SESSION-DIR/samples and lists their files; the files of their cgroups or
 * of their memory view where the specification selects those. 0; -ESTALE after a warning: a session
 * was removed meanwhile; another -errno. Sessions without any sample file are an error.
 */
int opr_sessions_open(struct opr_profile *profile, const char *session_dir, const struct opr_spec *spec) OP_NONNULL OP_MUST_CHECK;

#endif
