/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Guards for mapped files. An access to a mapped file raises SIGBUS when the file was truncated,
 * the disk cannot be read, or a copy-on-write file system is full. The handler then replaces the
 * whole mapping by zero pages and marks it as broken, and the access continues. What it reads then
 * is meaningless, and what it writes is lost. The owner of the mapping checks op_guard_is_broken
 * before it uses its results. Code that walks through a mapping must end whatever it reads there.
 *
 *   call                            any thread   beside a fault in another mapping
 *   op_guard_new, _free                 x                    x
 *   op_guard_nr_broken, _is_broken      x                    x
 *
 * Only one thread at a time writes to a mapping; several may read it.
 */
#ifndef OP_GUARD_H
#define OP_GUARD_H

#include "libop/base/compiler.h"

struct op_guard;

/*
 * Installs the handler of SIGBUS for the whole process, for good. A SIGBUS outside of the guarded
 * mappings, or one that was sent, ends the process as before. 0 or -errno.
 */
int op_guard_install(void) OP_MUST_CHECK;

/* Guards a mapping of whole pages; op_guard_free ends that, before munmap(2). 0 or -ENOMEM. */
int op_guard_new(void *start, size_t nr_bytes, struct op_guard **ret_guard) OP_NONNULL OP_MUST_CHECK;
void op_guard_free(struct op_guard *guard); /* NULL is allowed */

bool op_guard_is_broken(const struct op_guard *guard) OP_NONNULL;

/* Mappings that have broken since the process started. Cheap: check this first. */
uint32_t op_guard_nr_broken(void);

#endif
