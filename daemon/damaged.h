/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files of the session directory that are not what they should be (a power cut, a foreign hand): kept in damaged/ for whoever wants to look. */
#ifndef OPD_DAMAGED_H
#define OPD_DAMAGED_H

#include "libop/compiler.h"

#define OPD_DAMAGED_NAME_BYTES 64

/* Moves `path`, below the session directory, out of the way; where to stands in `aside`. 0 or -errno. Sync thread, or before it starts. */
int opd_damaged_put_aside(int session_fd, const char *path, char aside[OPD_DAMAGED_NAME_BYTES]) OP_NONNULL OP_MUST_CHECK;

/* The same with a sample file, or what stands where one belongs; the log says so. 0 or -errno. */
int opd_damaged_sample_file(int session_fd, const char *path) OP_NONNULL OP_MUST_CHECK;

/* Whether this error of op_odb_open or op_odb_repair is one that putting aside helps against. */
bool opd_is_damage(int err) OP_MUST_CHECK;

#endif
