/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The application of an address space: the file that its process runs, which /proc/PID/exe names.
 *
 * The kernel maps it before all other files when a program begins. A process that is older than the
 * records is different: its mappings come in the order of their addresses, libraries often first.
 * Then the application is the file that most speaks for. Sync thread only.
 */
#ifndef OPD_APPLICATION_H
#define OPD_APPLICATION_H

#include "libop/base/compiler.h"
#include "libop/session/dcookie.h"
#include "pipeline/resolve/process.h"

/* What speaks for a file, as a sum. Each weighs more than all before it together. */
enum opd_app_evidence {
	OPD_APP_NO_LOADER = 1,  /* its name is not that of a dynamic linker */
	OPD_APP_IN_BIN = 2,     /* it lies in bin, sbin or libexec */
	OPD_APP_PLACE = 4,      /* it is mapped where the kernel puts executables */
	OPD_APP_NO_LIBRARY = 8, /* its name is not that of a library */
	OPD_APP_HEADERS = 16,   /* its program headers are those of an executable */
	OPD_APP_COMM = 32,      /* the process has its name */
	OPD_APP_EXE = 64,       /* /proc/PID/exe names it */
};

/*
 * Who knows more about a file than records do. `look` gives OPD_APP_HEADERS and OPD_APP_EXE as far
 * as they are proved, or -1: it is a library. Called only where the records do not decide.
 */
struct opd_app_witness {
	int (*look)(void *arg, uint32_t pid, const struct op_image_id *file, const struct opd_mapping *mapping);
	void *arg;
};

/*
 * What speaks for a file that has its first byte at address `base`. `comm` is the name of the
 * process when the mappings were listed; "": unknown.
 */
unsigned int opd_app_evidence(const char *path, uint64_t base, const char *comm) OP_NONNULL OP_MUST_CHECK;

/* The cookie of the application; OP_DCOOKIE_NONE: no file is mapped that can be it. */
uint64_t opd_app_choose(const struct op_dcookie_table *table, uint32_t pid, const struct opd_mm *mm,
			const struct opd_app_witness *witness) OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;

/*
 * True when a mapping shows that the last new name of the process (opd_process_renamed) came from
 * an exec: the file has that name, or it is the dynamic linker behind another file, or the vDSO,
 * which only exec maps.
 */
bool opd_app_shows_exec(const struct opd_mm *mm, const char *path) OP_NONNULL OP_MUST_CHECK;

#endif
