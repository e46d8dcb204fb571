/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Short names of cgroups of containers and pods, for text: "docker 3f2a1b4c5d6e". */
#ifndef OPR_CONTAINER_NAME_H
#define OPR_CONTAINER_NAME_H

#include "libop/base/text.h"

/*
 * Appends the runtime and the begin of the identifier of a container, or the path as it is where
 * the runtime is not known. What lies inside the container follows it. Two cgroups may have one
 * short name, so rows are told apart by their paths. The caller checks text->failed.
 */
void opr_container_name_add(struct op_text *text, const char *cgroup) OP_NONNULL;

#endif
