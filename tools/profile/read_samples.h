/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The samples of a profile's files, for tools/profile*.c only: all are read once, by as many threads as there are CPUs. */
#ifndef OPR_PROFILE_READ_H
#define OPR_PROFILE_READ_H

#include "tools/profile/profile.h"

#define OPR_MENDS ": opcheck --repair mends what can be mended"

/* What became of each file of the profile. */
struct opr_reading {
	struct opr_reading_result *results;
};

/* Reads the whole of each file: header, sum and, where it is kept, samples are in it then. Tells nothing of a file. 0 or -errno. To be freed in any case. */
int opr_reading_do(struct opr_reading *reading, struct opr_profile *profile) OP_NONNULL OP_MUST_CHECK;

/*
 * What became of the file that had that index when all were read. 0 and *ret_sound: one that cannot be used was told, and is no file of the profile; -errno, told as well: -ESTALE for one that was
 * removed meanwhile, no memory or no descriptors.
 */
int opr_reading_take(const struct opr_reading *reading, struct opr_profile *profile, size_t index,
		     bool *ret_sound) OP_NONNULL OP_MUST_CHECK;

void opr_reading_free(struct opr_reading *reading) OP_NONNULL;

/* Warns of a session that opd, which keeps sessions for a time, or --reset has removed: what was read of it is not the whole. `path`: a file of it, or NULL. -ESTALE. */
int opr_tell_removed(const struct opr_session *session, const char *path) OP_NONNULL_ARGS(1);

#endif
