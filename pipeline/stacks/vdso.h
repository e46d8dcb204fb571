/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ELF file that the kernel maps into every process (vdso(7)). It is the same for all. */
#ifndef OPD_VDSO_H
#define OPD_VDSO_H

#include "libop/base/compiler.h"

#define OPD_VDSO_NAME "[vdso]" /* of its mappings */

/* A memfd with a copy, which the caller closes; -ENOENT: this kernel has none; another -errno. */
int opd_vdso_copy(void) OP_MUST_CHECK;

#endif
