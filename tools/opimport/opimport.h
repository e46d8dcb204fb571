/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files share. A function that returns 0 or -errno has told the user why it failed. */
#ifndef OPIMPORT_H
#define OPIMPORT_H

#include "tools/opimport/import.h"
#include "libop/base/compiler.h"
#include "libop/control/daemonrc.h"
#include "libop/perf/data.h"
#include "libop/session/leftovers.h"
#include "tools/common/program.h"

struct opi_options {
	char *session_dir; /* --session-dir; NULL: as the configuration says */
	char *output;      /* the name of the new session; with abi, the new sample file */
	char *abi;         /* NULL: the file is from perf */
	char *vmlinux;
	char *file;                        /* "-": standard input */
	char *separate;                    /* NULL: not given */
	char *ibs_types[OP_IBS_NR_KINDS];  /* NULL: not given */
	uint32_t assumed[OP_IBS_NR_KINDS]; /* ibs_types as numbers; 0: not given */
	struct op_setup separation;
	int quiet, force, verbose;
};

/* Reads the command line. 0 or -errno. */
int opi_options_parse(struct opi_options *options, int argc, const char **argv,
		      enum opr_request *ret_request) OP_NONNULL OP_MUST_CHECK;
void opi_options_free(struct opi_options *options) OP_NONNULL;

/* With options->abi: converts a sample file of another machine to one of this machine. */
int opi_import_foreign(const struct opi_options *options) OP_NONNULL OP_MUST_CHECK;

/*
 * The image of the file's kernel, if that kernel runs here. NULL: it is another one, or the file
 * does not say. The first function compares the build-id in the features of the file; the second
 * one the build-id in a record of the kernel's text or, without one, host, release and address.
 */
const char *opi_kernel_of_file(const struct op_perf_features *features) OP_NONNULL OP_MUST_CHECK;
const char *opi_kernel_of_record(const struct op_perf_features *features,
				 const struct perf_event_header *header) OP_NONNULL OP_MUST_CHECK;

/* A new session. Until it is complete, it is below SESSION-DIR/tmp, where nobody reads it. */
struct opi_session {
	char *dir, *target; /* target: dir/samples/NAME */
	int dir_fd;
	/*
	 * of the directory in tmp/ where it is made; -1: none. It also holds the lock that keeps
	 * other imports from removing it (libop/session/leftovers.h).
	 */
	int work_fd;
	char work_name[OP_SESSION_IMPORT_BYTES];
	bool is_current;
};

int opi_session_begin(struct opi_session *session, const char *dir, const char *name) OP_NONNULL OP_MUST_CHECK;

/* Renames it to samples/NAME. */
int opi_session_publish(struct opi_session *session) OP_NONNULL OP_MUST_CHECK;

/* Removes what is in the making. */
void opi_session_end(struct opi_session *session) OP_NONNULL;

/* Shows the progress (tools/common/progress.h). To be called after every few thousand records. */
void opi_progress(const struct op_perf_data *data) OP_NONNULL;

/* Prints to standard output what was read and where all samples went. */
void opi_report(const struct op_perf_data *data, const struct opi_import *import) OP_NONNULL;

/* Reports damage of the file. True: there is some. */
bool opi_report_trouble(const struct op_perf_data *data, const char *file) OP_NONNULL;

/* Reports samples that may be wrong or were not counted. True: the import fails because of them. */
bool opi_report_doubts(const struct op_perf_data *data, const struct opi_import *import, const char *file) OP_NONNULL;

/* Prints to standard output what opimport assumes because the file does not say it. */
void opi_report_guesses(const struct op_perf_data *data) OP_NONNULL;

#endif
