/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Questions about processes and their files. A process chooses where its paths lead. A path may
 * lead to a file system of that user, which can block each system call there, also a call of root,
 * and nothing ends such a call. So opd asks a looker, a helper process that makes the call. A
 * looker that does not answer in time is abandoned, and another one takes its place, up to a fixed
 * number. opd uses the looker again when its call has returned.
 *
 * Waiting has three limits: a time for each question, a share of the time for all questions, and a
 * pause after a question that hung. During the pause opd asks nothing about that process or its
 * user namespace; each further pause is twice as long. Processes in a user namespace of their own
 * can mount file systems without any privilege. They have lookers of their own, so they cannot use
 * up those of the others.
 *
 * Sync thread only, except opd_look_answer, which runs in the looker.
 */
#ifndef OPD_LOOKERS_H
#define OPD_LOOKERS_H

#include <sys/uio.h>

#include "libop/base/compiler.h"
#include "libop/process/nursery.h"
#include "libop/base/text.h"

enum opd_look {
	OPD_LOOK_VIEW,     /* mount namespace and root of a process (mount_view.c) */
	OPD_LOOK_MAPS,     /* its mappings */
	OPD_LOOK_LOCATE,   /* the file of a mapping */
	OPD_LOOK_BUILD_ID, /* of that file */
	OPD_LOOK_UNCHANGED, /* whether files are as they were (unchanged.c) */
	OPD_LOOK_OWNER,    /* who the process is (owner.c) */
	OPD_LOOK_OPEN,     /* opens one of its files that describe JIT code */
	OPD_LOOK_READ,     /* reads from such a file (far_file.c) */
	OPD_LOOK_CLOSE,
	OPD_LOOK_PASS,     /* opens the file of an image and passes it on (pass_file.c) */
	OPD_LOOK_STACK,    /* copies the stack of a thread that waits (stack_copy.c) */
	OPD_LOOK_NODE,     /* reads functions in the heap of V8 (node_heap.c) */
	OPD_LOOK_JAVA,     /* reads the memory of a Java machine (pipeline/readers/java.h) */
	OPD_NR_LOOKS,
};

#define OPD_LOOKERS_MAX 8u /* of each of the two groups */

struct opd_lookers;

/* The work of a looker, for struct op_helper_kind: the answers to all questions (looker.c). */
int opd_look_answer(const char *question, size_t nr_bytes, int fd, struct op_text *answer) OP_NONNULL;

/* What a question is about: a process, or files of a user of the host. */
struct opd_look_about {
	uint32_t pid;
	uint64_t user_ns; /* its user namespace; 0: the host's, or unknown */
	bool is_files;    /* files of `uid`; there is no process */
	uint32_t uid;
};

/*
 * The nursery stays the caller's, and kind is the one of its kinds that is answered by
 * opd_look_answer. Starts no looker yet. 0 or -ENOMEM.
 */
int opd_lookers_new(struct op_nursery *nursery, size_t kind, struct opd_lookers **ret_lookers) OP_NONNULL OP_MUST_CHECK;

/* Does not wait for a looker that hangs. NULL is allowed. */
void opd_lookers_free(struct opd_lookers *lookers);

/*
 * Replaces helper processes that have ended by themselves, or were killed, so that a question finds
 * one. Does not wait. The nursery's counts are a part of opd_lookers_nr_ended.
 */
void opd_lookers_watch(struct opd_lookers *lookers) OP_NONNULL;
uint64_t opd_lookers_nr_ended(const struct opd_lookers *lookers) OP_NONNULL;

/* Questions that had no answer in time, or were not asked because of earlier ones. */
uint64_t opd_lookers_nr_unanswered(const struct opd_lookers *lookers) OP_NONNULL;

/* True when the looker of this number has not ended; it may hang. */
bool opd_lookers_has(const struct opd_lookers *lookers, uint32_t serial) OP_NONNULL OP_MUST_CHECK;

/*
 * Who is to blame when such a file hangs: the user, or the user namespace. Looks at attributes in
 * /proc alone.
 */
uint64_t opd_look_owner(const struct opd_look_about *about) OP_NONNULL;

/*
 * Until when the caller can wait, since rings fill meanwhile: after that moment nothing is asked.
 * 0: no such moment.
 */
void opd_lookers_wait_until(struct opd_lookers *lookers, uint64_t until_ns) OP_NONNULL;

/*
 * Asks. `serial` names a looker that must be asked; 0: any, and its number goes to *serial. Returns
 * the result of the answer; -EBUSY: there is none. The caller frees ret_answer in any case.
 */
int opd_look(struct opd_lookers *lookers, const struct opd_look_about *about, enum opd_look look, const struct iovec *parts,
	     size_t nr_parts, int fd, uint32_t *serial, struct op_text *ret_answer) OP_NONNULL OP_MUST_CHECK;

#endif
