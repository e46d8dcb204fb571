/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The name that Docker keeps of a container, while it has the container. It is looked up when a
 * report is written, with the rights of who reads the report: opd itself parses no file of a
 * runtime. Others than root see no name. One thread.
 */
#ifndef OPR_DOCKER_NAME_H
#define OPR_DOCKER_NAME_H

#include "libop/base/text.h"

/* Appends " (NAME)" for an identifier of 64 digits, or nothing. */
void opr_docker_name_add(struct op_text *text, const char *id) OP_NONNULL;

#endif
