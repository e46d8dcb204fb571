/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The system calls of a looker (seccomp(2)). A looker has rights over all processes, and it does
 * nothing but look: it opens files for reading, writes to its socket, and sends over OPD_PASS_FD
 * (pipeline/files/pass_file.h). Everything else fails with ENOSYS, whoever has taken it over.
 *
 * call_filter_none.c takes the place of call_filter.c where libseccomp is missing, and in builds
 * with sanitizers, which make calls of their own.
 */
#ifndef OPD_CALL_FILTER_H
#define OPD_CALL_FILTER_H

#include "libop/base/compiler.h"

/*
 * Applies the filter to the calling thread, for good. The only descriptors for writing are
 * socket_fd and OPD_PASS_FD. Needs no_new_privs or CAP_SYS_ADMIN. 0, also where the kernel has no
 * filters; -errno.
 */
int opd_call_filter_apply(int socket_fd) OP_MUST_CHECK;

#endif
