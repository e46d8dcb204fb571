/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The system calls of this process (seccomp(2)). */
#ifndef OPE_FILTER_H
#define OPE_FILTER_H

#include "libop/base/compiler.h"

/*
 * From now on the process opens events of CPUs, receives and sends over socket_fd, closes and ends.
 * Another call kills it. No memory is allocated afterwards. 0 or -errno. filter_none.c takes the
 * place of filter.c where libseccomp is missing, and in builds with sanitizers: -ENOSYS there,
 * since without a filter the process may do everything.
 */
int ope_filter_apply(int socket_fd) OP_MUST_CHECK;

#endif
