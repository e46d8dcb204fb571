/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Mapped files whose pages may go: somebody cuts the file short, the disk under it cannot be read, a file system that copies on write
 * has no block left. An access is then ended by SIGBUS. Where the handler is installed it puts zero pages of no file in the place of the
 * whole mapping, which is *broken* from then on: the access goes on, what it reads means nothing, what it writes goes nowhere, and
 * whoever owns the mapping asks op_guard_is_broken before believing what was done with it. Code that walks such a mapping comes to an
 * end whatever it reads.
 *
 *   call                            any thread   beside a fault in another mapping
 *   op_guard_new, _free                 x                    x
 *   op_guard_nr_broken, _is_broken      x                    x
 *
 * One mapping that is written belongs to one thread at a time. No fault of a guarded mapping can happen while the list of them is held, so the handler waits for
 * another thread at most, for a few instructions.
 */
#ifndef OP_GUARD_H
#define OP_GUARD_H

#include "libop/base/compiler.h"

struct op_guard;

/*
 * Installs the handler of SIGBUS, for the whole process and for good. A SIGBUS that is about no guarded mapping, or that somebody sent, ends the process as before. 0 or -errno.
 */
int op_guard_install(void) OP_MUST_CHECK;

/* Guards a mapping of whole pages, the owner's to look at from several threads where it is only read. 0 and what op_guard_free frees, before the memory is unmapped; -ENOMEM. */
int op_guard_new(void *start, size_t nr_bytes, struct op_guard **ret_guard) OP_NONNULL OP_MUST_CHECK;
void op_guard_free(struct op_guard *guard); /* NULL is allowed */

bool op_guard_is_broken(const struct op_guard *guard) OP_NONNULL;

/* How many mappings have broken since the process began. Costs a load: it is asked first. */
uint32_t op_guard_nr_broken(void);

#endif
