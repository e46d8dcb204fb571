/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A DWARF package (.dwp): the .dwo files of a program in one file, which libdw does not read.
 * Source: DWARF 5, section 7.3.5; for DWARF 4 https://gcc.gnu.org/wiki/DebugFissionDWP.
 */
#ifndef OPR_DWP_FILE_H
#define OPR_DWP_FILE_H

#include <libelf.h>

#include "libop/base/compiler.h"

struct opr_dwp;

/* Takes the descriptor. NULL: it is no package. */
struct opr_dwp *opr_dwp_open(int fd) OP_MUST_CHECK;

/* Returns the descriptor of a file in memory, the .dwo file of a unit; -ENOENT; another -errno. */
int opr_dwp_unit(struct opr_dwp *dwp, uint64_t dwo_id) OP_NONNULL OP_MUST_CHECK;

/* Its descriptor. */
int opr_dwp_fd(const struct opr_dwp *dwp) OP_NONNULL;

/* NULL is allowed. */
void opr_dwp_close(struct opr_dwp *dwp);

#endif
