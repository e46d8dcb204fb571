/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What this machine knows about the executables of a recording (pipeline/resolve/application.h):
 * the processes of the recording that still run here, and the program headers of its files. It
 * counts only where it is proved that this is the process, or the file, of the recording. One
 * thread.
 */
#ifndef OPI_WITNESS_H
#define OPI_WITNESS_H

#include <sys/types.h>

#include "libop/perf/data_feature.h"
#include "pipeline/resolve/application.h"

struct opi_witness {
	struct opd_app_witness witness;
	const struct op_perf_features *features; /* the caller's */
	time_t recorded_at;                      /* no process of the recording began later */
};

/* `fd` is the recording; the time of a pipe is now. */
void opi_witness_init(struct opi_witness *witness, const struct op_perf_features *features, int fd) OP_NONNULL;

/* No file of the recording is younger, in ns since 1970. 0: it was not recorded on this host. */
uint64_t opi_witness_recorded_ns(const struct opi_witness *witness) OP_NONNULL;

/*
 * Whether program headers are those of an executable. A library may have an interpreter and an
 * entry (libc.so.6), and an executable may have no interpreter (-static-pie): its own name
 * (DT_SONAME) and DF_1_PIE tell them apart. Only of 64-bit files in the byte order of this machine.
 */
enum opi_elf_kind { OPI_ELF_UNKNOWN, OPI_ELF_EXECUTABLE, OPI_ELF_LIBRARY };

/* The kind and the build-id of an open file. Every read is bounded. */
enum opi_elf_kind opi_elf_look(int fd, struct op_build_id *ret_id) OP_NONNULL OP_MUST_CHECK;

#endif
