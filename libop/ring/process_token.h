/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Tells whether two parties that share memory are threads of one process. Process ids do not: each
 * pid namespace has its own, and they are reused.
 */
#ifndef OP_PROCESS_TOKEN_H
#define OP_PROCESS_TOKEN_H

#include <stdint.h>

/*
 * A random number of the caller's address space: the same for all its threads, and another one in
 * every other process, in a child of fork(2) and after execve(2). 0: the kernel has no
 * MADV_WIPEONFORK, or no random numbers yet. Any thread.
 */
uint64_t op_process_token(void);

#endif
