/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Debug files from the servers in $DEBUGINFOD_URLS, by libdebuginfod (debuginfod(8)). A child
 * process downloads them into the directory that all clients of the user share; the readers find
 * them there (tools/elf/debug_path.h). The parent never loads libdebuginfod or libcurl.
 *
 * Time and bytes are bounded. A server that fails is named in one line and not asked again in this
 * run. The settings are those of the process. One thread.
 */
#ifndef OPR_DEBUGINFOD_H
#define OPR_DEBUGINFOD_H

#include "tools/fetch/download.h"

#define OPR_DEBUGINFOD_FILE_SECONDS 60
#define OPR_DEBUGINFOD_ALL_SECONDS  180

struct opr_debuginfod_time {
	unsigned int file_seconds, all_seconds; /* 0: the default */
};

/* --debuginfod-time=FILE[,ALL], a struct opr_debuginfod_time */
int opr_take_debuginfod_time(void *field, const char *value);
#define OPR_DEBUGINFOD_TIME_HELP "seconds for a debug file from $DEBUGINFOD_URLS, and for all (default 60,180)"

/*
 * To be called once, by a tool that uses downloaded files; until then, they are not used. Nothing
 * happens when $DEBUGINFOD_URLS is empty.
 */
void opr_debuginfod_use(const struct opr_debuginfod_time *time) OP_NONNULL;

/* Where downloaded files are: DIRECTORY/BUILD-ID/debuginfo. NULL: they are not used. Any thread. */
const char *opr_debuginfod_dir(void);

/*
 * Downloads debug files, the first one first, and sets `came` of those that are there now. Failures
 * are warnings. 0 or -ENOMEM.
 */
int opr_debuginfod_fetch(struct opr_wanted_debug *wanted, size_t nr_wanted, opr_debug_check_fn *check) OP_NONNULL OP_MUST_CHECK;

#endif
