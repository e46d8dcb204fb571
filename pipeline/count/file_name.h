/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The name and the header of the file of a key. */
#ifndef OPD_FILE_NAME_H
#define OPD_FILE_NAME_H

#include "libop/base/compiler.h"
#include "pipeline/count/state.h"

/* The path of a key below the session directory. 0, freed by the caller, or -ENOMEM. */
int opd_file_path(const struct opd_count *count, const struct opd_file_key *key, char **ret_path) OP_NONNULL OP_MUST_CHECK;

/* The path of the sample file of one image of `file`. 0, freed by the caller, or -ENOMEM. */
int opd_file_plain_path(const struct opd_count *count, const struct opd_file *file, uint64_t image_cookie,
			char **ret_path) OP_NONNULL OP_MUST_CHECK;

/* The header of a new file. */
void opd_file_header(const struct opd_count *count, const struct opd_file *file, struct op_odb_header *ret_header) OP_NONNULL;

#endif
