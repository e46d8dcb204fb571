/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Several archives in one report: their sessions are added up, if they have the same events. The
 * words of sessions then become paths, because archives have sessions of the same name.
 */
#ifndef OPR_ARCHIVES_H
#define OPR_ARCHIVES_H

#include "tools/profile/profile.h"
#include "tools/profile/session_span.h"
#include "tools/profile/spec.h"

/* Opens archives. *ret_archives is freed with opr_archives_free in any case. 0 or -errno. */
int opr_archives_open(struct opr_archive **ret_archives, const struct opr_words *dirs) OP_NONNULL OP_MUST_CHECK;

/*
 * Replaces the names of sessions by their paths in the archives. 0; -ENOENT: a session is in no
 * archive, or an archive has none of them; -ENOMEM.
 */
int opr_archives_name_sessions(const struct opr_archive *archives, struct opr_spec *spec) OP_NONNULL OP_MUST_CHECK;

/* The same for the sessions of a span of time, which each archive must have. As opr_span_find. */
int opr_archives_span(const struct opr_archive *archives, const struct opr_span *span, struct opr_spec *spec,
		      int **fds) OP_NONNULL OP_MUST_CHECK;

/* 0; -EINVAL with a message: the selected files have other events, periods or types of CPU. */
int opr_archives_check(const struct opr_profile *profile) OP_NONNULL OP_MUST_CHECK;

void opr_archives_free(struct opr_archive *archives);

#endif
