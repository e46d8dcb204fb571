/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The files with records of one recording: a single file, or those of a directory that
 * `perf record --threads` made. One thread.
 */
#ifndef OP_PERF_PARTS_H
#define OP_PERF_PARTS_H

#include "libop/perf/data_input.h"
#include "libop/perf/data_zstd.h"

#define OP_PERF_PARTS_MAX      4096u
#define OP_PERF_FILE_NAME_BYTES 16

/* The first error in the recording, for a message. */
struct op_perf_trouble {
	const char *what; /* in words; NULL: no error */
	/* in the file; that of the compressed record when the error is inside one */
	uint64_t offset;
	int err;          /* -errno of reading; 0: the file is damaged */
	uint64_t nr_more; /* further errors */
	char file[OP_PERF_FILE_NAME_BYTES]; /* of a directory; empty: there is only one file */
};

/* Records an error, or counts it when there was one before. */
void op_perf_trouble_note(struct op_perf_trouble *trouble, const char *file, uint64_t offset, const char *what, int err) OP_NONNULL;

/*
 * Each file of a directory has records of its own, compressed or not; header and events are in the
 * first one.
 */
struct op_perf_part {
	struct op_perf_input input;
	int own_fd; /* the copy of a pipe, or a file of a directory; -1: none */
	char name[OP_PERF_FILE_NAME_BYTES]; /* in the directory; empty: there is no directory */
	bool ended;
	uint64_t data_end; /* 0: not known */
	uint64_t record_offset;
	uint64_t newest_ns; /* of the records that were read */
	struct op_perf_zstd zstd;
	uint8_t compressed[UINT16_MAX + 1]; /* the contents of the current compressed record */
};

struct op_perf_parts {
	struct op_perf_part **parts; /* the first one has the header */
	size_t nr_parts, capacity;
	const struct op_stop *stop; /* for reading; the caller's. NULL: none */
};

/* Adds a file; own_fd is closed with it, or at once on an error. 0 or -ENOMEM. */
int op_perf_parts_add(struct op_perf_parts *parts, int fd, int own_fd, const char *name) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds the files data.0, data.1, ... of a directory, and notes gaps in their numbers in `trouble`.
 * 0; -E2BIG: more than OP_PERF_PARTS_MAX; -ENOMEM; another -errno.
 */
int op_perf_parts_add_dir(struct op_perf_parts *parts, int dir_fd, struct op_perf_trouble *trouble) OP_NONNULL OP_MUST_CHECK;

void op_perf_parts_close(struct op_perf_parts *parts) OP_NONNULL;

#endif
