/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * --by: a report of groups of samples instead of applications. A group is a name of processes, a
 * cgroup, a user or a thread. opd keeps samples apart by it when --separate= says so.
 */
#ifndef OPR_GROUPS_H
#define OPR_GROUPS_H

#include "tools/profile/profile.h"

/* id, the word of --by, the word of opcontrol --separate */
#define OPR_GROUPINGS(X)                                                                                                           \
	X(COMM, "comm", "process-name")                                                                                            \
	X(CGROUP, "cgroup", "cgroup")                                                                                              \
	X(USER, "user", "user")                                                                                                    \
	X(THREAD, "thread", "thread")

enum opr_by {
	OPR_BY_NONE, /* applications */
#define X(id, word, separate) OPR_BY_##id,
	OPR_GROUPINGS(X)
#undef X
		OPR_NR_GROUPINGS,
};

/* The word of --by; "" for OPR_BY_NONE. */
const char *opr_by_word(enum opr_by by) OP_MUST_CHECK;

/* Takes the value of --by into an enum opr_by. 0 or -EINVAL. */
int opr_take_by(void *field, const char *value) OP_NONNULL OP_MUST_CHECK;

/*
 * The group of a file of an open session, in words. Samples without one have a group in brackets,
 * "(no process)". Freed by the caller; NULL: no memory.
 */
char *opr_group_of(const struct opr_profile *profile, const struct opr_file *file, enum opr_by by) OP_NONNULL OP_MUST_CHECK;

/* The name of a user of this machine, else the number; freed by the caller. NULL: no memory. */
char *opr_user_name(const struct opr_profile *profile, uint32_t user) OP_NONNULL OP_MUST_CHECK;

/* 0; -ENOENT with a message: no selected file was kept apart by it. */
int opr_groups_check(const struct opr_profile *profile, enum opr_by by) OP_NONNULL OP_MUST_CHECK;

#endif
