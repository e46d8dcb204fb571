/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the child process of debuginfod.h does, and what it tells its parent. */
#ifndef OPR_DOWNLOAD_H
#define OPR_DOWNLOAD_H

#include <stdio.h>

#include "libop/base/compiler.h"

#define OPR_DOWNLOAD_SERVERS_MAX 64
#define OPR_DOWNLOAD_BYTES_MAX	 (1000ull << 20) /* of a file: below the limit of the child */
#define OPR_DOWNLOAD_SILENCE	 4 /* the first byte comes in a fourth of the time of a file */
#define OPR_DOWNLOAD_NO_SERVER	 UINT32_MAX

struct opr_wanted_debug {
	const char *name;     /* of the image, for messages */
	const char *build_id; /* hexadecimal digits */
	bool came;
};

/* Whether a file is a debug file with this build-id. Runs in the child. */
typedef bool opr_debug_check_fn(const char *path, const char *build_id);

/* The words are for the record of a file and, where they say so, of a server. */
enum opr_download_step {
	OPR_DOWNLOAD_ASKS,   /* the server */
	OPR_DOWNLOAD_CHECKS, /* the file of the server, or one that was there */
	OPR_DOWNLOAD_CAME,
	OPR_DOWNLOAD_MISSING,	    /* no server has it */
	OPR_DOWNLOAD_STILL_MISSING, /* not long ago: the servers were not asked again */
	OPR_DOWNLOAD_TOO_LARGE,
	OPR_DOWNLOAD_FAILED,	    /* the server; `reason` says how */
	OPR_DOWNLOAD_OUT_OF_TIME,   /* for all files */
	OPR_DOWNLOAD_STOPPED,	    /* by SIGINT */
	OPR_DOWNLOAD_NO_LIBRARY,    /* `reason` says why */
	OPR_DOWNLOAD_NR_STEPS,
};

struct opr_download_record {
	uint32_t wanted, server; /* indices */
	uint32_t step;
	char reason[180];
};

struct opr_download_request {
	const struct opr_wanted_debug *wanted;
	size_t nr_wanted;
	const bool *is_done; /* for each: not to be asked for */
	char *const *servers;
	size_t nr_servers;
	uint64_t failed; /* a bit for each server that is not asked */
	const char *dir;
	unsigned int file_seconds;
	uint64_t end_ns; /* op_now_ns: when the time for all files ends */
	opr_debug_check_fn *check;
};

/* opr_child_fn for a struct opr_download_request: writes records, each at once. */
int opr_download_run(FILE *out, void *arg) OP_NONNULL OP_MUST_CHECK;

/* The path of a downloaded file, DIRECTORY/BUILD-ID/debuginfo. False: too long. */
static inline bool opr_download_path(const char *dir, const char *build_id, char *path, size_t size)
{
	return snprintf(path, size, "%s/%s/debuginfo", dir, build_id) < (int)size;
}

#endif
