/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Opens the file of an image and sends its descriptor to another process. opd does not have the
 * descriptor at any time: even to close it may hang (far_file.h).
 *
 * Sync thread only, except the answer, which runs in the looker.
 */
#ifndef OPD_PASS_FILE_H
#define OPD_PASS_FILE_H

#include <sys/stat.h>

#include "daemon/look/lookers.h"
#include "libop/base/compiler.h"

/* The descriptor over which a looker passes files; its call filter knows it. */
#define OPD_PASS_FD 200

struct opd_pass_wanted {
	struct opd_look_about about; /* pid 0: only the path is tried */
	uint64_t start, end;         /* the process has the file mapped there; end 0: it has not */
	const char *path;            /* on the host, when the mapping is gone; NULL: none */
	/* The file has them; 0: unknown. With time and length, the inode does not matter. */
	uint64_t inode, mtime_ns, nr_bytes;
	uint64_t device, max_mtime_ns; /* beside an inode alone, where it proves too little */
};

/* Both change with what is in a file. */
struct opd_file_stamp {
	uint64_t mtime_ns, nr_bytes;
};

struct opd_file_stamp opd_file_stamp(const struct stat *st) OP_NONNULL;

/* Whose file it is. */
struct opd_passed {
	struct opd_file_stamp stamp;
	uint32_t uid;
	/* nobody but that user can have made its contents: no file server of a user has it */
	bool is_owners;
};

/*
 * Opens the file and sends it over a socket, with one byte. socket_fd -1: looks at it only.
 * lookers NULL: in this process. 0; -ESTALE: there is another file now; -ENOEXEC: no regular file;
 * -EBUSY: there is no answer; another -errno.
 */
int opd_pass_file(struct opd_lookers *lookers, const struct opd_pass_wanted *wanted, int socket_fd,
		  struct opd_passed *ret_passed) OP_NONNULL_ARGS(2, 4) OP_MUST_CHECK;

/* The answer to OPD_LOOK_PASS. */
int opd_pass_file_answer(const char *question, size_t nr_bytes, int fd, struct op_text *answer) OP_NONNULL OP_MUST_CHECK;

#endif
