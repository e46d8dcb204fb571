/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --pid: the events of all threads of a process that runs. */
#ifndef OPF_ATTACH_H
#define OPF_ATTACH_H

#include "pipeline/capture/task_source.h"

/* The number of threads of a process. 0: there is no such process. */
size_t opf_count_threads(pid_t pid);

/*
 * Adds the events of all its threads, also of those that begin meanwhile. 0; or -errno after a
 * message, and the caller closes the capture.
 */
int opf_attach(struct opd_capture *capture, const struct opd_task_options *options, pid_t pid) OP_NONNULL OP_MUST_CHECK;

#endif
