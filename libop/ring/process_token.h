/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whether two parties that share memory are threads of one process. Process numbers do not tell: they are counted in each namespace for
 * itself, and given again.
 */
#ifndef OP_PROCESS_TOKEN_H
#define OP_PROCESS_TOKEN_H

#include <stdint.h>

/*
 * A number of the address space that the caller runs in: the same for all its threads, another one (at random) for every other process,
 * for a child of fork(2) too, and after execve(2). 0: the kernel has no MADV_WIPEONFORK or no random numbers yet. Any thread.
 */
uint64_t op_process_token(void);

#endif
