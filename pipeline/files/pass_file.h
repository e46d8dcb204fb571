/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Opens the file of an image and sends its descriptor to another process. opd does not have the
 * descriptor at any time: even to close it may hang (far_file.h).
 *
 * Sync thread only, except the answer, which runs in the looker.
 */
#ifndef OPD_PASS_FILE_H
#define OPD_PASS_FILE_H

#include "libop/base/compiler.h"
#include "pipeline/files/identity.h"
#include "pipeline/files/lookers.h"

/* The descriptor over which a looker passes files; its call filter knows it. */
#define OPD_PASS_FD 200

struct opd_pass_wanted {
	struct opd_look_about about; /* pid 0: only the path is tried */
	uint64_t start, end;         /* the process has the file mapped there; end 0: it has not */
	const char *path;            /* on the host, when the mapping is gone; NULL: none */
	/* The file has it; 0: unknown. */
	struct opd_file_identity identity;
	uint64_t max_mtime_ns; /* it is not newer; 0: it may be */
};

/* Whether a file is the wanted one. */
bool opd_pass_is_wanted(const struct opd_file_identity *file, const struct opd_pass_wanted *wanted) OP_NONNULL OP_MUST_CHECK;

/*
 * Opens the file and sends it over a socket, with one byte. lookers NULL: in this process. 0;
 * -ESTALE: there is another file now; -ENOEXEC: no regular file; -EBUSY: there is no answer;
 * another -errno. Who receives the descriptor can ask it which file it is (identity.h).
 */
int opd_pass_file(struct opd_lookers *lookers, const struct opd_pass_wanted *wanted, int socket_fd) OP_NONNULL_ARGS(2)
	OP_MUST_CHECK;

/* The answer to OPD_LOOK_PASS. */
int opd_pass_file_answer(const char *question, size_t nr_bytes, int fd) OP_NONNULL OP_MUST_CHECK;

#endif
