/* SPDX-License-Identifier: GPL-3.0-or-later */
/* opimport: what its parts tell each other. The functions that return 0 or -errno have told the user why when they fail. */
#ifndef OPIMPORT_H
#define OPIMPORT_H

#include "tools/opimport/import.h"
#include "libop/base/compiler.h"
#include "libop/control/daemonrc.h"
#include "libop/perf/data.h"
#include "tools/common/program.h"

struct opi_options {
	char *session_dir; /* --session-dir; NULL: as the configuration says */
	char *output;      /* the name of the session; with abi, the sample file that is made */
	char *abi;	   /* NULL: the file is of perf */
	char *vmlinux;
	char *file; /* "-": standard input */
	char *separate; /* NULL: not given */
	char *ibs_types[OP_IBS_NR_KINDS]; /* NULL: not given */
	uint32_t assumed[OP_IBS_NR_KINDS]; /* the numbers of these; 0: none */
	struct op_setup separation;
	int quiet, force, verbose;
};

/* Reads the command line; help ends the process. */
int opi_options_parse(struct opi_options *options, int argc, const char **argv, enum opr_request *ret_request) OP_NONNULL OP_MUST_CHECK;
void opi_options_free(struct opi_options *options) OP_NONNULL;

/* With options->abi: one sample file of another machine becomes one of this machine. */
int opi_import_foreign(const struct opi_options *options) OP_NONNULL OP_MUST_CHECK;

/*
 * The image of the file's kernel when that runs here, by its build-id in the file, else by its text's record: by the build-id there, or where there is none by
 * host, release and where it lies. NULL: it is another, or nothing tells.
 */
const char *opi_kernel_of_file(const struct op_perf_features *features) OP_NONNULL OP_MUST_CHECK;
const char *opi_kernel_of_record(const struct op_perf_features *features, const struct perf_event_header *header) OP_NONNULL OP_MUST_CHECK;

/*
 * A session in the making: a session directory of its own below SESSION-DIR/tmp, so that nobody sees a part of it.
 */
struct opi_session {
	char *dir, *work_dir, *target;
	int work_fd; /* of work_dir; -1: none */
	int lock_fd; /* keeps it from being removed as one that was left (libop/session/import_dir.h) */
	bool is_current;
};

int opi_session_begin(struct opi_session *session, const char *dir, const char *name) OP_NONNULL OP_MUST_CHECK;

/* It becomes samples/NAME. */
int opi_session_publish(struct opi_session *session) OP_NONNULL OP_MUST_CHECK;

/* Removes what was not published. */
void opi_session_end(struct opi_session *session) OP_NONNULL;

/* On a terminal, how far it is: for every so many records. */
void opi_progress(const struct op_perf_data *data) OP_NONNULL;
void opi_progress_end(void);

/* What was read and where every sample went, to standard output. */
void opi_report(const struct op_perf_data *data, const struct opi_import *import) OP_NONNULL;

/* What is damaged, to standard error. True when something is. */
bool opi_report_trouble(const struct op_perf_data *data, const char *file) OP_NONNULL;

/* What was counted and may be wrong, or was not counted, to standard error. True when that makes the import fail. */
bool opi_report_doubts(const struct op_perf_data *data, const struct opi_import *import, const char *file) OP_NONNULL;

/* What was guessed because the file does not say it, to standard output. */
void opi_report_guesses(const struct op_perf_data *data) OP_NONNULL;

#endif
